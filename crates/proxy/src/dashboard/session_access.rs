//! A session that the dashboard shows: the one in memory, or else the one in the store.

use std::sync::Arc;

use http::StatusCode;
use trimtab::request::may_bind_reasoning;
use trimtab::session::{Limits, Session, SessionError, Setup};
use trimtab_model::Dialect;
use trimtab_store::{SessionId, Stream};

use super::api::{ApiProblem, ApiRequest};
use crate::conversation::client_sessions::ClientSession;
use crate::conversation::store_state::OpenedStore;
use crate::models::ModelKey;

/// A session by its name.
pub(super) struct SessionAccess<'a> {
    request: &'a ApiRequest,
    opened: Arc<OpenedStore>,
    pub(super) id: SessionId,
}

impl<'a> SessionAccess<'a> {
    /// The session that a request names in its query.
    pub(super) fn new(request: &'a ApiRequest, id: &str) -> Result<Self, ApiProblem> {
        let no_store = || {
            let why = "the store cannot be used now\nhint: the page Doctor says why";
            ApiProblem::new(StatusCode::SERVICE_UNAVAILABLE, why)
        };
        let opened = request.shared.store_state.readable().ok_or_else(no_store)?;
        let id = SessionId::new(id).map_err(|error| ApiProblem::bad(error.to_string()))?;
        Ok(Self {
            request,
            opened,
            id,
        })
    }

    /// Looks at the session. Whoever plans a request of it waits meanwhile, so this must be short.
    pub(super) fn read<T>(
        &self,
        look: impl FnOnce(&mut Session) -> Result<T, SessionError>,
    ) -> Result<T, ApiProblem> {
        if let Some(client_session) = self.client_session() {
            let mut branches = client_session.branches();
            // What was erased must not be shown from memory.
            branches.refresh(self.opened.store.as_ref(), &self.id)?;
            if let Some(branch) = branches.of_session(self.id.as_str()) {
                return Ok(look(branch.session())?);
            }
        }
        if self.opened.store.position(&self.id, Stream::Log)? == 0 {
            let why = "there is no such session";
            return Err(ApiProblem::new(StatusCode::NOT_FOUND, why));
        }
        let store = Arc::clone(&self.opened.store);
        let mut session = Session::open(store, self.id.clone(), self.usual_setup())?;
        Ok(look(&mut session)?)
    }

    /// What a session is opened with of which no request came yet.
    fn usual_setup(&self) -> Setup {
        let settings = &self.request.settings;
        let policy = settings.policy(&settings.config.preset);
        let mut setup = Setup::new(policy.cloned().unwrap_or_default());
        setup.dialect = dialect_in_name(self.id.as_str());
        if let Some(entry) = self.request.shared.history.session(self.id.as_str()) {
            let models = &self.request.shared.models;
            let rule = settings.routes.rule(&entry.model);
            let model_key = ModelKey {
                tenant: tenant_in_name(self.id.as_str()),
                upstream: &entry.upstream,
                model: &entry.model,
            };
            let known = models.model_limits(model_key, rule);
            setup.limits = Limits {
                window: known.window,
                ..Limits::default()
            };
            setup.bound_reasoning = may_bind_reasoning(known.bound_reasoning, setup.dialect);
            setup.prices = known.model.and_then(|model| model.prices);
            setup.calibration = models.calibration(model_key);
        }
        setup
    }

    /// The client session that has the session in memory, if one has.
    fn client_session(&self) -> Option<Arc<ClientSession>> {
        let name = self.id.as_str();
        let sessions = &self.opened.client_sessions;
        let base = name.rsplit_once('.');
        let base = base.filter(|(_, number)| number.parse::<usize>().is_ok());
        let found = sessions.loaded(name);
        found.or_else(|| sessions.loaded(base?.0))
    }
}

/// The tenant in the name of a session of the proxy.
fn tenant_in_name(name: &str) -> &str {
    name.split('/').nth(1).unwrap_or_default()
}

/// The dialect in the name of a session of the proxy.
fn dialect_in_name(name: &str) -> Dialect {
    match name.split('/').nth(2) {
        Some("messages") => Dialect::Messages,
        Some("responses") => Dialect::Responses,
        _ => Dialect::Chat,
    }
}
