//! A session: a log and a journal that outlive the process, and the decisions about them.
//!
//! The life of a call, for an agent or the proxy:
//!
//! 1. [`Session::admit`] every new message.
//! 2. [`Session::check`] at every moment that the caller passes. It may ask for a summary, which
//!    [`Session::finish`] accepts at any later time.
//! 3. [`Session::ready`] makes the window fit. Then send it.
//! 4. [`Session::record`] the reported usage, or [`Session::recover`] if the provider rejected the
//!    window as too large.

mod admit;
mod carry_out;
mod catch_up;
mod compact;
mod event;
mod fork;
mod pending;
mod readable;
mod ready;
mod removed_messages;
mod setup;
mod signed_reasoning;
mod stored;

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use trimtab_engine::budget::FloorTooLarge;
use trimtab_engine::decide::ReportedUsage;
use trimtab_engine::decide::admit::SystemMessages;
use trimtab_engine::journal::{Journal, JournalEntry};
use trimtab_engine::log::Log;
use trimtab_engine::observation::ObservationDetector;
use trimtab_engine::plan::{Plan, PlanReason};
use trimtab_engine::policy::Policy;
use trimtab_engine::trigger::WindowUnknown;
use trimtab_engine::view::policy::{BadGlob, CompiledViews};
use trimtab_engine::view::tools::ToolNames;
use trimtab_engine::window::{InvalidWindow, Projection, Window};
use trimtab_model::estimate::{Calibration, Measure};
use trimtab_store::{SessionId, Store, Stream};

use admit::edits;
use signed_reasoning::AnswerInFlight;
use stored::{fill_in, json, read_from};

pub use event::{SessionEvent, SessionEventKind};
pub use fork::SharedBeginning;
pub use pending::{ManualCompaction, PendingSummary, SummariserAnswer, SummaryRequest};
pub use ready::{ReadyWindow, RecoveryOutcome};
pub use setup::{Limits, Setup};
pub use trimtab_engine::policy::Moment;

/// Why a session could not do what it was asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The store failed. A conflict means that another writer uses the same session: open the
    /// session again to see what it wrote.
    #[error(transparent)]
    Store(#[from] trimtab_store::Error),
    /// The window is invalid.
    #[error(transparent)]
    Invalid(#[from] InvalidWindow),
    /// A glob of the policy is invalid.
    #[error(transparent)]
    Glob(#[from] BadGlob),
    /// The model's window is unknown, and the policy needs it.
    #[error(transparent)]
    WindowUnknown(#[from] WindowUnknown),
    /// The floor is larger than the window: no plan can make it fit.
    #[error(transparent)]
    TooLarge(#[from] FloorTooLarge),
    /// The window does not fit, and the policy forbids what would help.
    #[error(
        "the window takes {tokens} of {window} tokens, the answer included, and nothing that \
         preset '{preset}' allows makes it smaller\nhint: {hint}"
    )]
    OverBudget {
        /// The size of the window and its answer.
        tokens: u64,
        /// The model's window.
        window: u64,
        /// The preset.
        preset: String,
        /// What the user can do.
        hint: &'static str,
    },
    /// An entry of the log or journal cannot be read.
    #[error("entry {position} of the {stream} of session '{session}' cannot be read: {why}")]
    Entry {
        /// The session.
        session: String,
        /// `log` or `journal`.
        stream: &'static str,
        /// Its position.
        position: usize,
        /// What is wrong with it.
        why: String,
    },
}

/// A conversation whose log and journal are in a store.
///
/// Everything that a method did is durable. Opening the session again, in any process, gives the
/// same window, byte for byte.
///
/// ```
/// use std::sync::Arc;
/// use trimtab::engine::policy::Policy;
/// use trimtab::model::Message;
/// use trimtab::session::{Session, Setup};
/// use trimtab::store::{MemoryStore, SessionId};
///
/// let store = Arc::new(MemoryStore::new());
/// let (id, setup) = (SessionId::new("demo")?, Setup::new(Policy::preset("steady")?));
/// let mut session = Session::open(store.clone(), id.clone(), setup.clone())?;
/// session.admit(Message::user("hello"))?;
///
/// let mut again = Session::open(store, id, setup)?;
/// assert_eq!(again.window()?.messages().next().unwrap().text(), "hello");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct Session {
    store: Arc<dyn Store>,
    id: SessionId,
    setup: Setup,
    views: CompiledViews,
    projection: Projection,
    /// The positions of the next entries. Appending fails if another writer has moved them.
    log_position: u64,
    journal_position: u64,
    /// The position after the last entry that did more than show outputs shorter.
    rearranged: u64,
    /// The number of messages of the log that were sent.
    sent: usize,
    /// The same before the last window. If that is rejected, no model has read it.
    sent_before: usize,
    /// The number of windows returned by `ready`.
    windows: u64,
    /// True if something in front of all messages has changed since the first call.
    front_changed: bool,
    /// What the first ref adds to a request; none once the window has shown a ref.
    first_ref: Option<Measure>,
    calls: CallState,
    /// Finds system messages that were sent before.
    systems: SystemMessages,
    /// Detects user messages that are outputs.
    observations: ObservationDetector,
    events: Vec<SessionEvent>,
}

/// What a process remembers of its calls. A session that is opened again starts without it.
#[derive(Default)]
struct CallState {
    /// The last reported usage, until an edit makes it out of date.
    usage: Option<ReportedUsage>,
    /// The newest answer, if it is not in the log yet.
    coming_answer: Option<Measure>,
    /// The measure of the last window that was returned by `ready`.
    sent_measure: Option<Measure>,
    /// The size of the window before the compaction that the next usage judges.
    tokens_before_compaction: Option<u64>,
    /// The reserve for the answer, if it was lowered for the next call.
    lowered_reserve: Option<u64>,
    /// The number of recoveries of the current call.
    recoveries: u32,
    /// True if the policy or the limits changed since the last compaction was judged.
    settings_changed: bool,
    /// True if the provider's prompt cache has nothing for the next call.
    cold: bool,
    /// Whether an answer is in flight, and whether its window is still current.
    answer_in_flight: AnswerInFlight,
    /// The tokens that a failed summary would have replaced.
    failed_summary_tokens: Option<u64>,
    /// The number of consecutive failures to summarise archived outputs.
    failed_tool_summaries: u32,
    /// Outputs before this position were not archived, because that would not make them shorter.
    archive_from: usize,
}

impl Session {
    /// Opens a session, or starts it if it is new.
    pub fn open(store: Arc<dyn Store>, id: SessionId, setup: Setup) -> Result<Self, SessionError> {
        // A bad glob fails here, before anything is read from the store.
        let views = CompiledViews::new(&setup.policy.views)?;
        let (mut entries, plans) = read_from(&*store, &id, (0, 0))?;
        let (log_position, journal_position) = (entries.len() as u64, plans.len() as u64);
        fill_in(&*store, &id, &mut entries)?;
        let mut log = Log::new();
        let mut journal = Journal::new();
        for (at, entry) in entries.into_iter().enumerate() {
            // How an output was shown at admission is stored with its message, so that one write
            // makes both durable. Here it becomes the plan that `admit` made.
            let edits = edits(at, &entry.message, entry.shown, entry.archived);
            log.append(entry.message);
            if !edits.is_empty() {
                journal.append(JournalEntry::Plan(Plan::new(PlanReason::Admission, edits)));
            }
        }
        // A plan can only change a message after its admission, so this order is right for each
        // message.
        for plan in plans {
            journal.append(plan);
        }
        let projection = Projection::restore(setup.normalise(), log, journal);
        let positions = (log_position, journal_position);
        Ok(Self::restored(
            store,
            id,
            (setup, views),
            projection,
            positions,
        ))
    }

    /// A session with this log and journal, which nobody has used yet.
    fn restored(
        store: Arc<dyn Store>,
        id: SessionId,
        (setup, views): (Setup, CompiledViews),
        projection: Projection,
        (log_position, journal_position): (u64, u64),
    ) -> Self {
        // Nobody knows whether the last messages were sent before the restart. Assuming so only
        // forbids to shorten them for free.
        let sent = projection.log().len();
        let changed = |plan: &Plan| plan.reason == PlanReason::FrontChanged;
        let front_changed = projection.journal().plans().any(changed);
        let shows_refs = projection.journal().plans().any(Plan::shows_a_ref);
        Self {
            projection,
            store,
            id,
            setup,
            views,
            log_position,
            journal_position,
            rearranged: journal_position,
            sent,
            sent_before: sent,
            windows: 0,
            front_changed,
            first_ref: (!shows_refs).then(Measure::default),
            calls: CallState::default(),
            systems: SystemMessages::default(),
            observations: ObservationDetector::default(),
            events: Vec::new(),
        }
    }

    /// The window as it would be sent now, whether it fits or not.
    pub fn window(&mut self) -> Result<&Window, SessionError> {
        Ok(self.projection.window()?)
    }

    /// The log and the journal.
    pub fn projection(&self) -> &Projection {
        &self.projection
    }

    /// Its name in the store.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Its store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The numbers of entries of its log and its journal in the store, as far as it knows: another
    /// process may have added some.
    pub fn positions(&self) -> (u64, u64) {
        (self.log_position, self.journal_position)
    }

    /// The number of windows returned by `ready` so far. Usage of any but the last of them must not
    /// be [recorded](Self::record).
    pub fn windows(&self) -> u64 {
        self.windows
    }

    /// Its current setup.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// What was learned about how the model counts.
    pub fn calibration(&self) -> &Calibration {
        &self.setup.calibration
    }

    /// Sets another policy. Earlier decisions stay.
    pub fn set_policy(&mut self, policy: impl Into<Arc<Policy>>) -> Result<(), SessionError> {
        let policy = policy.into();
        // Compiled before anything changes, so that a bad glob leaves the session as it was.
        self.views = CompiledViews::new(&policy.views)?;
        self.setup.policy = policy;
        // The new policy may archive what the old one left.
        self.calls.archive_from = 0;
        self.calls.failed_tool_summaries = 0;
        self.calls.settings_changed = true;
        Ok(())
    }

    /// Sets the limits of another model. The last usage says nothing about it, and what did not
    /// help before may help now.
    pub fn set_limits(&mut self, limits: Limits) {
        // Callers set the limits with every call, and equal limits must not discard the usage.
        if self.setup.limits != limits {
            self.setup.limits = limits;
            self.calls.usage = None;
            self.calls.settings_changed = true;
        }
    }

    /// Tells the session that the provider's prompt cache has nothing for the next call: too much
    /// time has passed, or the model or the tools changed. Then sent text can be rewritten at no
    /// extra cost.
    pub fn cache_is_cold(&mut self) {
        self.calls.cold = true;
    }

    /// Tells the session how much time has passed since the last call. If that is longer than the
    /// provider keeps an unused prompt, its cache is cold.
    pub fn idle(&mut self, time: Duration) {
        let lifetime = self.setup.cache_lifetime;
        if lifetime.is_some_and(|lifetime| time > lifetime) {
            self.cache_is_cold();
        }
    }

    /// Sets the measure of the next call's tool definitions. Usage reported with other tools says
    /// nothing about it.
    pub fn set_tools(&mut self, tools: Measure) {
        if self.setup.tools != tools {
            self.setup.tools = tools;
            self.calls.usage = None;
        }
    }

    /// Sets the names of the retrieval tools that the model has from now on; none if it has none.
    pub fn set_retrieval(&mut self, names: Option<ToolNames>) {
        self.setup.retrieval = names;
    }

    /// Sets the measure of what the first ref adds: the definitions of the retrieval tools, for a
    /// caller that offers them as soon as there is a ref. Edits that save less are not made.
    pub fn set_first_ref(&mut self, tools: Measure) {
        // A window that has shown a ref has paid for the tools already.
        self.first_ref = self.first_ref.map(|_| tools);
    }

    /// The events since the last call.
    pub fn events(&mut self) -> Vec<SessionEvent> {
        std::mem::take(&mut self.events)
    }

    fn write(&mut self, entry: &JournalEntry) -> Result<(), SessionError> {
        let bytes = json(entry);
        let at = self.journal_position;
        self.journal_position = self
            .store
            .append(&self.id, Stream::Journal, at, &[&bytes])?;
        if entry.rearranges() {
            self.rearranged = self.journal_position;
        }
        Ok(())
    }
}
