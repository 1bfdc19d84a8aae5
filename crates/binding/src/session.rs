//! The session of a host.

use std::sync::{Arc, Mutex, MutexGuard};

use serde::Serialize;
use serde_json::Value;
use trimtab::engine::view::tools::{ToolNames, is_retrieval};
use trimtab::model::estimate::Measure;
use trimtab::model::{Dialect, Usage};
use trimtab::request::binds_reasoning;
use trimtab::retrieval::{Retrieval, RetrievalAnswer};
use trimtab::session::{
    ManualCompaction, Moment, PendingSummary, RecoveryOutcome, Session, SessionError, Setup,
};
use trimtab::single_output::{ShownOutput, show_output};
use trimtab::store::{SessionId, StagedStore, Store, Stream};
use trimtab::wire::catalogue::Catalogue;
use trimtab::wire::overflow::{ProviderResponse, classify};
use trimtab::wire::scan::BodyScan;

use crate::history::{LastRequest, RequestHistory, RequestScan, compare, scan_request};
use crate::options::SessionOptions;
use crate::{BindingError, BoundWindow, bound_window, summary};

/// A conversation of a host.
pub struct BoundSession {
    state: Mutex<State>,
    store: Arc<dyn Store>,
    name: String,
    dialect: Dialect,
}

/// What was done in a session so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SessionFigures {
    /// The name of its session in the store.
    pub session: String,
    /// The messages that came.
    pub messages: usize,
    /// The messages of the window.
    pub window_messages: usize,
    /// The tokens of all messages that came, by estimate.
    pub tokens_before: u64,
    /// The tokens of the window, by estimate.
    pub tokens_after: u64,
    /// The window of the model in tokens, where it is known.
    pub window: Option<u64>,
    /// How often old rounds were replaced by a summary.
    pub compactions: usize,
    /// The prompt tokens that the provider reported last.
    pub reported: Option<u64>,
}

struct State {
    session: Session,
    staged: Arc<StagedStore>,
    /// The number of histories of this name that came before.
    fork: usize,
    last: Option<LastRequest>,
    pending: Option<PendingSummary>,
    reported: Option<u64>,
    /// The model of the last request, and whether it binds its reasoning, if known.
    model: (String, Option<bool>),
}

impl BoundSession {
    /// Opens a session. `options` is a JSON object; `docs/packages.md` lists its fields.
    pub fn open(options: &[u8]) -> Result<Self, BindingError> {
        let options = SessionOptions::read(options)?;
        Self::of_options(options.open_store()?, options)
    }

    /// Opens a session in a store that the program has opened, for example one on a server. The
    /// options name no store.
    pub fn open_in(store: Arc<dyn Store>, options: &[u8]) -> Result<Self, BindingError> {
        let options = SessionOptions::read(options)?;
        if options.names_store() {
            let why = "they name a store, but the session is opened in another one";
            return Err(BindingError::Options(why.to_owned()));
        }
        Self::of_options(store, options)
    }

    fn of_options(store: Arc<dyn Store>, options: SessionOptions) -> Result<Self, BindingError> {
        let setup = options.setup()?;
        let fork = newest_fork(&*store, &options.session)?;
        Ok(Self {
            dialect: setup.dialect,
            state: Mutex::new(State::open(&store, &options.session, fork, setup)?),
            store,
            name: options.session,
        })
    }

    /// The request to send instead of `request`. Call this before each call to the model, with
    /// the whole conversation.
    pub fn window(&self, request: &[u8]) -> Result<BoundWindow, BindingError> {
        self.with_request(request, |state, scan| {
            if let Some(pending) = state.check(Moment::BeforeCall)? {
                state.session.finish(pending)?;
            }
            state.window(scan)
        })
    }

    /// Like the first half of [`window`](Self::window), for hosts whose model writes summaries:
    /// gives the request for a summary if it is time for one. [`answer`](Self::answer) takes it.
    pub fn check(&self, request: &[u8]) -> Result<Option<Vec<u8>>, BindingError> {
        self.with_request(request, |state, _| {
            let pending = state.check(Moment::BeforeCall)?;
            state.ask(pending)
        })
    }

    /// Appends messages that came since the last request, as a list in the host's shape. Gives the
    /// number of messages in the log.
    pub fn admit(&self, rows: &[u8]) -> Result<usize, BindingError> {
        let field = crate::history::list_field(self.dialect);
        let body = [b"{\"", field.as_bytes(), b"\":", rows, b"}"].concat();
        let scanned = scan_request(&body, self.dialect, None)?;
        self.locked(|state| {
            let RequestScan { scan, .. } = &scanned;
            for message in scan.messages(0).flatten() {
                state.session.admit(message)?;
            }
            state.staged.flush()?;
            Ok(state.session.projection().log().len())
        })
    }

    /// Stores one output and gives what the model should see of it. The conversation is not
    /// touched: use this where a host lets you replace outputs only.
    pub fn show_output(
        &self,
        tool: &str,
        call_id: &str,
        text: &str,
    ) -> Result<ShownOutput, BindingError> {
        let (id, setup) = self.locked(|state| {
            let session = &state.session;
            Ok((session.id().clone(), session.setup().clone()))
        })?;
        Ok(show_output(
            &*self.store,
            &id,
            &setup,
            (call_id, tool),
            text,
        )?)
    }

    /// Makes the window smaller after the provider refused it with this answer. True if the host
    /// should ask for the [`window`](Self::window) again and retry; false if the error is not
    /// about the size, or nothing more can be done.
    pub fn recover(&self, status: u16, answer: &[u8]) -> Result<bool, BindingError> {
        let verdict = classify(&ProviderResponse::new(status, answer));
        self.locked(|state| {
            let retry = match state.session.recover(&verdict)? {
                RecoveryOutcome::Retry => true,
                RecoveryOutcome::Summarise(pending) => {
                    state.session.finish(pending)?;
                    true
                }
                RecoveryOutcome::GiveUp => false,
            };
            state.staged.flush()?;
            Ok(retry)
        })
    }

    /// Compacts now. Gives the request for the summary, or none if there is nothing to replace.
    /// [`answer`](Self::answer) takes the summary.
    pub fn compact(&self, instructions: &str) -> Result<Option<Vec<u8>>, BindingError> {
        let wishes = ManualCompaction {
            instructions: instructions.to_owned(),
            ..ManualCompaction::default()
        };
        self.locked(|state| {
            let pending = state.session.compact(&wishes)?;
            state.ask(pending)
        })
    }

    /// Takes a summary; none if there is no model to write one, then a summary is made from
    /// excerpts. Gives the next request if one summary takes several.
    pub fn answer(&self, text: Option<&str>) -> Result<Option<Vec<u8>>, BindingError> {
        self.locked(|state| {
            let mut pending = state.pending.take().ok_or(BindingError::NoSummary)?;
            pending.answer(summary::answer(text));
            if text.is_some() {
                return state.ask(Some(pending));
            }
            state.finish(pending)?;
            Ok(None)
        })
    }

    /// Takes the newest plan back; false if there is none.
    pub fn undo(&self) -> Result<bool, BindingError> {
        self.locked(|state| {
            let undone = state.session.undo()?;
            state.staged.flush()?;
            Ok(undone)
        })
    }

    /// Answers a call of one of the retrieval tools. `arguments` is the JSON text of the model.
    pub fn retrieve(&self, tool: &str, arguments: &str) -> Result<RetrievalAnswer, BindingError> {
        let (id, limits) = self.locked(|state| {
            let session = &state.session;
            Ok((session.id().clone(), session.retrieval_limits(1)))
        })?;
        let retrieval = Retrieval::new(&*self.store, id).limits(limits);
        Ok(retrieval.call(tool, arguments))
    }

    /// The definitions of the retrieval tools in the host's shape, as a list.
    pub fn retrieval_tools(&self) -> Vec<u8> {
        let definitions = ToolNames::default().definitions();
        let written = definitions.iter();
        let list: Vec<Value> = written.map(|tool| tool.in_dialect(self.dialect)).collect();
        Value::from(list).to_string().into_bytes()
    }

    /// Takes the usage that the provider reported for the last window, as JSON.
    pub fn record(&self, usage: &[u8]) -> Result<(), BindingError> {
        let read = serde_json::from_slice(usage);
        let usage: Value = read.map_err(|why| BindingError::Usage(why.to_string()))?;
        let usage = Usage::read(self.dialect, &usage);
        if usage.prompt() == 0 {
            return Err(BindingError::Usage("it has no prompt tokens".to_owned()));
        }
        self.locked(|state| {
            state.session.record(&usage)?;
            state.reported = Some(usage.prompt());
            Ok(state.staged.flush()?)
        })
    }

    /// What was done so far.
    pub fn usage(&self) -> Result<SessionFigures, BindingError> {
        self.locked(State::figures)
    }

    /// The same as JSON.
    pub fn usage_json(&self) -> Result<Vec<u8>, BindingError> {
        let figures = self.usage()?;
        serde_json::to_vec(&figures).map_err(|why| BindingError::Mismatch(why.to_string()))
    }

    fn locked<T>(
        &self,
        work: impl FnOnce(&mut State) -> Result<T, BindingError>,
    ) -> Result<T, BindingError> {
        work(&mut *self.lock()?)
    }

    fn lock(&self) -> Result<MutexGuard<'_, State>, BindingError> {
        self.state.lock().map_err(|_| BindingError::Poisoned)
    }

    /// Brings the log up to date with a request, then does `work`. If another process wrote to the
    /// session meanwhile, reads what it wrote and starts again, once.
    fn with_request<T>(
        &self,
        request: &[u8],
        work: impl Fn(&mut State, &BodyScan<'_>) -> Result<T, BindingError>,
    ) -> Result<T, BindingError> {
        let mut state = self.lock()?;
        let done = self.follow(&mut state, request, &work);
        match done {
            Err(error) if error.is_conflict() => {
                let fork = newest_fork(&*self.store, &self.name)?;
                let setup = state.session.setup().clone();
                *state = State::open(&self.store, &self.name, fork, setup)?;
                self.follow(&mut state, request, &work)
            }
            done => done,
        }
    }

    fn follow<T>(
        &self,
        state: &mut State,
        request: &[u8],
        work: &impl Fn(&mut State, &BodyScan<'_>) -> Result<T, BindingError>,
    ) -> Result<T, BindingError> {
        let scanned = scan_request(request, self.dialect, state.last.as_ref())?;
        state.prepare(&scanned.scan)?;
        match compare(&state.session, &scanned)? {
            RequestHistory::Continues(new) => {
                for message in new {
                    state.session.admit(message)?;
                }
            }
            RequestHistory::Differs => self.begin_fork(state, &scanned.scan)?,
        }
        let done = work(state, &scanned.scan)?;
        // No ref may leave before its bytes are durable.
        state.staged.flush()?;
        state.last = LastRequest::new(request, scanned.scan);
        Ok(done)
    }

    /// The host's history is another one now: a session of its own, which may still redeem the
    /// refs of the one before.
    fn begin_fork(&self, state: &mut State, scan: &BodyScan<'_>) -> Result<(), BindingError> {
        let setup = state.session.setup().clone();
        state.staged.flush()?;
        let parent = state.session.id().clone();
        let fork = state.fork + 1;
        self.store.link(&fork_id(&self.name, fork)?, &parent)?;
        *state = State::open(&self.store, &self.name, fork, setup)?;
        state.prepare(scan)?;
        for message in scan.messages(0).flatten() {
            state.session.admit(message)?;
        }
        Ok(())
    }
}

impl State {
    fn open(
        store: &Arc<dyn Store>,
        name: &str,
        fork: usize,
        setup: Setup,
    ) -> Result<Self, BindingError> {
        let staged = Arc::new(StagedStore::new(Arc::clone(store)));
        let inner = Arc::clone(&staged) as Arc<dyn Store>;
        Ok(Self {
            session: Session::open(inner, fork_id(name, fork)?, setup)?,
            staged,
            fork,
            last: None,
            pending: None,
            reported: None,
            model: (String::new(), None),
        })
    }

    /// Takes the model, the tools and the limit of a request.
    fn prepare(&mut self, scan: &BodyScan<'_>) -> Result<(), BindingError> {
        let name = scan.model().unwrap_or_default();
        if self.model.0 != name {
            let found = Catalogue::embedded().find(&name).ok();
            let bound = found.map(|found| found.model.rules.bound_reasoning);
            self.model = (name.into_owned(), bound);
        }
        let bound = binds_reasoning(scan, self.model.1);
        self.session.set_bound_reasoning(bound)?;
        let tools = scan.tools_in_prompt();
        if !tools.is_empty() {
            self.session.set_tools(Measure::of_tools(&tools));
            let mut list = scan.request().tool_list.iter();
            let name = list.find_map(|tool| {
                let name = scan.string(tool.name)?;
                is_retrieval(&name).then_some(name)
            });
            self.session
                .set_retrieval(name.and_then(|name| ToolNames::of(&name)));
        }
        if let Some(limit) = scan.answer_limit() {
            let mut limits = self.session.setup().limits;
            limits.max_output = Some(limit);
            self.session.set_limits(limits);
        }
        Ok(())
    }

    /// Does what is due, unless a summary is being written already.
    fn check(&mut self, moment: Moment) -> Result<Option<PendingSummary>, BindingError> {
        if self.pending.is_some() {
            return Ok(None);
        }
        Ok(self.session.check(moment)?)
    }

    /// Keeps a summary that is asked for and gives its next request; carries it out if there is
    /// nothing more to ask.
    fn ask(&mut self, pending: Option<PendingSummary>) -> Result<Option<Vec<u8>>, BindingError> {
        let Some(pending) = pending else {
            return Ok(None);
        };
        let request = summary::next_request(&pending, self.session.setup().dialect);
        if request.is_some() {
            self.pending = Some(pending);
        } else {
            self.finish(pending)?;
        }
        Ok(request)
    }

    fn finish(&mut self, pending: PendingSummary) -> Result<(), BindingError> {
        self.session.finish(pending)?;
        Ok(self.staged.flush()?)
    }

    fn window(&mut self, scan: &BodyScan<'_>) -> Result<BoundWindow, BindingError> {
        let (tokens, max_output, misfit) = match self.session.ready() {
            Ok(ready) => (ready.tokens, ready.max_output, None),
            Err(error @ (SessionError::TooLarge(_) | SessionError::OverBudget { .. })) => {
                (self.window_tokens()?, None, Some(error.to_string()))
            }
            Err(error) => return Err(error.into()),
        };
        let written = bound_window::write(&mut self.session, scan)?;
        Ok(BoundWindow {
            body: written.body,
            sources: written.sources,
            changed: written.changed,
            tokens,
            max_output,
            misfit,
        })
    }

    fn window_tokens(&mut self) -> Result<u64, BindingError> {
        let total = self.session.window()?.measures().total() + self.session.setup().tools;
        Ok(self.session.calibration().tokens(&total))
    }

    fn figures(&mut self) -> Result<SessionFigures, BindingError> {
        let tokens_after = self.window_tokens()?;
        let window_messages = self.session.window()?.messages().len();
        let projection = self.session.projection();
        let messages = projection.log().len();
        let came = (0..messages).filter_map(|at| projection.measure(at).copied());
        let came: Measure = came.sum::<Measure>() + self.session.setup().tools;
        Ok(SessionFigures {
            session: self.session.id().to_string(),
            messages,
            window_messages,
            tokens_before: self.session.calibration().tokens(&came),
            tokens_after,
            window: self.session.setup().limits.window,
            compactions: projection.journal().compactions(),
            reported: self.reported,
        })
    }
}

/// The name of a history: the session's own, with a number if it is not the first.
fn fork_id(name: &str, fork: usize) -> Result<SessionId, BindingError> {
    Ok(SessionId::new(match fork {
        0 => name.to_owned(),
        fork => format!("{name}.{fork}"),
    })?)
}

/// The number of the newest history. Numbers have no gaps, so doubling and halving finds it.
fn newest_fork(store: &dyn Store, name: &str) -> Result<usize, BindingError> {
    let exists = |fork: usize| -> Result<bool, BindingError> {
        Ok(store.position(&fork_id(name, fork)?, Stream::Log)? > 0)
    };
    let (mut low, mut high) = (0, 1);
    while exists(high)? {
        (low, high) = (high, high * 2);
    }
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        if exists(middle)? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}
