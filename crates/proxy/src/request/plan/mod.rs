//! Planning: the work on one request, from its body to the body that is sent.
//!
//! All of it is synchronous. It runs on a thread that may block, with a deadline. If it fails or
//! panics, the request passes unchanged. `server::model_call` and `/v1/compress` call it.

mod asked_cache;
mod call_limits;
mod later_work;
mod managed;

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use trimtab_model::Dialect;
use trimtab_wire::scan::BodyScan;

use crate::access::Tenant;
use crate::conversation::branch::OutgoingBody;
use crate::conversation::client_session_id;
use crate::conversation::client_sessions;
use crate::conversation::store_state::OpenedStore;
use crate::models::{KnownModel, ModelKey};
use crate::prefix_cache::fingerprint::FingerprintChain;
use crate::prefix_cache::parsed_bodies::KnownPrefix;
use crate::prefix_cache::prefix_hash::PrefixHash;
use crate::request::bypass_reason::Unmanaged;
use crate::request::context::RequestContext;
use crate::request::shared::{LiveSettings, SharedState};
use crate::resources::memory_budget::Reservation;
use crate::routing::route::UpstreamRoute;
use crate::transport::headers;

pub(crate) use managed::{CONFLICTS, ManagedRequest, PlannedSend};

/// Bytes of memory that planning needs per byte of the body: for its texts in the log, in the
/// writes to the store and in the new body.
pub(crate) const PLANNING_PER_BYTE: usize = 5;
/// The same per byte of a prefix that is known: for its copy in the new body and the check of that.
const PLANNING_PER_KNOWN_BYTE: usize = 2;
/// Bytes of memory that planning needs per JSON object in the body, which is at most a message or a
/// part. Bodies of many short messages took 700 to 800.
const PLANNING_PER_OBJECT: usize = 1024;

/// A request to plan.
#[derive(Clone)]
pub(crate) struct PlanningJob {
    pub(crate) shared: Arc<SharedState>,
    /// The store that was open when the request arrived.
    pub(crate) opened: Arc<OpenedStore>,
    pub(crate) settings: Arc<LiveSettings>,
    pub(crate) dialect: Dialect,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    /// Its tenant.
    pub(crate) tenant: Tenant,
    /// The decompressed body.
    pub(crate) body: Bytes,
    /// The client's own body, if it has only a part of the conversation and `body` was completed.
    pub(crate) partial: Option<Bytes>,
    /// The hash of the body, if it was computed on arrival.
    pub(crate) hashed: Option<PrefixHash>,
    /// The known prefix of the body, if it was searched for already.
    pub(crate) known: Option<KnownPrefix>,
}

/// Plans a request, up to the body to send.
pub(crate) fn plan(mut job: PlanningJob) -> Result<(ManagedRequest, PlannedSend), Unmanaged> {
    let (opened, body) = (Arc::clone(&job.opened), job.body.clone());
    let (tenant, key) = (job.tenant.clone(), opened.keys.fingerprint_key());
    // Find the messages in the body, and the fingerprints by which they are known again.
    let hashed = job.hashed.take();
    // There is no hash yet if the body was decompressed.
    let hashed = hashed.unwrap_or_else(|| PrefixHash::of(key, &body));
    let of = (tenant.as_str(), job.dialect);
    let known = job.known.take();
    let known = known.or_else(|| opened.parsed_bodies.find(of, (&body, &hashed), key));
    let read = opened.parsed_bodies.read(of, (&body, &hashed), key, known);
    let read = read.map_err(|why| Unmanaged::not_understood(&why))?;
    // Choose the upstream and the mode, and find out which conversations it may belong to.
    let mut managed = ManagedRequest::new(job, &read)?;
    let planned = managed.on_conversation(&read, |managed, branch, setup| {
        managed.admit_new(branch, &read, setup)?;
        let pending = managed.decide(branch, &read.scan)?;
        managed.splice(branch, &read.scan, pending)
    })?;
    // Kept only after everything succeeded: a body that made planning fail is parsed anew next
    // time.
    opened.parsed_bodies.keep(read);
    managed.client_session.update_memory_use();
    Ok((managed, planned))
}

/// The reason for a body without a tenant.
pub(crate) fn decide_without_tenant(dialect: Dialect, body: &[u8], detail: &str) -> Unmanaged {
    let scan = BodyScan::new(body, dialect).ok();
    let model = scan.as_ref().and_then(BodyScan::model).map(String::from);
    Unmanaged {
        model,
        ..Unmanaged::because("no-credential").with_detail(detail.to_owned())
    }
}

/// The reason for a body that is too short to be trimmed.
pub(crate) fn decide_small_body(dialect: Dialect, body: &[u8]) -> Unmanaged {
    match BodyScan::new(body, dialect) {
        Ok(scan) => {
            let is_partial = scan.is_partial();
            Unmanaged {
                model: scan.model().map(String::from),
                ..Unmanaged::because(if is_partial { "partial" } else { "small" })
            }
        }
        Err(why) => Unmanaged::not_understood(&why),
    }
}

/// The approximate memory that planning a body needs, if its first `known` bytes were planned
/// before.
pub(crate) fn planning_bytes(body: &[u8], known: usize) -> usize {
    let new = body.get(known..).unwrap_or_default();
    // Many small messages take more memory than one long text of as many bytes. A brace within a
    // text is no object: there, a quote after it is escaped.
    let objects = memchr::memchr_iter(b'{', new).filter(|at| {
        let mut after = new.iter().skip(at + 1);
        let first = after.find(|byte| !byte.is_ascii_whitespace());
        matches!(first, Some(b'"' | b'}'))
    });
    let objects = objects.count();
    known * PLANNING_PER_KNOWN_BYTE + new.len() * PLANNING_PER_BYTE + objects * PLANNING_PER_OBJECT
}

impl PlanningJob {
    /// A job for a body that is complete and was not hashed.
    pub(crate) fn new(
        request: &RequestContext,
        opened: Arc<OpenedStore>,
        dialect: Dialect,
        tenant: Tenant,
        body: Bytes,
    ) -> Self {
        Self {
            shared: Arc::clone(&request.shared),
            opened,
            settings: Arc::clone(&request.settings),
            dialect,
            path: request.path.clone(),
            headers: request.headers.clone(),
            tenant,
            body,
            partial: None,
            hashed: None,
            known: None,
        }
    }

    /// Searches for the known prefix of the body, and returns the approximate memory that planning
    /// needs.
    pub(crate) fn find_known_prefix(&mut self) -> usize {
        // A body that was decompressed is hashed later, on another thread.
        self.known = self.hashed.as_ref().and_then(|hashed| {
            let key = self.opened.keys.fingerprint_key();
            let of = (self.tenant.as_str(), self.dialect);
            self.opened
                .parsed_bodies
                .find(of, (&self.body, hashed), key)
        });
        planning_bytes(
            &self.body,
            self.known.as_ref().map_or(0, KnownPrefix::bytes),
        )
    }

    /// An empty reservation for its tenant, which can grow.
    pub(crate) fn reservation(&self) -> Reservation {
        let tenant = Some(self.tenant.as_str());
        self.shared.memory.always_reserve(tenant, 0)
    }

    /// Counts the memory of a new body until its last copy is dropped. A request holds it while its
    /// answer comes, which is long after the memory for planning was returned.
    pub(crate) fn with_reserved_body(&self, mut outgoing: OutgoingBody) -> OutgoingBody {
        outgoing.body = outgoing.body.map(|body| {
            let mut memory = self.reservation();
            memory.set(body.len());
            memory.attach(body)
        });
        outgoing
    }

    /// The name of the client session. None for an empty conversation without a hint.
    fn family_name(&self, scan: &BodyScan<'_>, chain: &FingerprintChain) -> Option<String> {
        let keys = &self.opened.keys;
        let hint = client_session_id::find(&self.headers, scan);
        // Clients without session ids repeat their first message in every request of a
        // conversation.
        let beginning = chain.first_message().map(u128::to_le_bytes);
        let name = match hint {
            Some(hint) => hint.session_name(keys, &self.tenant),
            None => keys.name(&self.tenant, &[&beginning?]),
        };
        Some(client_sessions::name(&self.tenant, self.dialect, &name))
    }

    /// True if the tenant has used up its store quota.
    fn is_over_quota(&self) -> bool {
        let most = self.settings.config.quotas.store_bytes;
        let store = self.opened.store.as_ref();
        // A store that does not say how much it holds cannot be written either, most likely.
        most > 0
            && self
                .shared
                .store_use
                .bytes(store, &self.tenant)
                .is_some_and(|bytes| bytes >= most)
    }

    fn model_limits(&self, route: &UpstreamRoute, model: &str) -> KnownModel {
        let rule = self.settings.routes.rule(model);
        let models = &self.shared.models;
        models.model_limits(self.model_key(route, model), rule)
    }

    fn model_key<'a>(&'a self, route: &'a UpstreamRoute, model: &'a str) -> ModelKey<'a> {
        ModelKey {
            tenant: self.tenant.as_str(),
            upstream: &route.upstream.name,
            model,
        }
    }

    /// Reports a failure of the store, and returns the reason why the request passes.
    fn store_failed(&self, error: &trimtab_store::Error) -> &'static str {
        let state = &self.shared.store_state;
        state.note_failure(error);
        if state.usable().is_some() {
            "failed"
        } else {
            "store"
        }
    }

    /// The policy that the request's header asks for.
    fn asked_policy(&self) -> Option<&str> {
        headers::header_text(&self.headers, &headers::PRESET)
            .filter(|name| self.settings.policy(name).is_some())
    }

    /// The policy of the request: from its header, its model, its upstream or the settings, in this
    /// order.
    fn policy_name<'a>(&'a self, route: &'a UpstreamRoute, model: &str) -> &'a str {
        let by_model = || self.settings.routes.rule(model)?.preset.as_deref();
        self.asked_policy()
            .or_else(by_model)
            .or(route.upstream.preset.as_deref())
            .unwrap_or(&self.settings.config.preset)
    }
}
