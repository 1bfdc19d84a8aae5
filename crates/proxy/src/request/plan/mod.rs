//! The work on one request, from its body to the body that is sent. All of it is synchronous,
//! and may fail or panic without harm. It runs off the threads that serve connections, under a
//! deadline; what is quick and needs no disk runs on them.

mod managed;

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use trimtab_model::Dialect;
use trimtab_wire::scan::{Scan, Unscannable};

use crate::access::Tenant;
use crate::config::Mode;
use crate::conversation::branch::{Outgoing, Ways};
use crate::conversation::client_session_id;
use crate::conversation::family;
use crate::conversation::store_state::OpenedStore;
use crate::conversation::token_renewal;
use crate::models::Known;
use crate::prefix_cache::fingerprint::Trail;
use crate::prefix_cache::parsed_bodies::Read;
use crate::prefix_cache::prefix_hash::Hashed;
use crate::records::record::PromptSizes;
use crate::request::bypass_reason;
use crate::request::context::Asked;
use crate::request::live_settings::Settings;
use crate::request::shared::Shared;
use crate::routing::own_endpoint;
use crate::routing::route::Route;
use crate::transport::headers;

pub(crate) use managed::{CONFLICTS, Managed};

/// As much of a body may be new, in bytes, for a decision about it to be quick.
const QUICK_NEWS: usize = 64 << 10;

/// How long deciding may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// This thread may wait for locks and disks.
    MayWait,
    /// This thread serves connections: what is not quick is left for later.
    Quick,
}

/// A request to be worked on.
pub(crate) struct Work {
    pub(crate) shared: Arc<Shared>,
    /// The store that was open when the request came.
    pub(crate) opened: Arc<OpenedStore>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) dialect: Dialect,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    /// Whose it is.
    pub(crate) tenant: Tenant,
    /// The body, unpacked.
    pub(crate) body: Bytes,
    /// True if the client sent only a part of it, and the provider keeps the rest.
    pub(crate) is_pieced: bool,
    /// The hash of the body, where it was taken while it came.
    pub(crate) hashed: Option<Hashed>,
}

/// What is to be done with a request.
pub(crate) enum Decided {
    /// It passes as it came.
    Pass {
        /// Why.
        reason: &'static str,
        /// More about why, where something failed.
        detail: String,
        /// The model that it asks for.
        model: Option<String>,
    },
    /// It is managed.
    Manage(Box<Managed>),
    /// It takes longer than this thread can wait.
    Later(Box<Work>),
}

/// Whether a tenant may store more.
enum QuotaState {
    Free,
    UsedUp,
    /// It takes longer to find out than this thread can wait.
    Unknown,
}

/// What is to be done with a body of which nobody knows whose it is.
pub(crate) fn without_tenant(dialect: Dialect, body: &[u8], detail: &str) -> Decided {
    let model = Scan::new(body, dialect).ok();
    Decided::Pass {
        reason: "no-credential",
        detail: detail.to_owned(),
        model: model.as_ref().and_then(model_of),
    }
}

/// What is to be done with a body that has nothing to trim.
pub(crate) fn small(dialect: Dialect, body: &[u8]) -> Decided {
    match Scan::new(body, dialect) {
        Ok(scan) if scan.is_partial() => pass("partial", model_of(&scan)),
        Ok(scan) => pass("small", model_of(&scan)),
        Err(why) => not_understood(&why),
    }
}

fn model_of(scan: &Scan<'_>) -> Option<String> {
    scan.model().map(String::from)
}

fn not_understood(why: &Unscannable) -> Decided {
    Decided::Pass {
        reason: "not-understood",
        detail: why.to_string(),
        model: None,
    }
}

fn pass(reason: &'static str, model: Option<String>) -> Decided {
    Decided::Pass {
        reason,
        detail: String::new(),
        model,
    }
}

impl Work {
    /// The work on the body of a request, which came in one piece and was not hashed.
    pub(crate) fn new(
        request: &Asked,
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
            is_pieced: false,
            hashed: None,
        }
    }

    /// True if the decision may be a quick one: little of the body is new.
    pub(crate) fn may_be_quick(&self) -> bool {
        let of = (self.tenant.as_str(), self.dialect);
        self.hashed.is_some() && self.opened.memos.may_know(of, &self.body, QUICK_NEWS)
    }

    /// Decides what is to be done, and does what can be done now.
    pub(crate) fn decide(mut self, pace: Pace) -> Decided {
        let body = self.body.clone();
        if body.len() < self.settings.config.limits.session_bytes {
            return small(self.dialect, &body);
        }
        let opened = Arc::clone(&self.opened);
        let tenant = self.tenant.clone();
        let of = (tenant.as_str(), self.dialect);
        let key = opened.keys.prints();
        let hashed = self.hashed.take();
        let hashed = hashed.unwrap_or_else(|| Hashed::of(key, &body));
        let read = match opened.memos.read(of, (&body, &hashed), key) {
            Ok(read) => read,
            Err(why) => return not_understood(&why),
        };
        let model = model_of(&read.scan);
        if read.scan.is_partial() {
            return pass("partial", model);
        }
        match self.manage(&read, model.unwrap_or_default(), pace) {
            Decided::Manage(managed) => {
                opened.memos.keep(read);
                managed.family.weigh();
                Decided::Manage(managed)
            }
            Decided::Later(mut work) => {
                work.hashed = Some(hashed);
                Decided::Later(work)
            }
            passes @ Decided::Pass { .. } => passes,
        }
    }

    fn manage(self, read: &Read<'_>, model: String, pace: Pace) -> Decided {
        let scan = &read.scan;
        let settings = Arc::clone(&self.settings);
        let chosen = settings
            .routes
            .choose(&self.path, self.dialect, Some(&model), &self.headers);
        let Ok((route, rest)) = chosen else {
            return pass("no-upstream", Some(model));
        };
        let rest = rest.to_owned();
        let mode = headers::mode(&self.headers)
            .unwrap_or_else(|| settings.routes.mode(&settings.config, &route, Some(&model)));
        if mode == Mode::Bypass {
            return pass("bypass", Some(model));
        }
        let Some((name, listed)) = self.family_name(scan, &read.trail) else {
            return pass("empty", Some(model));
        };
        if self.opened.keys.share(&name) < settings.config.holdout {
            return pass("holdout", Some(model));
        }
        match self.quota(pace) {
            QuotaState::Free => {}
            QuotaState::UsedUp => return pass("quota", Some(model)),
            QuotaState::Unknown => return Decided::Later(Box::new(self)),
        }
        let known = self.known(&route, &model);
        // Who only wants the window calls the model without us.
        let is_compress = self.path.starts_with(own_endpoint::COMPRESS);
        let family = self
            .opened
            .families
            .get(&name, settings.config.limits.sessions);
        let managed = Managed {
            untouched: bypass_reason::reason(&self.path, &self.headers, scan),
            ways: Ways {
                offer: settings.config.retrieval && mode == Mode::On && !is_compress,
                lowered: None,
                may_overrun: known
                    .model
                    .as_ref()
                    .is_some_and(|model| model.rules.answer_may_overrun),
            },
            work: self,
            route,
            rest,
            model,
            mode,
            known,
            family,
            listed,
            branch: 0,
            session: String::new(),
            outgoing: Outgoing {
                body: None,
                sizes: PromptSizes::default(),
                tokens: 0,
                answer: None,
                offered: None,
                window: 0,
                repairs: Vec::new(),
                notes: Vec::new(),
            },
            pending: None,
            unwritten: None,
            unchecked: None,
        };
        match pace {
            Pace::MayWait => managed.begin(read),
            Pace::Quick => managed.begin_quickly(read),
        }
    }

    /// The name under which the conversation and its kin are kept, and where that is listed for
    /// when the credential is renewed.
    fn family_name(&self, scan: &Scan<'_>, trail: &Trail) -> Option<(String, Option<String>)> {
        let keys = &self.opened.keys;
        let hint = client_session_id::find(&self.headers, scan);
        let beginning = trail.beginning().map(u128::to_le_bytes);
        let said: &[&[u8]] = match (&hint, &beginning) {
            (Some(hint), _) => &[hint.from.as_bytes(), hint.name.as_bytes()],
            (None, Some(beginning)) => &[beginning],
            (None, None) => return None,
        };
        let name = match &hint {
            Some(hint) => hint.session_name(keys, &self.tenant),
            None => keys.name(&self.tenant, said),
        };
        let dialect = self.dialect;
        let listed = token_renewal::will_be(&self.headers).then(|| {
            let name = keys.common_name(&self.tenant, said);
            format!("proxy-renewed/{}/{name}", family::dialect_name(dialect))
        });
        Some((family::name(&self.tenant, dialect, &name), listed))
    }

    /// Whether its tenant may store more.
    fn quota(&self, pace: Pace) -> QuotaState {
        let most = self.settings.config.quotas.store_bytes;
        if most == 0 {
            return QuotaState::Free;
        }
        let may_wait = pace == Pace::MayWait;
        let store = self.opened.store.as_ref();
        match self.shared.store_use.bytes(store, &self.tenant, may_wait) {
            Some(bytes) if bytes >= most => QuotaState::UsedUp,
            None if !may_wait => QuotaState::Unknown,
            // A store that does not say cannot be written either, most likely.
            _ => QuotaState::Free,
        }
    }

    fn known(&self, route: &Route, model: &str) -> Known {
        let rule = self.settings.routes.rule(model);
        self.shared.models.known(&route.upstream.name, model, rule)
    }

    /// Takes in that the store failed; gives why the request passes.
    fn store_failed(&self, error: &trimtab_store::Error) -> &'static str {
        let state = &self.shared.store_state;
        state.failed(error);
        if state.usable().is_some() {
            "failed"
        } else {
            "store"
        }
    }

    /// The policy that the request itself asks for.
    fn asked_policy(&self) -> Option<&str> {
        headers::text(&self.headers, &headers::PRESET)
            .filter(|name| self.settings.policy(name).is_some())
    }

    /// The policy for the request: by its header, its model, its upstream, the settings.
    fn policy_name<'a>(&'a self, route: &'a Route, model: &str) -> &'a str {
        let by_model = || self.settings.routes.rule(model)?.preset.as_deref();
        self.asked_policy()
            .or_else(by_model)
            .or(route.upstream.preset.as_deref())
            .unwrap_or(&self.settings.config.preset)
    }
}
