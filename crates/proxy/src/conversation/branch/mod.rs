//! One conversation of a client: its session, which of its messages are the client's, and what
//! is known about its last request. `request::plan` admits new messages here, lets the policy
//! decide, and composes the body to send.

mod admit;
mod catch_up;
mod compose;
mod decisions;
mod fork;
mod renamed_tools;
mod use_marks;

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use trimtab::session::{Moment, PendingSummary, Session, SessionError, Setup};
use trimtab_engine::policy::Policy;
use trimtab_model::estimate::Measure;
use trimtab_store::{SessionId, StagedStore, Store, Stream};

use crate::conversation::durability::{FlushScheduled, LEASE, is_conflict};
use crate::conversation::hidden_rounds::{self, PendingOwnCalls};
use crate::conversation::message_map::MessageMap;
use crate::models::ModelKey;
use crate::models::silent_truncation::{PromptCheck, PromptReading, TruncationWatch};
use crate::prefix_cache::fingerprint::{Fingerprint, FingerprintChain, fingerprint_of};
use admit::ReceivedMessages;
use compose::RefSearch;

pub(crate) use catch_up::BranchStanding;
pub(crate) use compose::{ComposeOptions, LEAST_ANSWER, OutgoingBody};
pub(crate) use fork::branch_name;
pub(crate) use use_marks::{RequestMark, SummaryMark};

/// Approximate memory of a conversation besides its messages, in bytes.
const BRANCH_BYTES: usize = 8 << 10;
/// Approximate memory of a message besides its text, in bytes: measures, slots and entries.
const MESSAGE_BYTES: usize = 1 << 10;
/// Approximate bytes of text per token, if only the tokens are known.
const BYTES_PER_TOKEN: usize = 4;

/// Why a window was not applied to a body.
#[derive(Debug)]
pub(crate) enum BranchError {
    /// The session failed.
    Session(SessionError),
    /// The body does not match the session's log, which is an internal fault.
    Mismatch(String),
}

impl BranchError {
    /// True if another process has written to the session. Its writes must be read, and the request
    /// planned again.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Session(SessionError::Store(error)) if is_conflict(error))
    }
}

impl From<SessionError> for BranchError {
    fn from(error: SessionError) -> Self {
        Self::Session(error)
    }
}

impl std::fmt::Display for BranchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Session(error) => write!(f, "{error}"),
            Self::Mismatch(why) => f.write_str(why),
        }
    }
}

/// One conversation of a client.
pub(crate) struct Branch {
    session: Session,
    /// The store of the session, which collects writes until a flush.
    staged: Arc<StagedStore>,
    flush_scheduled: FlushScheduled,
    message_map: MessageMap,
    received: ReceivedMessages,
    /// How far the window was searched for refs, and whether one was found.
    refs: RefSearch,
    /// The fingerprint and the size of the last tool definitions.
    tools: (Fingerprint, Measure),
    /// The size of our tools, if they are offered.
    tools_measure: Measure,
    /// True if they were offered with a request of an agent.
    is_offered_from_start: bool,
    /// Calls of our tools in the last answers, which the client will send back without them.
    pending_calls: Vec<PendingOwnCalls>,
    /// The time of the last request.
    last_request: Option<Instant>,
    /// Alive while a summary is being written.
    summary_mark: Weak<SummaryMark>,
    /// Shared with the requests in progress.
    request_mark: Arc<RequestMark>,
    /// True once a request chose the policy.
    chosen: bool,
    /// Whether the provider reads what it is sent.
    truncation: TruncationWatch,
    /// For the last window that was sent: the number of changes to earlier windows so far, and its
    /// tokens.
    sent: (usize, u64),
    /// The size of the last admitted body.
    body_bytes: usize,
    /// The number of journal entries at the last composed request.
    composed: usize,
    /// The branch that it was copied from, and its log and journal lengths after the copy.
    copy_of: Option<(usize, (u64, u64))>,
    /// True if its first messages were answered in another branch, with other windows.
    starts_over: bool,
}

impl Branch {
    /// Opens a conversation, which may be new. None if the proxy did not write the session.
    pub(crate) fn open(
        store: &Arc<dyn Store>,
        id: SessionId,
        setup: Setup,
    ) -> Result<Option<Self>, SessionError> {
        let staged = Arc::new(StagedStore::leasing(Arc::clone(store), LEASE));
        let session = Session::open(Arc::clone(&staged) as Arc<dyn Store>, id, setup)?;
        let log = session.projection().log();
        let Some(message_map) = MessageMap::read(log) else {
            return Ok(None);
        };
        // Calls of our tools may have been waiting for the client's outputs when we were restarted.
        let pending = hidden_rounds::find(store.as_ref(), session.id(), log.len())?;
        Ok(Some(Self::restored(session, staged, message_map, pending)))
    }

    /// A branch with this session, to which no request has come yet.
    fn restored(
        session: Session,
        staged: Arc<StagedStore>,
        message_map: MessageMap,
        pending: Vec<PendingOwnCalls>,
    ) -> Self {
        let log = session.projection().log();
        let mut received = received_at(&session, message_map.log_positions());
        for message in log.messages() {
            received.count_reasoning(message);
        }
        // Everything in the journal is durable, in this session or in the one that it begins like.
        let composed = session.projection().journal().entries().len();
        Self {
            received,
            session,
            staged,
            flush_scheduled: FlushScheduled::default(),
            message_map,
            refs: RefSearch::default(),
            tools: (0, Measure::default()),
            tools_measure: Measure::default(),
            is_offered_from_start: false,
            pending_calls: pending,
            last_request: None,
            summary_mark: Weak::new(),
            request_mark: Arc::default(),
            chosen: false,
            truncation: TruncationWatch::default(),
            sent: (0, 0),
            body_bytes: 0,
            composed,
            copy_of: None,
            starts_over: false,
        }
    }

    /// The fingerprints of the client's messages.
    pub(crate) fn fingerprints(&self) -> &FingerprintChain {
        &self.message_map.fingerprints
    }

    /// Notes that its messages were answered in an edited branch, and that the client's messages are
    /// sent unchanged from now on. `chosen` is the policy that was chosen for that branch.
    pub(crate) fn start_over(&mut self, chosen: Option<&Arc<Policy>>) -> Result<(), SessionError> {
        self.starts_over = true;
        if let Some(policy) = chosen {
            self.chosen = true;
            self.session.set_policy(Arc::clone(policy))?;
        }
        Ok(())
    }

    /// The policy that a request or an operator chose for it.
    pub(crate) fn chosen_policy(&self) -> Option<&Arc<Policy>> {
        self.chosen.then_some(&self.session.setup().policy)
    }

    /// Whether its last request was sent within this time; none if that is unknown after a restart.
    pub(crate) fn was_sent_within(&self, time: Duration) -> Option<bool> {
        self.last_request.map(|sent| sent.elapsed() <= time)
    }

    /// True if its last request had these tools, or if that is unknown after a restart.
    pub(crate) fn may_have_tools(&self, tools: Fingerprint) -> bool {
        self.tools.0 == 0 || self.tools.0 == tools
    }

    /// The size of the client's first messages and of the tools.
    pub(crate) fn measure_of_beginning(&self, messages: usize) -> Measure {
        let all = messages >= self.fingerprints().len();
        let places = self.message_map.log_positions();
        let received = if all {
            self.received
        } else {
            received_at(&self.session, places.get(..messages).unwrap_or(places))
        };
        received.read_by_provider() + self.tools.1
    }

    /// Removes the reasoning in the first request of an agent. It came without our tools, so it is
    /// stale if the model binds it to them.
    pub(crate) fn strip_reasoning_without_our_tools(&mut self) -> Result<(), SessionError> {
        if self.session.has_bound_reasoning() {
            self.session.front_changes()?;
        }
        Ok(())
    }

    /// The log length that corresponds to the client's first messages.
    pub(crate) fn log_length(&self, messages: usize) -> usize {
        self.message_map.log_length(messages)
    }

    /// The number of messages in its log.
    pub(crate) fn logged(&self) -> usize {
        self.session.projection().log().len()
    }

    /// Its session.
    pub(crate) fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// The staged writes. Nothing that depends on them may be sent before they are flushed.
    pub(crate) fn staged(&self) -> &Arc<StagedStore> {
        &self.staged
    }

    /// Makes its writes durable soon.
    pub(crate) fn flush_soon(&self) {
        self.flush_scheduled.schedule(&self.staged);
    }

    /// Makes its writes durable.
    pub(crate) fn flush(&self) -> Result<(), SessionError> {
        Ok(self.staged.flush()?)
    }

    /// True if the store has its complete session.
    pub(crate) fn is_stored(&self, store: &dyn Store) -> bool {
        let logged = self.session.projection().log().len() as u64;
        self.staged.flush().is_ok() && store.position(self.id(), Stream::Log).ok() == Some(logged)
    }

    /// The name of its session.
    pub(crate) fn id(&self) -> &SessionId {
        self.session.id()
    }

    /// Tells the session how long it was idle. This is unknown after a restart.
    pub(crate) fn note_idle_time(&mut self) {
        if let Some(asked) = self.last_request.replace(Instant::now()) {
            self.session.idle(asked.elapsed());
        }
    }

    /// Uses `policy` from now on. Earlier messages stay unchanged until the policy has a reason to
    /// change them. A policy that a request chose is replaced only by another request.
    pub(crate) fn set_policy(
        &mut self,
        policy: &Arc<Policy>,
        asked_for: bool,
    ) -> Result<(), BranchError> {
        self.chosen |= asked_for;
        let decides = &self.session.setup().policy;
        // After a reload the settings have a new but usually equal policy.
        let same = Arc::ptr_eq(decides, policy) || decides == policy;
        if (asked_for || !self.chosen) && !same {
            self.session.set_policy(Arc::clone(policy))?;
        }
        Ok(())
    }

    /// Sets the tool definitions of the next call. They are measured only if they changed.
    pub(crate) fn set_tools(&mut self, json: &str, key: &[u8; 192]) {
        let fingerprint = fingerprint_of(json.as_bytes(), key);
        if self.tools.0 != fingerprint {
            if self.tools.0 != 0 {
                // A prompt cache starts with the tools, so all of it is lost with a new list.
                self.session.cache_is_cold();
            }
            self.tools = (fingerprint, Measure::of_tools(json));
        }
        self.session.set_tools(self.tools.1 + self.tools_measure);
    }

    /// Its approximate memory in bytes. Texts count twice, for the log and for the window.
    pub(crate) fn memory_bytes(&self) -> usize {
        let came = usize::try_from(self.received.total.tokens()).unwrap_or(usize::MAX);
        // After a restart no body has come yet, so only the tokens of the log are known.
        let texts = self.body_bytes.max(came.saturating_mul(BYTES_PER_TOKEN));
        let messages = self.session.projection().log().len();
        BRANCH_BYTES + 2 * texts + messages * MESSAGE_BYTES
    }

    /// True if no plan was made since the last send, so that no flush is needed before sending.
    pub(crate) fn no_new_plan_since_send(&mut self) -> bool {
        let decisions = self.decisions();
        std::mem::replace(&mut self.composed, decisions) == decisions
    }

    /// The number of journal entries so far.
    pub(crate) fn decisions(&self) -> usize {
        let entries = self.session.projection().journal().entries();
        entries.len()
    }

    /// True if the client's unchanged messages and the reserve for the answer fit the window, or if
    /// the window is unknown.
    pub(crate) fn fits_unchanged(&self) -> bool {
        let setup = self.session.setup();
        // Checked on what the client sent, before any plan: a body that fits may pass unchanged.
        let answer = setup.limits.max_output.unwrap_or(0);
        let tokens = setup
            .calibration
            .tokens(&(self.received.read_by_provider() + self.tools.1));
        let window = setup.limits.window;
        window.is_none_or(|window| tokens.saturating_add(answer) <= window)
    }

    /// How often earlier windows were changed so far.
    fn decided(&self) -> usize {
        self.session.projection().journal().undoable()
    }

    /// Checks the prompt size that a model reports for signs that the prompt was truncated.
    pub(crate) fn check_truncation(&mut self, model_key: ModelKey<'_>, read: u64) -> PromptCheck {
        // Providers drop old reasoning from a prompt, and the size of images, documents and unknown
        // parts is a guess. So a smaller count is no sign of truncation there.
        if self.received.reasoning > 0 || self.received.total.sizes().raw > 0 {
            return PromptCheck::Whole;
        }
        // The window that was sent counts, and not the current one: a summary may have come since.
        let (decisions, sent) = self.sent;
        self.truncation.next_reading(PromptReading {
            model_key: model_key.owned(),
            decisions,
            sent,
            read,
        })
    }

    /// Runs the policy at these moments. Returns the first plan that waits for a summary.
    ///
    /// Fails only if the store does. After a conflict, the writes of another process must be read, or
    /// this request would be sent without a plan that the other process makes.
    pub(crate) fn check(
        &mut self,
        moments: &[Moment],
    ) -> Result<Option<PendingSummary>, BranchError> {
        // A further plan would make the one outdated that the summary is being written for.
        if self.is_summarising() {
            return Ok(None);
        }
        for moment in moments {
            match self.session.check(*moment).map_err(BranchError::from) {
                Ok(None) => {}
                Ok(pending) => return Ok(pending),
                Err(error @ BranchError::Session(SessionError::Store(_))) => return Err(error),
                // Other errors are dropped here: the window without the plan is still valid, and
                // one that must become smaller fails again, with more detail, when it is built.
                Err(_) => {}
            }
        }
        Ok(None)
    }
}

/// The client's messages at these positions of the log.
fn received_at(session: &Session, positions: &[usize]) -> ReceivedMessages {
    let projection = session.projection();
    let mut received = ReceivedMessages::default();
    for place in positions {
        let message = projection.log().get(*place);
        if let Some((message, measure)) = message.zip(projection.measure(*place)) {
            received.add(message, *measure);
        }
    }
    received
}
