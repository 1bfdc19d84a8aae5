//! The window: log and journal, normalised and verified.
//!
//! A window is a pure function of its log and journal. It is built step by step: the front
//! of it settles, and a call costs what is new since the last one, not the whole log.

use std::fmt;
use std::sync::Arc;

use trimtab_model::estimate::Measure;
use trimtab_model::rounds::Answer;
use trimtab_model::{Message, Part, Role};

use crate::budget::Measures;
use crate::journal::{Journal, JournalEntry};
use crate::log::Log;
use crate::normalise::{
    Entry, Normalised, Options, Reach, Repair, Settled, Slot, Source, normalise_after,
};
use crate::plan::{Edit, Plan};
use crate::verify::{Fault, Verified, Verifier};

/// How many of the newest messages never settle, so that a late output among them finds its
/// call without starting over.
const UNSETTLED: usize = 8;

/// What is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    entries: Vec<Entry>,
    repairs: Vec<Repair>,
    measures: Measures,
}

impl Window {
    /// The messages with where they come from.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The messages in the order in which they are sent.
    pub fn messages(
        &self,
    ) -> impl ExactSizeIterator<Item = &Arc<Message>> + DoubleEndedIterator<Item = &Arc<Message>>
    {
        self.entries.iter().map(|entry| &entry.message)
    }

    /// The measures of its regions, from which any estimate follows in constant time.
    pub fn measures(&self) -> &Measures {
        &self.measures
    }

    /// What normalising repaired.
    pub fn repairs(&self) -> &[Repair] {
        &self.repairs
    }
}

/// The window is not valid. Normalising repairs whatever a log can hold, so this is a fault
/// of ours; the caller should send what it had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// What is wrong.
    pub faults: Vec<Fault>,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the window is not valid")?;
        self.faults
            .iter()
            .try_for_each(|fault| write!(f, "; {fault}"))
    }
}

impl std::error::Error for Invalid {}

/// A log with its journal, and the window that they make.
///
/// ```
/// # use trimtab_engine::{normalise::Options, window::Projection};
/// # use trimtab_model::Message;
/// let mut projection = Projection::new(Options::default());
/// projection.admit(Message::user("hello"));
/// projection.admit(Message::assistant("hi"));
/// assert_eq!(projection.window().unwrap().messages().len(), 2);
/// ```
#[derive(Debug, Default)]
pub struct Projection {
    options: Options,
    log: Log,
    journal: Journal,
    /// The log with the journal's edits, not yet normalised.
    slots: Vec<Slot>,
    /// The measure of each slot: a message is counted once.
    measured: Vec<Measure>,
    /// All of them together.
    total: Measure,
    /// The measure of each message of the log, as it came.
    came: Vec<Measure>,
    front: Front,
    window: Window,
    /// What is wrong with the window as it was built last; none if it is stale.
    built: Option<Vec<Fault>>,
}

/// The part of the window that is settled.
#[derive(Debug, Default)]
struct Front {
    settled: Settled,
    verified: Verified,
    slots: usize,
    entries: usize,
    repairs: usize,
    faults: Vec<Fault>,
    measures: Measures,
}

impl Projection {
    /// An empty log and journal.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            ..Self::default()
        }
    }

    /// A log and journal that were kept.
    pub fn restore(options: Options, log: Log, journal: Journal) -> Self {
        let came = log.messages().iter().map(|message| Measure::of(message));
        let came = came.collect();
        Self::with_measures(options, log, journal, came)
    }

    fn with_measures(options: Options, log: Log, journal: Journal, came: Vec<Measure>) -> Self {
        let mut projection = Self {
            options,
            log,
            journal,
            came,
            ..Self::default()
        };
        projection.apply_journal();
        projection
    }

    /// The messages as they came.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The plans that were carried out.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The log with every plan that holds, not yet normalised: what the next plan works on.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The measure of the message at `position` of the log, as it came.
    pub fn measure(&self, position: usize) -> Option<&Measure> {
        self.came.get(position)
    }

    /// The measure of each slot.
    pub fn slot_measures(&self) -> &[Measure] {
        &self.measured
    }

    /// What all slots take together: about what the window takes, without building it.
    pub fn total(&self) -> &Measure {
        &self.total
    }

    /// Adds a line to the journal that changes nothing in the window: what the last compaction
    /// brought.
    pub fn judge(&mut self, enough: bool) {
        let at = self.log.len();
        self.journal.append(JournalEntry::Judged { enough, at });
    }

    /// Appends a message to the log and gives its position.
    pub fn admit(&mut self, message: impl Into<Arc<Message>>) -> usize {
        let message = message.into();
        self.built = None;
        let at = self.log.append(Arc::clone(&message));
        let measure = Measure::of(&message);
        self.measured.push(measure);
        self.total += measure;
        self.came.push(measure);
        self.slots.push(Slot {
            message,
            source: Source::Log(at),
        });
        at
    }

    /// Carries out a plan. The window after it is a new one, a switch point, unless the plan
    /// only says how the newest message is shown, which nobody was sent yet.
    pub fn carry_out(&mut self, plan: Plan) {
        let plan = plan.within(self.log.len());
        if plan.is_empty() {
            return;
        }
        if self.shows_only_newest(&plan) {
            self.show_newest(&plan);
            self.journal.append(JournalEntry::Plan(plan));
        } else {
            self.append_to_journal(JournalEntry::Plan(plan));
        }
    }

    /// Carries out a plan if that makes the window smaller by some estimate; otherwise
    /// nothing happens. The plan comes back with what the window measured before and after.
    ///
    /// ```
    /// # use trimtab_engine::{normalise::Options, window::Projection};
    /// # use trimtab_engine::plan::{Edit, Plan, Reason};
    /// # use trimtab_model::{Message, estimate::Measure};
    /// let mut projection = Projection::new(Options::default());
    /// projection.admit(Message::user("a long question ".repeat(50)));
    /// projection.admit(Message::user("a short one"));
    /// let plan = Plan::new(Reason::ByHand, vec![Edit::Hide { from: 0, to: 1 }]);
    /// let carried_out = projection.shrink(plan, Measure::tokens)?;
    /// assert!(carried_out.is_some_and(|plan| plan.tokens_after < plan.tokens_before));
    /// # Ok::<_, trimtab_engine::window::Invalid>(())
    /// ```
    pub fn shrink(
        &mut self,
        plan: Plan,
        tokens: impl Fn(&Measure) -> u64,
    ) -> Result<Option<Plan>, Invalid> {
        let plan = self.would_shrink(plan, tokens)?;
        if let Some(plan) = &plan {
            self.carry_out(plan.clone());
        }
        Ok(plan)
    }

    /// The plan with what the window measures before and after it, if it makes the window
    /// smaller. Nothing is carried out.
    pub fn would_shrink(
        &mut self,
        plan: Plan,
        tokens: impl Fn(&Measure) -> u64,
    ) -> Result<Option<Plan>, Invalid> {
        let mut plan = plan.within(self.log.len());
        plan.tokens_before = tokens(&self.window()?.measures().total());
        let mut journal = self.journal.clone();
        journal.append(JournalEntry::Plan(plan.clone()));
        let (log, came) = (self.log.clone(), self.came.clone());
        let mut after = Self::with_measures(self.options, log, journal, came);
        plan.tokens_after = tokens(&after.window()?.measures().total());
        Ok((plan.tokens_after < plan.tokens_before).then_some(plan))
    }

    fn shows_only_newest(&self, plan: &Plan) -> bool {
        let newest = self.log.len().checked_sub(1);
        let is_last = self.slots.last().map(|slot| slot.source) == newest.map(Source::Log);
        let shows = |edit: &Edit| match edit {
            Edit::Show { message, .. } => Some(*message) == newest,
            _ => false,
        };
        is_last && plan.edits.iter().all(shows)
    }

    fn show_newest(&mut self, plan: &Plan) {
        let Some(slot) = self.slots.last_mut() else {
            return;
        };
        let mut shown = Message::clone(&slot.message);
        for edit in &plan.edits {
            let Edit::Show { part, output, .. } = edit else {
                continue;
            };
            if let Some(part) = shown.parts.get_mut(*part) {
                *part = Part::Output(output.clone());
            }
        }
        slot.message = Arc::new(shown);
        self.built = None;
        if let Some(measure) = self.measured.last_mut() {
            self.total -= *measure;
            *measure = Measure::of(&slot.message);
            self.total += *measure;
        }
    }

    /// True if there is a plan that can be taken back.
    pub fn can_undo(&self) -> bool {
        self.journal.plans().iter().any(|plan| plan.can_be_undone())
    }

    /// Takes the newest plan back; false if there is none.
    pub fn undo(&mut self) -> bool {
        let any = self.can_undo();
        if any {
            self.append_to_journal(JournalEntry::Undo);
        }
        any
    }

    fn append_to_journal(&mut self, entry: JournalEntry) {
        self.journal.append(entry);
        self.apply_journal();
    }

    fn apply_journal(&mut self) {
        self.slots = self.journal.apply(&self.log);
        let measure = |slot: &Slot| match slot.source {
            Source::Log(at) if self.is_as_it_came(slot, at) => self.came.get(at).copied(),
            _ => None,
        };
        let measured = |slot| measure(slot).unwrap_or_else(|| Measure::of(&slot.message));
        self.measured = self.slots.iter().map(measured).collect();
        self.total = self.measured.iter().copied().sum();
        self.front = Front::default();
        self.built = None;
    }

    /// True if no plan changes anything: every message of the log is a slot, as it came.
    pub fn is_unedited(&self) -> bool {
        let mut slots = self.slots.iter().enumerate();
        self.slots.len() == self.log.len()
            && slots
                .all(|(at, slot)| slot.source == Source::Log(at) && self.is_as_it_came(slot, at))
    }

    fn is_as_it_came(&self, slot: &Slot, at: usize) -> bool {
        let came = self.log.get(at);
        came.is_some_and(|came| Arc::ptr_eq(came, &slot.message))
    }

    /// The window as it would be sent now.
    pub fn window(&mut self) -> Result<&Window, Invalid> {
        // Asked for again and again while one call is decided on.
        if self.built.is_none() {
            self.built = Some(self.build());
        }
        match self.built.as_deref() {
            None | Some([]) => Ok(&self.window),
            Some(faults) => Err(Invalid {
                faults: faults.to_vec(),
            }),
        }
    }

    /// The window as it was built last.
    pub fn built(&self) -> &Window {
        &self.window
    }

    fn build(&mut self) -> Vec<Fault> {
        self.settle();
        let after = loop {
            let tail = self.slots.get(self.front.slots..).unwrap_or_default();
            let after = normalise_after(&self.front.settled, tail, self.options, Reach::End);
            if !after.reaches_back {
                break after;
            }
            self.front = Front::default();
        };
        let mut faults = self.front.faults.clone();
        faults.extend(self.take(after.normalised).finish());
        faults
    }

    /// Puts what was normalised behind the settled front, and verifies it.
    fn take(&mut self, normalised: Normalised) -> Verifier<'_> {
        self.window.entries.truncate(self.front.entries);
        self.window.repairs.truncate(self.front.repairs);
        self.window.measures = self.front.measures;
        let mut verifier = Verifier::resume(self.options.dialect, &self.front.verified);
        for (entry, slot) in normalised.entries.iter().zip(normalised.slots) {
            let known = slot.and_then(|slot| self.measured.get(self.front.slots + slot));
            let measure = known
                .copied()
                .unwrap_or_else(|| Measure::of(&entry.message));
            self.window.measures.add(&entry.message, measure);
            verifier.push(&entry.message);
        }
        self.window.entries.extend(normalised.entries);
        self.window.repairs.extend(normalised.repairs);
        verifier
    }

    /// Settles what is old enough, so that it is not looked at again.
    fn settle(&mut self) {
        let tail = self.slots.get(self.front.slots..).unwrap_or_default();
        if tail.len() < 2 * UNSETTLED {
            return;
        }
        let Some(cut) = settling_point(&self.front.settled, tail) else {
            return;
        };
        let old = tail.get(..cut).unwrap_or_default();
        let after = normalise_after(&self.front.settled, old, self.options, Reach::Middle);
        if after.reaches_back {
            self.front = Front::default();
            return;
        }
        let (read, faults) = self.take(after.normalised).pause();
        self.front.settled.extend(after.learnt);
        self.front.verified.extend(read);
        self.front.faults.extend(faults);
        self.front.slots += cut;
        self.front.entries = self.window.entries.len();
        self.front.repairs = self.window.repairs.len();
        self.front.measures = self.window.measures;
    }
}

/// The newest place in `tail`, at least [`UNSETTLED`] messages from its end, where a cut
/// separates no output from its call.
fn settling_point(settled: &Settled, tail: &[Slot]) -> Option<usize> {
    let pairing = settled.pair(tail);
    let mut splits = vec![0i64; tail.len() + 1];
    let mut forbid = |from: usize, to: usize| {
        if let Some(at) = splits.get_mut(from) {
            *at += 1;
        }
        if let Some(at) = splits.get_mut(to) {
            *at -= 1;
        }
    };
    for (place, answer) in &pairing.outputs {
        match answer {
            Answer::Answers { round, .. } => {
                let start = pairing.rounds.get(*round).map_or(0, |round| round.start);
                let (from, to) = (start.min(place.message), start.max(place.message));
                forbid(from + 1, to + 1);
            }
            // Its call may be the next message.
            Answer::Orphan => forbid(place.message + 1, place.message + 2),
            Answer::Duplicate | Answer::ReachesBack => {}
        }
    }
    let mut open = 0;
    let newest = tail.len().saturating_sub(UNSETTLED);
    let mut point = None;
    for (cut, (slot, splits)) in tail.iter().zip(splits).enumerate().take(newest + 1) {
        open += splits;
        if cut > 0 && open == 0 && slot.message.role != Role::Tool {
            point = Some(cut);
        }
    }
    point
}
