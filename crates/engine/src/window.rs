//! The window: log and journal, normalised and verified.
//!
//! A window is a pure function of its log and journal. It is built step by step: its front settles,
//! so that a call costs what is new since the last one, not the whole log.

mod build;
mod change;
mod slots;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use trimtab_model::estimate::Measure;
use trimtab_model::{Dialect, Message, Part};

use crate::budget::RegionMeasures;
use crate::journal::{Journal, JournalEntry};
use crate::log::Log;
use crate::normalise::{MessageSource, NormaliseOptions, Repair, Slot, WindowEntry};
use crate::plan::Plan;
use crate::verify::WindowFault;
use crate::view::WindowOutputs;
use build::WindowBuilder;
use slots::SlotInfo;

/// The messages that are sent, with their repairs and measures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    entries: Vec<WindowEntry>,
    repairs: Vec<Repair>,
    measures: RegionMeasures,
    /// The number of messages that are not system messages.
    spoken: usize,
}

impl Window {
    /// The messages and their origin.
    pub fn entries(&self) -> &[WindowEntry] {
        &self.entries
    }

    /// The messages, in the order in which they are sent.
    pub fn messages(
        &self,
    ) -> impl ExactSizeIterator<Item = &Arc<Message>> + DoubleEndedIterator<Item = &Arc<Message>>
    {
        self.entries.iter().map(|entry| &entry.message)
    }

    /// The measures of its regions. Any estimate follows from them in constant time.
    pub fn measures(&self) -> &RegionMeasures {
        &self.measures
    }

    /// The number of messages that are not system messages.
    pub fn spoken(&self) -> usize {
        self.spoken
    }

    /// The repairs of normalisation.
    pub fn repairs(&self) -> &[Repair] {
        &self.repairs
    }
}

/// The window is invalid. Normalisation repairs everything that a log can contain, so this is a
/// fault of ours; the caller should send the original messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidWindow {
    /// What is wrong.
    pub faults: Vec<WindowFault>,
}

impl fmt::Display for InvalidWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the window is not valid")?;
        self.faults
            .iter()
            .try_for_each(|fault| write!(f, "; {fault}"))
    }
}

impl std::error::Error for InvalidWindow {}

/// A log with its journal, and the window that they produce.
///
/// ```
/// # use trimtab_engine::{normalise::NormaliseOptions, window::Projection};
/// # use trimtab_model::Message;
/// let mut projection = Projection::new(NormaliseOptions::default());
/// projection.admit(Message::user("hello"));
/// projection.admit(Message::assistant("hi"));
/// assert_eq!(projection.window().unwrap().messages().len(), 2);
/// ```
#[derive(Debug, Default)]
pub struct Projection {
    log: Log,
    journal: Journal,
    /// The measure of each message of the log, unedited.
    log_measures: Vec<Measure>,
    /// The tools that the newest message with calls calls, by the ids of the calls.
    called_tools: HashMap<String, String>,
    /// The log with the edits of the journal, and the resulting window.
    builder: WindowBuilder,
}

/// The tools that a message calls, by the ids of the calls. The first call with an id counts.
fn called_tools(message: &Message) -> HashMap<String, String> {
    let mut tools = HashMap::new();
    for call in message.calls() {
        let tool = || call.name.clone();
        tools.entry(call.id.clone()).or_insert_with(tool);
    }
    tools
}

fn is_signed(message: &Message) -> bool {
    let mut parts = message.parts.iter();
    parts.any(|part| matches!(part, Part::Reasoning(thought) if thought.is_sealed()))
}

impl Projection {
    /// An empty log and journal.
    pub fn new(options: NormaliseOptions) -> Self {
        Self {
            builder: WindowBuilder::new(options),
            ..Self::default()
        }
    }

    /// Restores a stored log and journal. Measures every message once.
    pub fn restore(options: NormaliseOptions, log: Log, journal: Journal) -> Self {
        let messages = log.messages().iter();
        let measures = messages.map(|message| Measure::of(message)).collect();
        Self::restore_measured(options, log, measures, journal)
    }

    /// The first `messages` of the log with another journal. They are not measured again.
    #[must_use]
    pub fn beginning(&self, options: NormaliseOptions, messages: usize, journal: Journal) -> Self {
        let log = self.log.messages().iter().take(messages).cloned().collect();
        let measures = self.log_measures.iter().take(messages).copied().collect();
        Self::restore_measured(options, log, measures, journal)
    }

    fn restore_measured(
        options: NormaliseOptions,
        log: Log,
        log_measures: Vec<Measure>,
        journal: Journal,
    ) -> Self {
        let mut newest_first = log.messages().iter().rev();
        let newest = newest_first.find(|message| message.has_calls());
        let mut projection = Self {
            log_measures,
            called_tools: newest.map_or_else(HashMap::new, |newest| called_tools(newest)),
            log,
            journal,
            ..Self::new(options)
        };
        projection.rebuild();
        projection
    }

    /// The original messages.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The executed plans.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The log with every plan in force, not yet normalised. The next plan edits these slots.
    pub fn slots(&self) -> &[Slot] {
        &self.builder.slots.slots
    }

    /// The dialect of its windows.
    pub fn dialect(&self) -> Dialect {
        self.builder.options.dialect
    }

    /// The slot of the message at `position` of the log; none if it is hidden.
    pub fn slot_of(&self, position: usize) -> Option<&Slot> {
        self.slots().get(self.slot_number(position)?)
    }

    /// The outputs in the window, as it was built last.
    pub fn outputs(&self) -> WindowOutputs<'_, Slot> {
        self.builder.outputs()
    }

    /// The measure of the original message at `position` of the log.
    pub fn measure(&self, position: usize) -> Option<&Measure> {
        self.log_measures.get(position)
    }

    /// The original messages with their measures.
    pub fn measured_log(&self) -> Vec<(Arc<Message>, Measure)> {
        let messages = self.log.messages().iter().cloned();
        messages.zip(self.log_measures.iter().copied()).collect()
    }

    /// The measure of the slot of the message at `position` of the log; none if it is hidden.
    pub fn shown_measure(&self, position: usize) -> Option<Measure> {
        self.measure_of_slot(self.slot_number(position)?)
    }

    /// The measure of a slot, by its number.
    pub fn measure_of_slot(&self, number: usize) -> Option<Measure> {
        self.builder.slots.measure(number)
    }

    /// The measure of all slots together: approximately that of the window, without building it.
    pub fn total(&self) -> Measure {
        self.builder.slots.total()
    }

    /// The measure of the outputs at the end, which no answer follows yet.
    pub fn open_outputs(&self) -> &Measure {
        self.builder.slots.open_outputs()
    }

    /// The name of the tool that the newest message with calls calls under `id`.
    pub fn called_tool(&self, id: &str) -> Option<&str> {
        self.called_tools.get(id).map(String::as_str)
    }

    /// Appends an entry of the journal that leaves the window as it is: a judgement.
    pub fn record(&mut self, entry: JournalEntry) {
        self.journal.append(entry);
    }

    /// Executes an entry that another process has appended to the stored journal.
    pub fn follow(&mut self, entry: JournalEntry) {
        match entry {
            JournalEntry::Plan(plan) => self.carry_out(plan),
            JournalEntry::Undo => {
                self.undo();
            }
            JournalEntry::Judged { .. } => self.journal.append(entry),
        }
    }

    /// Appends a message to the log and returns its position.
    pub fn admit(&mut self, message: impl Into<Arc<Message>>) -> usize {
        self.admit_measured(message.into(), &BTreeMap::new())
    }

    /// The same for a message with some texts that are already measured, by part index.
    pub fn admit_measured(
        &mut self,
        message: Arc<Message>,
        texts: &BTreeMap<usize, Measure>,
    ) -> usize {
        let measure = Measure::with_known_texts(&message, texts);
        self.admit_known(message, measure)
    }

    /// The same for a message whose measure is known.
    pub fn admit_known(&mut self, message: Arc<Message>, measure: Measure) -> usize {
        let at = self.log.append(Arc::clone(&message));
        if message.has_calls() {
            self.called_tools = called_tools(&message);
        }
        self.log_measures.push(measure);
        let source = MessageSource::Log(at);
        let known = SlotInfo {
            measure,
            as_it_came: true,
        };
        self.builder.push(Slot { message, source }, known);
        at
    }

    /// Executes a plan. This is a switch point, unless the plan only decides how the newest message
    /// is shown, which was not sent yet.
    ///
    /// The cost depends on the slots from the first change on, not on the whole log.
    pub fn carry_out(&mut self, plan: Plan) {
        // A plan can be drafted for a log that has grown, or come from a caller. Positions beyond
        // the log would hide messages that are yet to come.
        let plan = plan.within(self.log.len());
        if plan.is_empty() {
            return;
        }
        self.change(&plan);
        self.journal.append(JournalEntry::Plan(plan));
    }

    /// The plan with the sizes of the window before and after it, if it makes the window smaller.
    /// Nothing is executed.
    ///
    /// ```
    /// # use trimtab_engine::{normalise::NormaliseOptions, window::Projection};
    /// # use trimtab_engine::plan::{Edit, Plan, PlanReason};
    /// # use trimtab_model::{Message, estimate::Measure};
    /// let mut projection = Projection::new(NormaliseOptions::default());
    /// projection.admit(Message::user("a long question ".repeat(50)));
    /// projection.admit(Message::user("a short one"));
    /// let plan = Plan::new(PlanReason::ByHand, vec![Edit::Hide { from: 0, to: 1 }]);
    /// let plan = projection.would_shrink(plan, Measure::tokens)?;
    /// assert!(plan.is_some_and(|plan| plan.tokens_after < plan.tokens_before));
    /// # Ok::<_, trimtab_engine::window::InvalidWindow>(())
    /// ```
    pub fn would_shrink(
        &mut self,
        plan: Plan,
        tokens: impl Fn(&Measure) -> u64,
    ) -> Result<Option<Plan>, InvalidWindow> {
        let mut plan = plan.within(self.log.len());
        // The window must be built before `measure_with`: its fast path needs the entry of each
        // slot.
        plan.tokens_before = tokens(&self.window()?.measures().total());
        plan.tokens_after = tokens(&self.measure_with(&plan)?);
        Ok((plan.tokens_after < plan.tokens_before).then_some(plan))
    }

    /// The number of messages in the window that have reasoning.
    pub fn reasoning_messages(&self) -> usize {
        self.builder.slots.thoughts.len()
    }

    /// True if the newest message is an output, so that the model goes on in its tool loop, and the
    /// newest reasoning in the window is signed.
    pub fn ends_in_signed_loop(&self) -> bool {
        let newest = self.log.messages().last();
        let reasoning = self.builder.slots.thoughts.last();
        let reasoning = reasoning.and_then(|number| self.slots().get(*number));
        newest.is_some_and(|message| message.has_outputs())
            && reasoning.is_some_and(|slot| is_signed(&slot.message))
    }

    /// True if some plan can be undone.
    pub fn can_undo(&self) -> bool {
        self.journal.undoable() > 0
    }

    /// Undoes the newest undoable plan; false if there is none.
    pub fn undo(&mut self) -> bool {
        let any = self.can_undo();
        if any {
            self.journal.append(JournalEntry::Undo);
            self.rebuild();
        }
        any
    }

    /// True if no plan changes anything: every message of the log is a slot, unedited.
    pub fn is_unedited(&self) -> bool {
        let slots = &self.builder.slots;
        slots.slots.len() == self.log.len() && slots.edited == 0
    }

    /// The window as it would be sent now.
    pub fn window(&mut self) -> Result<&Window, InvalidWindow> {
        self.builder.window()
    }

    /// The window as it was built last.
    pub fn last_window(&self) -> &Window {
        &self.builder.window
    }
}
