//! A request whose window is managed, and the conversation that it belongs to.

use std::sync::Arc;
use std::time::Duration;

use trimtab::session::{Limits, Moment, Pending, SessionError, Setup};
use trimtab_engine::policy::Policy;
use trimtab_model::{Role, work};
use trimtab_wire::catalogue::Cache;
use trimtab_wire::scan::Scan;

use super::{Decided, Work};
use crate::config::{Compaction, Mode};
use crate::conversation::branch::{Branch, Outgoing, Trouble, Ways};
use crate::conversation::durability::{ReadUntil, Unwritten, Waits};
use crate::conversation::family::{Branches, Family};
use crate::conversation::token_renewal::Came;
use crate::models::{Known, Whom};
use crate::prefix_cache::parsed_bodies::Read;
use crate::routing::route::Route;

/// The largest share of a window that is kept free for an answer, as a divisor: clients ask
/// for far more than answers take.
const ANSWER_SHARE: u64 = 8;
/// An answer of so many tokens is always kept room for.
const FREE_ANSWER: u64 = 4_096;

/// How often a request is planned again because another process wrote to its conversation.
pub(crate) const CONFLICTS: u32 = 2;

/// A request whose window is managed.
pub(crate) struct Managed {
    pub(crate) work: Work,
    pub(crate) route: Arc<Route>,
    /// The part of the path that is sent.
    pub(crate) rest: String,
    pub(crate) model: String,
    pub(crate) mode: Mode,
    pub(crate) known: Known,
    pub(crate) family: Arc<Family>,
    /// Where families of the same name are listed, for credentials that are renewed.
    pub(super) listed: Option<String>,
    pub(crate) branch: usize,
    pub(crate) session: String,
    /// True if the request is sent as it came unless it overflows.
    pub(crate) untouched: Option<&'static str>,
    pub(crate) ways: Ways,
    pub(crate) outgoing: Outgoing,
    pub(crate) pending: Option<Pending>,
    /// What is to be made durable.
    pub(crate) unwritten: Option<Unwritten>,
    /// How far the conversation was read, where nobody looked for more.
    pub(super) unchecked: Option<ReadUntil>,
}

impl Managed {
    /// Finds its conversation, lets in what is new and makes the first body.
    pub(super) fn begin(mut self, read: &Read<'_>) -> Decided {
        let family = Arc::clone(&self.family);
        let mut branches = family.branches();
        if work::is_cancelled() {
            // Too late, and nothing is half done yet.
            return Decided::Pass {
                reason: "slow",
                detail: String::new(),
                model: Some(self.model),
            };
        }
        let setup = self.setup(&read.scan);
        let mut tries = 0;
        loop {
            let trouble = match self.plan_on(&family, &mut branches, read, &setup) {
                Ok(()) => return Decided::Manage(Box::new(self)),
                Err(trouble) => trouble,
            };
            match &trouble {
                // Which of them is outdated does not matter: all are read again.
                trouble if trouble.is_conflict() => *branches = Branches::default(),
                Trouble::Session(_) => branches.forget(self.branch),
                Trouble::Mismatch(_) => {}
            }
            tries += 1;
            if tries > CONFLICTS || !trouble.is_conflict() {
                drop(branches);
                return self.passed(&trouble);
            }
        }
    }

    /// The request passes as it came, because of `trouble`.
    fn passed(self, trouble: &Trouble) -> Decided {
        let reason = match trouble {
            Trouble::Session(SessionError::Store(error)) => self.work.store_failed(error),
            _ => "failed",
        };
        Decided::Pass {
            reason,
            detail: trouble.to_string(),
            model: Some(self.model),
        }
    }

    fn plan_on(
        &mut self,
        family: &Family,
        branches: &mut Branches,
        read: &Read<'_>,
        setup: &Setup,
    ) -> Result<(), Trouble> {
        let (scan, trail) = (&read.scan, &read.trail);
        let store = Arc::clone(&self.work.opened.store);
        let came = self
            .listed
            .as_deref()
            .map(|place| Came { place, scan, trail });
        let number = family.branch(branches, &store, trail, setup, came.as_ref())?;
        self.branch = number;
        let gone = || Trouble::Mismatch("the branch is gone".to_owned());
        let branch = branches.get(number).ok_or_else(gone)?;
        self.first(branch, read, setup)
    }

    /// What a model must not read the request before; the rest is seen to.
    pub(crate) fn waits(&mut self) -> Option<Waits> {
        let unchecked = self.unchecked.take();
        let flush = self.unwritten.take().and_then(Unwritten::before);
        // What is written where others wrote is refused: that is a check as well.
        flush.map(Waits::Flush).or(unchecked.map(Waits::Check))
    }

    /// The same request, to be decided on anew: another process has written to its conversation.
    pub(crate) fn work_again(&self) -> Work {
        Work {
            shared: Arc::clone(&self.work.shared),
            opened: Arc::clone(&self.work.opened),
            tenant: self.work.tenant.clone(),
            settings: Arc::clone(&self.work.settings),
            dialect: self.work.dialect,
            path: self.work.path.clone(),
            headers: self.work.headers.clone(),
            body: self.work.body.clone(),
            is_pieced: self.work.is_pieced,
            hashed: None,
        }
    }

    /// The same where nothing has to be waited for: the conversation is in memory, nobody else
    /// is at work on it, and its window is not too large to think about.
    pub(super) fn begin_quickly(mut self, read: &Read<'_>) -> Decided {
        let waits = self.work.settings.config.compaction == Compaction::Wait;
        let family = Arc::clone(&self.family);
        let setup = self.setup(&read.scan);
        let begun = family.free_branches().is_some_and(|mut branches| {
            let is_current = branches.are_current(self.work.opened.store.as_ref());
            let found = branches.find(&read.trail);
            let Some(number) = found.filter(|_| is_current && !waits) else {
                return false;
            };
            self.branch = number;
            let branch = branches.get(number).filter(|branch| branch.is_quick());
            branch.is_some_and(|branch| {
                // Nobody here may ask the store whether it is up to date: the request will.
                self.unchecked = Some(branch.read_until(&self.work.opened.store));
                branch.staged().hurry(true);
                let begun = self.first(branch, read, &setup);
                branch.staged().hurry(false);
                begun.is_ok()
            })
        });
        if begun {
            Decided::Manage(Box::new(self))
        } else {
            Decided::Later(Box::new(self.work))
        }
    }

    fn first(
        &mut self,
        branch: &mut Branch,
        read: &Read<'_>,
        setup: &Setup,
    ) -> Result<(), Trouble> {
        let scan = &read.scan;
        branch.follow(&setup.policy, self.work.asked_policy().is_some())?;
        branch.session().set_limits(setup.limits);
        branch.wakes();
        let tools = scan.json(scan.request().tools);
        branch.set_tools(tools, self.work.opened.keys.prints());
        branch.id().as_str().clone_into(&mut self.session);
        branch.count_first_ref(scan, &self.ways);
        branch.admit(scan, &read.trail)?;
        if !branch.fits_as_it_came() {
            self.untouched = None;
        }
        if self.untouched.is_none() {
            branch.count_ours(scan, &self.ways)?;
            let after_outputs = scan.role(scan.len().saturating_sub(1)) == Some(Role::Tool);
            let moments = [Moment::AfterOutputs, Moment::BeforeCall];
            let moments = moments
                .get(usize::from(!after_outputs)..)
                .unwrap_or_default();
            self.pending = branch.check(moments)?;
        }
        let waits = self.work.settings.config.compaction == Compaction::Wait;
        if waits && self.mode == Mode::On && self.pending.is_some() {
            return Ok(branch.flush()?);
        }
        let decided = branch.decisions();
        self.outgoing = branch.compose(scan, &self.ways, Some(read.prints()))?;
        if branch.decisions() != decided {
            // The window had to be made smaller at once: the summary would come too late.
            self.pending = None;
        }
        // Messages that are sent as they came rest on nothing. Whatever else is sent rests on
        // a decision, and often shows a ref.
        let staged = Arc::clone(branch.staged());
        let as_it_came = self.mode != Mode::On || self.untouched.is_some();
        self.unwritten = Some(if as_it_came || branch.rests_on_nothing() {
            Unwritten::Behind(branch.due().later(&staged))
        } else {
            Unwritten::Before(staged)
        });
        Ok(())
    }

    /// Works on the conversation again: after an overflow, after a hidden round, at the end.
    pub(crate) fn with<T>(
        &self,
        work: impl FnOnce(&mut Branch, &Scan<'_>) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let scan = Scan::new(&self.work.body, self.work.dialect)
            .map_err(|why| Trouble::Mismatch(why.to_string()))?;
        self.on_branch(|branch| work(branch, &scan))
    }

    /// The same, for what does not need the body. What it writes is durable when it returns.
    pub(crate) fn on_branch<T>(
        &self,
        work: impl FnOnce(&mut Branch) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let mut branches = self.family.branches();
        if work::is_cancelled() {
            return Err(Trouble::Mismatch(work::Cancelled.to_string()));
        }
        let gone = || Trouble::Mismatch("the branch is gone".to_owned());
        let branch = branches.get(self.branch).ok_or_else(gone)?;
        let done = work(branch);
        let staged = Arc::clone(branch.staged());
        // The next request does not wait for the disk.
        drop(branches);
        let done = done.and_then(|done| {
            staged.flush().map_err(SessionError::from)?;
            Ok(done)
        });
        if let Err(Trouble::Session(_)) = done {
            self.forget();
        }
        done
    }

    /// Forgets the conversation after a failure: it is read from the store when it comes back.
    pub(crate) fn forget(&self) {
        self.family.branches().forget(self.branch);
    }

    /// Whom it asks.
    pub(crate) fn whom(&self) -> Whom<'_> {
        (&self.route.upstream.name, &self.model)
    }

    /// What the request must fit into where the model has this window.
    pub(crate) fn limits(&self, scan: &Scan<'_>, window: Option<u64>) -> Limits {
        let rule = self.work.settings.routes.rule(&self.model);
        let longest = rule.and_then(|rule| rule.max_output);
        Limits {
            window,
            max_output: reserve(window, scan.answer_limit(), longest),
            bytes: None,
        }
    }

    /// What a session of this conversation is opened with.
    /// The model that writes summaries at the client's cost.
    pub(crate) fn summary_model(&self) -> &str {
        let own = self.policy().map(|policy| policy.compaction.model.as_str());
        own.filter(|model| !model.is_empty()).unwrap_or(&self.model)
    }

    fn policy(&self) -> Option<&Arc<Policy>> {
        let name = self.work.policy_name(&self.route, &self.model);
        self.work.settings.policy(name)
    }

    fn setup(&self, scan: &Scan<'_>) -> Setup {
        let policy = self.policy().cloned().unwrap_or_default();
        let model = self.known.model.as_ref();
        Setup {
            dialect: self.work.dialect,
            limits: self.limits(scan, self.known.window),
            prices: model.and_then(|model| model.prices),
            tiers: model.map_or_else(Vec::new, |model| model.tiers.clone()),
            cache_lifetime: model.and_then(|model| lifetime(&model.cache, scan)),
            calibration: self.work.shared.models.calibration(self.whom()),
            ..Setup::new(policy)
        }
    }
}

/// How long the provider keeps the prompt: longer, where the client asks and pays for it.
fn lifetime(cache: &Cache, scan: &Scan<'_>) -> Option<Duration> {
    let markers = scan.request().markers.iter();
    let asks = |json: &str| json.contains("\"1h\"");
    let long = markers
        .into_iter()
        .any(|marker| asks(scan.json(marker.value)));
    let long = cache.long_lifetime.filter(|_| long);
    long.or(cache.lifetime)
}

/// What is kept free for the answer: what the client asks for, within reason, or within what
/// the settings say is the longest.
fn reserve(window: Option<u64>, asked: Option<u64>, longest: Option<u64>) -> Option<u64> {
    let share = window.map_or(u64::MAX, |window| (window / ANSWER_SHARE).max(FREE_ANSWER));
    match (asked, longest) {
        (asked, Some(longest)) => Some(asked.map_or(longest, |asked| asked.min(longest))),
        (Some(asked), None) => Some(asked.min(share)),
        (None, None) => window.map(Limits::usual_answer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_is_what_answers_take() {
        let window = Some(200_000);
        assert_eq!(reserve(window, Some(1_000), None), Some(1_000));
        assert_eq!(reserve(window, Some(128_000), None), Some(25_000));
        assert_eq!(reserve(None, Some(128_000), None), Some(128_000));
        assert_eq!(reserve(window, None, None), Some(6_250));
        assert_eq!(reserve(Some(1_000_000), None, None), Some(8_192));
        assert_eq!(reserve(None, None, None), None);
        // The settings know better than both.
        assert_eq!(reserve(window, Some(128_000), Some(60_000)), Some(60_000));
        assert_eq!(reserve(window, Some(1_000), Some(60_000)), Some(1_000));
        assert_eq!(reserve(window, None, Some(60_000)), Some(60_000));
    }
}
