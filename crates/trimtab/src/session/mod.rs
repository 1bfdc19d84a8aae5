//! A session: a log and a journal that outlive the process, and what is decided about them.
//!
//! The life of a call, as an agent or the proxy goes through it:
//!
//! 1. [`Session::admit`] every message that came;
//! 2. [`Session::check`] at the moments that the caller passes through; it may ask for a
//!    summary, which [`Session::finish`] takes in, whenever it comes;
//! 3. [`Session::ready`] gives the window to send, and makes it fit;
//! 4. [`Session::record`] what the provider reported, or [`Session::recover`] when it said that
//!    the window was too large.

mod bound;
mod decide;
mod event;
mod fitting;
mod pending;
mod readable;
mod recovery;
mod repeats;
mod setup;
mod steady;
mod stored;
mod switch;

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use trimtab_engine::budget::FloorTooLarge;
use trimtab_engine::journal::{Journal, JournalEntry};
use trimtab_engine::log::Log;
use trimtab_engine::normalise::Options;
use trimtab_engine::observation::{ObservationWatch, outputs_of, show};
use trimtab_engine::plan::{Edit, Plan, Reason};
use trimtab_engine::policy::Policy;
use trimtab_engine::trigger::WindowUnknown;
use trimtab_engine::view::policy::{BadGlob, Views};
use trimtab_engine::window::{Invalid, Projection, Window};
use trimtab_model::estimate::{Calibration, Measure};
use trimtab_model::{Kind, Message, Output, Role, Usage};
use trimtab_store::{SessionId, Store, Stream};

use crate::admission::{Admission, Admitted};
use bound::UnderWay;
use repeats::Repeats;
use stored::{Entry, fill_in, json, read_all};

pub use event::{Event, EventKind};
pub use fitting::Ready;
pub use pending::{Answered, ByHand, Pending, SummaryRequest};
pub use recovery::Recovered;
pub use setup::{Limits, Setup};
pub use trimtab_engine::policy::Moment;

/// Why a session could not do what it was asked to.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The store failed. Another writer to the same session shows as a conflict here: open
    /// the session again to see what it wrote.
    #[error(transparent)]
    Store(#[from] trimtab_store::Error),
    /// The window is not valid.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// A glob of the policy cannot be read.
    #[error(transparent)]
    Glob(#[from] BadGlob),
    /// The model's window is not known, and the policy needs it.
    #[error(transparent)]
    WindowUnknown(#[from] WindowUnknown),
    /// What must stay is more than the window: no plan can make it fit.
    #[error(transparent)]
    TooLarge(#[from] FloorTooLarge),
    /// The window does not fit, and the policy forbids what would help.
    #[error(
        "the window takes {tokens} of {window} tokens, the answer included, and nothing that \
         preset '{preset}' allows makes it smaller\nhint: compact by hand, or set \
         compaction.auto = true"
    )]
    OverBudget {
        /// What the window and its answer take.
        tokens: u64,
        /// What there is.
        window: u64,
        /// The preset.
        preset: String,
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
/// Whatever a method has done is durable. Opening the session again, in any process, gives
/// the same window, byte for byte.
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
    admission: Admission,
    projection: Projection,
    /// Where the next entries go; another writer would have moved them on.
    log_position: u64,
    journal_position: u64,
    /// The position behind the last entry that did more than show outputs shorter.
    rearranged: u64,
    /// How many messages of the log have been sent.
    sent: usize,
    /// What the provider reported last, and the window it was for, until an edit makes it
    /// stale.
    usage: Option<(Usage, Measure)>,
    /// The window that was handed out last.
    handed_out: Option<Measure>,
    /// How many were.
    windows: u64,
    /// What the window measured before the compaction that the next usage judges.
    judging: Option<u64>,
    /// What is reserved for the answer, where it was lowered for the next call.
    lowered: Option<u64>,
    /// How often the current call was recovered.
    recovered: u32,
    /// True if the policy or the limits are others than those that did not help.
    changed: bool,
    /// True if what stands before all messages has changed since the first call.
    front_changed: bool,
    /// True if the next call finds nothing in the provider's prompt cache.
    cold: bool,
    /// Whether an answer is under way, and whether it is to the window that holds.
    under_way: UnderWay,
    /// The texts of outputs that came.
    repeats: Repeats,
    /// Tells which messages of the user are outputs.
    observations: ObservationWatch,
    /// What a summary would have replaced that came to nothing, in tokens.
    in_vain: Option<u64>,
    events: Vec<Event>,
}

impl Session {
    /// Opens a session, or begins it if it is new.
    pub fn open(store: Arc<dyn Store>, id: SessionId, setup: Setup) -> Result<Self, SessionError> {
        let views = Views::new(&setup.policy.views)?;
        let admission = Admission::new(Arc::clone(&store), id.clone(), views);
        let entries: Vec<Entry> = read_all(&*store, &id, Stream::Log)?;
        let plans: Vec<JournalEntry> = read_all(&*store, &id, Stream::Journal)?;
        let (log_position, journal_position) = (entries.len() as u64, plans.len() as u64);
        let mut log = Log::new();
        let mut journal = Journal::new();
        for (at, mut entry) in entries.into_iter().enumerate() {
            fill_in(&*store, &id, &mut entry.message)?;
            let edits = edits(at, &entry.message, entry.shown, entry.archived);
            log.append(entry.message);
            if !edits.is_empty() {
                journal.append(JournalEntry::Plan(Plan::new(Reason::Admission, edits)));
            }
        }
        for plan in plans {
            journal.append(plan);
        }
        let sent = log.len();
        let changed = |plan: &Plan| plan.reason == Reason::FrontChanged;
        let front_changed = journal.plans().any(changed);
        Ok(Self {
            projection: Projection::restore(options(&setup), log, journal),
            store,
            id,
            setup,
            admission,
            log_position,
            journal_position,
            rearranged: journal_position,
            sent,
            usage: None,
            handed_out: None,
            windows: 0,
            judging: None,
            lowered: None,
            recovered: 0,
            changed: false,
            front_changed,
            cold: false,
            under_way: UnderWay::Nothing,
            repeats: Repeats::default(),
            observations: ObservationWatch::default(),
            in_vain: None,
            events: Vec::new(),
        })
    }

    /// Appends a message: outputs are stored whole and get their view. Gives its position.
    pub fn admit(&mut self, mut message: Message) -> Result<usize, SessionError> {
        // What always stays is only told once, unless everything is sent as it came.
        let fits = self.setup.policy.fit;
        let repeats = fits && self.repeats.is_said_again(&self.projection, &message);
        let log = self.projection.log();
        if fits && self.observations.is_observation(log, &message) {
            message.meta.kind = Some(Kind::Observation);
        }
        let Admitted {
            message,
            mut shown,
            warnings,
        } = self.admission.prepare(&self.projection, message)?;
        for warning in warnings {
            let mut event = Event::new(EventKind::Warning, Reason::Admission);
            event.note = Some(warning);
            self.events.push(event);
        }
        self.show_steadily(&message, &mut shown);
        let mut entry = Entry {
            message,
            shown,
            archived: repeats,
        };
        let bytes = entry.bytes();
        self.log_position =
            self.store
                .append(&self.id, Stream::Log, self.log_position, &[&bytes])?;
        let answer = entry.message.role == Role::Assistant;
        let message = Arc::new(entry.message);
        let at = self.projection.admit(Arc::clone(&message));
        let edits = edits(at, &message, entry.shown, repeats);
        let plan = Plan::new(Reason::Admission, edits);
        self.projection.carry_out(plan);
        if answer {
            self.answer_came(at)?;
        }
        Ok(at)
    }

    /// How our own policy shows the outputs of a message, where it decides.
    fn show_steadily(&mut self, message: &Message, shown: &mut Vec<(usize, Output)>) {
        let window = self.setup.limits.window;
        if !self.setup.policy.ageing.cards.enabled || window.is_none() {
            // Without a window there is no share of it; the views of the policy stay.
            return;
        }
        let mut round = 0;
        let mut outputs = outputs_of(message).count();
        let observed = message.meta.kind == Some(Kind::Observation);
        let (mut decided, mut views) = (Vec::new(), Vec::new());
        for (part, output) in outputs_of(message) {
            outputs -= 1;
            if self.admission.protects(&output, &self.projection) {
                continue;
            }
            decided.push(part);
            let view = self.steady_view(&output, observed, round);
            if outputs > 0 {
                round += self.steady_weight(view.as_ref().unwrap_or(&output));
            }
            views.extend(view.map(|view| (part, view)));
        }
        shown.retain(|(part, _)| decided.binary_search(part).is_err());
        shown.extend(views);
    }

    /// The window as it would be sent now, whether it fits or not.
    pub fn window(&mut self) -> Result<&Window, SessionError> {
        Ok(self.projection.window()?)
    }

    /// The messages as they came, the plans that were carried out.
    pub fn projection(&self) -> &Projection {
        &self.projection
    }

    /// Its name in the store.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// The store that it is in.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// How many entries its log and its journal have in the store, as far as it knows: another
    /// process may have added some.
    pub fn positions(&self) -> (u64, u64) {
        (self.log_position, self.journal_position)
    }

    /// How many windows were handed out so far. What is reported for any but the last of them must
    /// not be [recorded](Self::record).
    pub fn windows(&self) -> u64 {
        self.windows
    }

    /// What it was opened with, as it stands now.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// What was learned of the model's counts.
    pub fn calibration(&self) -> &Calibration {
        &self.setup.calibration
    }

    /// From now on another policy decides. What was decided stays.
    pub fn set_policy(&mut self, policy: impl Into<Arc<Policy>>) -> Result<(), SessionError> {
        let policy = policy.into();
        let views = Views::new(&policy.views)?;
        self.admission = Admission::new(Arc::clone(&self.store), self.id.clone(), views);
        self.setup.policy = policy;
        self.changed = true;
        Ok(())
    }

    /// From now on another model is asked: what was reported for the last one says nothing
    /// about it, and what did not help then may help now.
    pub fn set_limits(&mut self, limits: Limits) {
        if self.setup.limits != limits {
            self.setup.limits = limits;
            self.usage = None;
            self.changed = true;
        }
    }

    /// The next call finds nothing in the provider's prompt cache: it has been too long since
    /// the last one, or another model is asked, or other tools are offered. What was sent
    /// before may change then without a further cost.
    pub fn cache_is_cold(&mut self) {
        self.cold = true;
    }

    /// So much time has passed since the last call: if that is longer than the provider keeps
    /// an unused prompt, its cache is cold.
    pub fn idle(&mut self, time: Duration) {
        let lifetime = self.setup.cache_lifetime;
        if lifetime.is_some_and(|lifetime| time > lifetime) {
            self.cache_is_cold();
        }
    }

    /// The tool definitions of the next call, measured. What was reported with others says nothing
    /// about it.
    pub fn set_tools(&mut self, tools: Measure) {
        if self.setup.tools != tools {
            self.setup.tools = tools;
            self.usage = None;
        }
    }

    /// What happened since this was asked last.
    pub fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Carries out a plan if that makes the window smaller by some estimate. None means that
    /// it would not have.
    pub fn shrink(
        &mut self,
        plan: Plan,
        tokens: impl Fn(&Measure) -> u64,
    ) -> Result<Option<Plan>, SessionError> {
        let Some(mut plan) = self.projection.would_shrink(plan, tokens)? else {
            return Ok(None);
        };
        plan.since = self.sent;
        // Written before it is copied: a plan of many edits and its text take much memory.
        let entry = JournalEntry::Plan(plan);
        self.write(&entry)?;
        let JournalEntry::Plan(plan) = entry else {
            return Ok(None);
        };
        self.projection.carry_out(plan.clone());
        self.usage = None;
        Ok(Some(plan))
    }

    /// The tokens of the window by estimate, and its messages.
    fn window_tokens(&mut self) -> Result<(u64, usize), SessionError> {
        let window = self.projection.window()?;
        let tokens = self.setup.calibration.tokens(&window.measures().total());
        Ok((tokens, window.messages().len()))
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

fn options(setup: &Setup) -> Options {
    Options {
        dialect: setup.dialect,
        habit: setup.policy.repair,
    }
}

fn edits(at: usize, message: &Message, shown: Vec<(usize, Output)>, archived: bool) -> Vec<Edit> {
    let edit = |(part, output)| show(message, at, part, output);
    let archive = archived.then_some(Edit::Archive { message: at });
    shown.into_iter().map(edit).chain(archive).collect()
}
