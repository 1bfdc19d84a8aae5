//! A session that the dashboard looks at or works on: the one in memory, or else the one in the
//! store.

use std::sync::Arc;

use http::StatusCode;
use trimtab::request::may_bind_reasoning;
use trimtab::session::{Limits, Session, SessionError, Setup};
use trimtab_model::Dialect;
use trimtab_store::{SessionId, StagedStore, Store, Stream};

use super::api::{ApiProblem, ApiRequest};
use super::scratch_store::ScratchStore;
use crate::conversation::branch::Branch;
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
    /// The session that a request names in its query or its order.
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
        self.open(look).map(|(seen, _)| seen)
    }

    /// Works on the session; what it writes is durable when this returns.
    pub(super) fn change<T>(
        &self,
        work: impl FnOnce(&mut Session) -> Result<T, SessionError>,
    ) -> Result<T, ApiProblem> {
        let done = self.open(work).and_then(|(done, staged)| {
            // The next request does not wait for the disk.
            staged.flush()?;
            Ok(done)
        });
        if let (Err(_), Some(client_session)) = (&done, self.client_session()) {
            // It is read from the store again.
            client_session.branches().forget_session(self.id.as_str());
        }
        done
    }

    fn open<T>(
        &self,
        work: impl FnOnce(&mut Session) -> Result<T, SessionError>,
    ) -> Result<(T, Arc<StagedStore>), ApiProblem> {
        if let Some(client_session) = self.client_session() {
            let mut branches = client_session.branches();
            // What was erased must not be shown from memory.
            branches.refresh(self.opened.store.as_ref(), &self.id)?;
            if let Some(branch) = branches.of_session(self.id.as_str()) {
                let done = work(branch.session())?;
                return Ok((done, Arc::clone(branch.staged())));
            }
        }
        let (mut session, staged) = self.open_stored()?;
        Ok((work(&mut session)?, staged))
    }

    /// Works on the branch in memory; none if the session is not in memory.
    pub(super) fn with_branch<T>(&self, work: impl FnOnce(&mut Branch) -> T) -> Option<T> {
        let client_session = self.client_session()?;
        let mut branches = client_session.branches();
        branches.of_session(self.id.as_str()).map(work)
    }

    /// A copy of the session on which work leaves no trace.
    pub(super) fn scratch(&self) -> Result<Session, ApiProblem> {
        let setup = self.with_branch(|branch| {
            // What the store lacks would be missing in the copy.
            branch.flush().map(|()| branch.session().setup().clone())
        });
        let setup = setup.transpose()?.unwrap_or_else(|| self.usual_setup());
        self.check_stored()?;
        let scratch = ScratchStore::of(Arc::clone(&self.opened.store), &self.id)?;
        let session = Session::open(Arc::new(scratch), self.id.clone(), setup)?;
        Ok(session)
    }

    /// Opens the session in the store. Nothing is written before the second value is flushed or
    /// dropped.
    fn open_stored(&self) -> Result<(Session, Arc<StagedStore>), ApiProblem> {
        self.check_stored()?;
        let staged = Arc::new(StagedStore::new(Arc::clone(&self.opened.store)));
        let session = Session::open(
            Arc::clone(&staged) as Arc<dyn Store>,
            self.id.clone(),
            self.usual_setup(),
        )?;
        Ok((session, staged))
    }

    fn check_stored(&self) -> Result<(), ApiProblem> {
        if self.opened.store.position(&self.id, Stream::Log)? > 0 {
            return Ok(());
        }
        let why = "there is no such session";
        Err(ApiProblem::new(StatusCode::NOT_FOUND, why))
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
