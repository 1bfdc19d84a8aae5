//! A request whose window is managed, and the conversation that it belongs to.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request};
use trimtab::session::{Moment, PendingSummary, SessionError, Setup};
use trimtab_engine::policy::Policy;
use trimtab_model::estimate::Measure;
use trimtab_model::{Dialect, Role, work};
use trimtab_store::StagedStore;
use trimtab_wire::scan::BodyScan;

use super::PlanningJob;
use super::asked_cache::{self, AskedCache};
use crate::config::{ProxyMode, SummaryMode};
use crate::conversation::branch::{Branch, BranchError, ComposeOptions, OutgoingBody, RequestMark};
use crate::conversation::client_sessions::{BranchSearch, ClientSession, LoadedBranches};
use crate::conversation::durability::is_conflict;
use crate::conversation::retrieval_tools::RetrievalOffer;
use crate::models::reasoning_rule::BINDING_BETA;
use crate::models::{KnownModel, ModelKey};
use crate::prefix_cache::fingerprint::fingerprint_of;
use crate::prefix_cache::parsed_bodies::BodyReading;
use crate::records::record::{MarkedParts, SentBefore};
use crate::request::bypass_reason::{self, Unmanaged};
use crate::routing::own_endpoint;
use crate::routing::route::UpstreamRoute;
use crate::transport::body::ProxyBody;
use crate::transport::headers;

/// The assumed lifetime of a prompt in a cache of unknown lifetime.
const CACHE_LIFETIME: Duration = Duration::from_mins(5);

/// The maximum number of new plans after another process wrote to the conversation.
pub(crate) const CONFLICTS: u32 = 2;

/// A request whose window is managed.
#[derive(Clone)]
pub(crate) struct ManagedRequest {
    pub(crate) job: PlanningJob,
    pub(crate) route: Arc<UpstreamRoute>,
    /// The path at the upstream.
    pub(crate) upstream_path: String,
    pub(crate) model: String,
    pub(crate) mode: ProxyMode,
    /// True if the provider keeps the answer, and the client may continue it by its id.
    pub(crate) is_kept: bool,
    pub(crate) model_limits: KnownModel,
    pub(crate) client_session: Arc<ClientSession>,
    pub(crate) branch: usize,
    /// Keeps the branch in memory.
    pub(super) branch_mark: Option<Arc<RequestMark>>,
    pub(crate) session: String,
    /// The parts of the original prompt that the client sent before.
    pub(crate) sent_before: SentBefore<Measure>,
    /// What the client asks of the provider's cache.
    pub(crate) asked_cache: AskedCache,
    /// The parts of the original prompt that the client's cache markers cover.
    pub(crate) marked: Option<MarkedParts<Measure>>,
    /// Why the request is sent unchanged unless it overflows, if there is a reason.
    pub(crate) untouched: Option<&'static str>,
    pub(crate) options: ComposeOptions,
}

/// What was decided for a managed request.
#[derive(Default)]
pub(crate) struct PlannedSend {
    pub(crate) outgoing: OutgoingBody,
    /// The plan that waits for a summary.
    pub(crate) pending: Option<PendingSummary>,
    /// The writes that must be durable before a model reads the request.
    pub(crate) unwritten: Option<Arc<StagedStore>>,
}

impl ManagedRequest {
    /// Chooses the upstream and the mode of a request, and finds its client session. The
    /// conversation is not changed yet.
    pub(super) fn new(work: PlanningJob, reading: &BodyReading<'_>) -> Result<Self, Unmanaged> {
        let (scan, settings) = (&reading.scan, Arc::clone(&work.settings));
        let named = scan.model().map(String::from);
        // The provider has the rest of the conversation, and we have not seen it. A window made
        // from a part would lose the rest.
        if scan.is_partial() {
            return Err(Unmanaged {
                model: named,
                ..Unmanaged::because("partial")
            });
        }
        let model = named.unwrap_or_default();
        let passes = |reason| Unmanaged::of_model(reason, &model);
        let chosen = settings
            .routes
            .choose(&work.path, work.dialect, Some(&model), &work.headers);
        let (route, rest) = chosen.map_err(|_| passes("no-upstream"))?;
        let rest = rest.to_owned();
        let mode = headers::mode(&work.headers)
            .unwrap_or_else(|| settings.routes.mode(&settings.config, &route, Some(&model)));
        // Checked again, because the mode can depend on the model, which is known only now.
        if mode == ProxyMode::Bypass {
            return Err(passes("bypass"));
        }
        let name = work.family_name(scan, &reading.fingerprints);
        let name = name.ok_or_else(|| passes("empty"))?;
        // A conversation is in the holdout or not for all of its life: the name decides, and no
        // chance.
        if work.opened.keys.share_of_name(&name) < settings.config.holdout {
            return Err(passes("holdout"));
        }
        // The limit counts stored bytes, so it comes before anything is stored.
        if work.is_over_quota() {
            return Err(passes("quota"));
        }
        let known = work.model_limits(&route, &model);
        let rules = known.model.as_ref().map(|model| model.rules);
        let rules = rules.unwrap_or_default();
        let offers =
            settings.config.retrieval && mode == ProxyMode::On && answers_pass_here(&work, scan);
        let ways = ComposeOptions {
            tools: if offers {
                RetrievalOffer::beside(scan, rules)
            } else {
                RetrievalOffer::default()
            },
            lowered: None,
            may_overrun: rules.answer_may_overrun,
            reasoning: known.reasoning_rule(scan),
        };
        let caches = known.model.as_ref().map(|model| &model.cache);
        let asked_cache = caches.map(|cache| AskedCache::of(cache, scan));
        let asked_cache = asked_cache.unwrap_or_default();
        let client_sessions = &work.opened.client_sessions;
        Ok(Self {
            client_session: client_sessions.get(&name, settings.config.limits.sessions),
            untouched: bypass_reason::bypass_reason(&work.headers, scan),
            is_kept: work.dialect == Dialect::Responses
                && scan.json(scan.request().session.store) != "false",
            options: ways,
            job: work,
            route,
            upstream_path: rest,
            model,
            mode,
            model_limits: known,
            branch: 0,
            branch_mark: None,
            session: String::new(),
            sent_before: SentBefore::default(),
            asked_cache,
            marked: None,
        })
    }

    /// Finds the conversation that the request continues, and runs `steps` on it. Starts over if
    /// another process wrote to the conversation meanwhile.
    pub(super) fn on_conversation<T>(
        &mut self,
        reading: &BodyReading<'_>,
        steps: impl Fn(&mut Self, &mut Branch, &Setup) -> Result<T, BranchError>,
    ) -> Result<T, Unmanaged> {
        let client_session = Arc::clone(&self.client_session);
        // The lock admits one request of a client session at a time: two at once could plan
        // different windows for one conversation.
        let mut branches = client_session.branches();
        if work::is_cancelled() {
            // The deadline has passed while we waited. Nothing was changed yet, so it is safe to
            // stop here.
            return Err(Unmanaged::of_model("slow", &self.model));
        }
        let setup = self.setup(&reading.scan);
        let mut conflicts = 0;
        loop {
            let found = self.find_branch(&client_session, &mut branches, reading, &setup);
            let done = found.and_then(|branch| steps(self, branch, &setup));
            let trouble = match done {
                Ok(done) => return Ok(done),
                Err(trouble) => trouble,
            };
            match &trouble {
                // Any of them may be outdated, so all are read again.
                trouble if trouble.is_conflict() => *branches = LoadedBranches::default(),
                // What is in memory may be ahead of the store now, so the store is read again.
                BranchError::Session(_) => branches.forget(self.branch),
                BranchError::Mismatch(_) => {}
            }
            conflicts += 1;
            // Only a conflict can succeed when it is tried again; other failures would repeat.
            if conflicts > CONFLICTS || !trouble.is_conflict() {
                drop(branches);
                return Err(self.passes(&trouble));
            }
        }
    }

    /// The reason why the request passes unchanged after `trouble`.
    fn passes(&self, trouble: &BranchError) -> Unmanaged {
        let reason = match trouble {
            BranchError::Session(SessionError::Store(error)) => self.job.store_failed(error),
            _ => "failed",
        };
        Unmanaged::of_model(reason, &self.model).with_detail(trouble.to_string())
    }

    fn find_branch<'b>(
        &mut self,
        client_session: &ClientSession,
        branches: &'b mut LoadedBranches,
        reading: &BodyReading<'_>,
        setup: &Setup,
    ) -> Result<&'b mut Branch, BranchError> {
        let (scan, chain) = (&reading.scan, &reading.fingerprints);
        let store = Arc::clone(&self.job.opened.store);
        let search = BranchSearch {
            chain,
            scan,
            policy: &setup.policy,
            asked_for: self.job.asked_policy().is_some(),
        };
        // Before the search, which may extend a branch by what is sent only now.
        let lifetime = setup.cache_lifetime.unwrap_or(CACHE_LIFETIME);
        let tools = scan.tools_in_prompt();
        let tools = fingerprint_of(tools.as_bytes(), self.job.opened.keys.fingerprint_key());
        let recently = branches.sent_within(lifetime, chain, tools);
        self.branch = client_session.find_or_open_branch(branches, &store, search, setup)?;
        // After the search, which reads branches from the store.
        self.sent_before = SentBefore {
            recently,
            sometime: branches.sent_sometime(chain, tools),
        };
        let branch = branches.get(self.branch).ok_or_else(branch_is_gone)?;
        self.branch_mark = Some(branch.begin_request());
        Ok(branch)
    }

    /// Admits the new messages to the conversation, and stores their outputs.
    pub(super) fn admit_new(
        &mut self,
        branch: &mut Branch,
        reading: &BodyReading<'_>,
        setup: &Setup,
    ) -> Result<(), BranchError> {
        let scan = &reading.scan;
        // Everything that decides how outputs are shown is set before the first one is admitted.
        self.prepare(branch, scan, setup)?;
        branch.id().as_str().clone_into(&mut self.session);
        let begins = branch.fingerprints().len() == 0
            && self.options.tools.from_start
            && !setup.policy.sends_unchanged();
        branch.admit(scan, &reading.fingerprints)?;
        if begins {
            branch.strip_reasoning_without_our_tools()?;
        }
        let model = self.model_limits.model.as_ref();
        self.marked = asked_cache::marked_parts(model, branch, scan);
        Ok(())
    }

    /// Tells a branch what the request says besides its messages.
    pub(super) fn prepare(
        &self,
        branch: &mut Branch,
        scan: &BodyScan<'_>,
        setup: &Setup,
    ) -> Result<(), BranchError> {
        branch.set_policy(&setup.policy, self.job.asked_policy().is_some())?;
        branch.session().set_limits(setup.limits);
        branch
            .session()
            .set_bound_reasoning(self.options.reasoning.bound)?;
        branch.note_idle_time();
        let tools = scan.tools_in_prompt();
        branch.set_tools(&tools, self.job.opened.keys.fingerprint_key());
        branch.budget_first_ref(self.options.tools);
        Ok(branch.budget_refs_of_log(&self.options)?)
    }

    /// Lets the policy plan the window, unless the request is to be sent unchanged. Returns the
    /// plan that waits for a summary.
    pub(super) fn decide(
        &mut self,
        branch: &mut Branch,
        scan: &BodyScan<'_>,
    ) -> Result<Option<PendingSummary>, BranchError> {
        branch.session().begin_call();
        // A reason to leave the body alone holds only as long as the body fits.
        self.untouched = self.untouched.filter(|_| branch.fits_unchanged());
        if self.untouched.is_some() {
            return Ok(None);
        }
        branch.budget_retrieval_tools(&self.options)?;
        // Some designs act after outputs have come, and others only before a call.
        let after_outputs = scan.role(scan.len().saturating_sub(1)) == Some(Role::Tool);
        let moments = [Moment::AfterOutputs, Moment::BeforeCall];
        // After outputs both moments are due, in this order; else only the second.
        let moments = moments.get(usize::from(!after_outputs)..);
        match branch.check(moments.unwrap_or_default()) {
            // The plan was not made. The window without it is still valid, so it is sent, but the
            // failure counts.
            Err(BranchError::Session(SessionError::Store(error))) if !is_conflict(&error) => {
                self.job.store_failed(&error);
                Ok(None)
            }
            checked => checked,
        }
    }

    /// Builds the body to send, and determines what must be durable before a model reads it.
    pub(super) fn splice(
        &self,
        branch: &mut Branch,
        scan: &BodyScan<'_>,
        pending: Option<PendingSummary>,
    ) -> Result<PlannedSend, BranchError> {
        let waits = self.job.settings.config.compaction == SummaryMode::Wait;
        if waits && self.mode == ProxyMode::On && pending.is_some() {
            // The body is made when the summary has come.
            branch.flush()?;
            return Ok(PlannedSend {
                pending,
                ..PlannedSend::default()
            });
        }
        // Composing may have to shrink the window at once. Then the plan that wanted a summary is
        // outdated, and the summary would come too late.
        let decided = branch.decisions();
        let mut outgoing = branch.compose(scan, &self.options)?;
        let partial = self.job.partial.as_ref();
        if self.untouched.is_some() || (partial.is_some() && !outgoing.has_new_window) {
            // Of a conversation that the provider keeps, the client sends only the end.
            let own = partial
                .map(|body| BodyScan::new(body, scan.dialect()))
                .transpose();
            let own = own.map_err(|why| BranchError::Mismatch(why.to_string()))?;
            let scan = own.as_ref().unwrap_or(scan);
            outgoing.body =
                branch.client_messages_with_our_tools(scan, &self.options, outgoing.offered)?;
        }
        let outgoing = self.job.with_reserved_body(outgoing);
        let pending = pending.filter(|_| branch.decisions() == decided);
        // Messages that are sent unchanged need not be durable, because the client has them.
        // Everything else depends on a plan, and often shows a ref.
        let as_it_came = self.mode != ProxyMode::On || self.untouched.is_some();
        let may_follow = as_it_came || branch.no_new_plan_since_send();
        if may_follow {
            branch.flush_soon();
        }
        Ok(PlannedSend {
            outgoing,
            pending,
            unwritten: (!may_follow).then(|| Arc::clone(branch.staged())),
        })
    }

    /// A request to its upstream with the client's headers, and a body that is new or the client's
    /// own. None if the path is not valid there.
    pub(crate) fn upstream_request(
        &self,
        body: ProxyBody,
        is_new: bool,
        drops_stale_reasoning: bool,
    ) -> Option<Request<ProxyBody>> {
        // The answer has to be read, so the upstream must not compress it.
        let mut sent = headers::to_upstream_uncompressed(self.job.headers.clone());
        if is_new {
            // A new body is not compressed, even if the client's was.
            headers::remove_encoding(&mut sent);
        }
        if drops_stale_reasoning {
            headers::add_beta(&mut sent, BINDING_BETA);
        }
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.route.address(&self.upstream_path)?;
        *request.headers_mut() = sent;
        Some(request)
    }

    /// Under which key something is learned about the model.
    pub(crate) fn model_key(&self) -> ModelKey<'_> {
        self.job.model_key(&self.route, &self.model)
    }

    /// The model that writes summaries with the client's credentials.
    pub(crate) fn summary_model(&self) -> &str {
        // The client pays for the summary, with the model that it asks anyway, unless a policy
        // names a cheaper one.
        let own = self.policy().map(|policy| policy.compaction.model.as_str());
        own.filter(|model| !model.is_empty()).unwrap_or(&self.model)
    }

    /// How often a rejected request is repeated under its policy.
    pub(crate) fn recoveries(&self) -> u32 {
        self.policy().map_or(0, |policy| policy.recovery.retries)
    }

    pub(super) fn policy(&self) -> Option<&Arc<Policy>> {
        let name = self.job.policy_name(&self.route, &self.model);
        self.job.settings.policy(name)
    }
}

/// True if the answer comes through this request, so that calls of our tools can be served.
fn answers_pass_here(work: &PlanningJob, scan: &BodyScan<'_>) -> bool {
    // Callers of this endpoint call the model themselves.
    let is_compress = work.path.starts_with(own_endpoint::COMPRESS);
    // The provider answers later, and the client fetches that answer by its id.
    let is_background = scan.json(scan.request().background) == "true";
    !is_compress && !is_background
}

pub(super) fn branch_is_gone() -> BranchError {
    BranchError::Mismatch("the branch is gone".to_owned())
}
