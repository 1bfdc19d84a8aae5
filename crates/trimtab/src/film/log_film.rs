//! The film of a log and its journal, which both grow.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use trimtab_engine::journal::JournalEntry;
use trimtab_engine::normalise::NormaliseOptions;
use trimtab_engine::plan::{Edit, Plan, PlanReason};
use trimtab_engine::window::Projection;
use trimtab_model::estimate::{Calibration, Measure};
use trimtab_model::{Message, Role};
use trimtab_wire::catalogue::Prices;

use super::band::{FilmBand, band_of};
use super::{Film, FilmBuilder};
use crate::session::Setup;

/// A film is drawn again if the model counts its log differently by more than one part in this
/// many. What a model is known to count changes a little with every call.
const SAME_COUNT: u64 = 50;

/// What the film of a log depends on besides the log.
#[derive(Clone, Debug, Default)]
pub struct FilmOptions {
    /// How windows are normalised.
    pub normalise: NormaliseOptions,
    /// How the model counts.
    pub calibration: Calibration,
    /// The prices of tokens.
    pub prices: Option<Prices>,
}

impl FilmOptions {
    /// The options for a session with this setup.
    pub fn of(setup: &Setup) -> Self {
        Self {
            normalise: NormaliseOptions {
                dialect: setup.dialect,
                habit: setup.policy.repair,
            },
            calibration: setup.calibration.clone(),
            prices: setup.prices,
        }
    }
}

/// The film of a log and its journal: a column for every answer in the log, and one for the next
/// call. It follows them while they grow, at the cost of what is new.
#[derive(Debug)]
pub struct LogFilm {
    options: FilmOptions,
    /// The log so far, with the plans that calls have sent.
    projection: Projection,
    measured: Measure,
    whole: u64,
    /// True if the last message asks for an answer.
    is_asked: bool,
    /// The number of entries of the journal that were read.
    entries_read: usize,
    /// The plans of admission whose messages are still to come, by position.
    admitted: BTreeMap<usize, Vec<Plan>>,
    /// The other entries that no call has sent yet, with the length of the log from which each
    /// applies.
    entries: VecDeque<(usize, JournalEntry)>,
    /// The length of the log from which the last entry applies.
    holds_from: usize,
    builder: FilmBuilder,
}

impl LogFilm {
    /// The film of an empty log.
    pub fn new(options: FilmOptions) -> Self {
        Self {
            projection: Projection::new(options.normalise),
            builder: FilmBuilder::new(options.prices),
            options,
            measured: Measure::default(),
            whole: 0,
            is_asked: false,
            entries_read: 0,
            admitted: BTreeMap::new(),
            entries: VecDeque::new(),
            holds_from: 0,
        }
    }

    /// The film so far.
    pub fn film(&self) -> &Film {
        self.builder.film()
    }

    /// Returns the film.
    pub fn into_film(self) -> Film {
        self.builder.finish()
    }

    /// The messages that it has followed.
    pub fn messages(&self) -> &[Arc<Message>] {
        self.projection.log().messages()
    }

    /// The number of entries of the journal that it has followed.
    pub fn entries_read(&self) -> usize {
        self.entries_read
    }

    /// True if a film with these options would look the same.
    pub fn looks_like(&self, options: &FilmOptions) -> bool {
        let tokens = options.calibration.tokens(&self.measured);
        let counted = self.options.calibration.tokens(&self.measured);
        options.normalise == self.options.normalise
            && options.prices == self.options.prices
            && tokens.abs_diff(counted) <= counted / SAME_COUNT
    }

    /// Follows a log and its journal, given what they have gained. False if that changes what was
    /// drawn before: then a new film must follow them from their start.
    #[must_use]
    pub fn follow(
        &mut self,
        messages: &[(Arc<Message>, Measure)],
        entries: &[JournalEntry],
    ) -> bool {
        let fits = entries.iter().all(|entry| self.read(entry))
            && messages
                .iter()
                .all(|(message, measure)| self.follow_message(message, *measure));
        if fits && self.is_asked {
            self.call();
        }
        fits
    }

    /// Keeps an entry for the call that sends it; false if that call was drawn already.
    fn read(&mut self, entry: &JournalEntry) -> bool {
        self.entries_read += 1;
        match entry {
            JournalEntry::Plan(plan) if is_view(plan) => {
                let Some(at) = plan.edits.iter().find_map(Edit::shown_message) else {
                    return true;
                };
                self.admitted.entry(at).or_default().push(plan.clone());
                return at >= self.messages().len();
            }
            // Entries apply in the order of the journal, so none can apply before an earlier one.
            JournalEntry::Plan(plan) => self.holds_from = first_window(plan).max(self.holds_from),
            // It applies from the first call after the plan that it undoes.
            JournalEntry::Undo => self.holds_from += 1,
            JournalEntry::Judged { .. } | JournalEntry::Pin { .. } => return true,
        }
        self.entries.push_back((self.holds_from, entry.clone()));
        self.last_call().is_none_or(|last| self.holds_from > last)
    }

    /// Adds a message, and the column of the call that it answers; false if a column was drawn for
    /// a call that it does not answer.
    fn follow_message(&mut self, message: &Arc<Message>, measure: Measure) -> bool {
        let at = self.messages().len();
        let is_answer = message.role == Role::Assistant;
        if !is_answer && self.last_call() == Some(at) {
            return false;
        }
        // An answer of several messages is one call.
        if is_answer && self.is_asked {
            self.call();
        }
        self.is_asked = !is_answer;
        self.projection.admit_known(Arc::clone(message), measure);
        self.measured += measure;
        self.whole += self.options.calibration.tokens(&measure);
        for plan in self.admitted.remove(&at).unwrap_or_default() {
            self.projection.carry_out(plan);
        }
        true
    }

    /// The number of messages of the last call that was drawn.
    fn last_call(&self) -> Option<usize> {
        self.film().columns.last().map(|column| column.messages)
    }

    /// Adds the column of a call with all messages so far, unless it is there.
    fn call(&mut self) {
        let messages = self.messages().len();
        if self.last_call() == Some(messages) {
            return;
        }
        let mut reasons = Vec::new();
        while self
            .entries
            .front()
            .is_some_and(|(from, _)| *from <= messages)
        {
            match self.entries.pop_front() {
                Some((_, JournalEntry::Plan(plan))) => {
                    reasons.push(reason_text(&plan.reason));
                    self.projection.carry_out(plan);
                }
                Some((_, JournalEntry::Undo)) => {
                    reasons.push("taken back by hand".to_owned());
                    self.projection.undo();
                }
                _ => {}
            }
        }
        // Without a plan the window has only grown, and its first bands are known.
        if reasons.is_empty() {
            let new: Vec<FilmBand> = self.bands(self.builder.bands().len()).collect();
            self.builder.extend(messages, self.whole, new.into_iter());
        } else {
            let bands = self.bands(0).collect();
            self.builder.switch(messages, self.whole, bands, reasons);
        }
    }

    /// The bands of the window from number `from` on.
    fn bands(&self, from: usize) -> impl Iterator<Item = FilmBand> + '_ {
        let slots = self.projection.slots().iter().enumerate().skip(from);
        slots.map(|(number, slot)| {
            let measure = self.projection.measure_of_slot(number).unwrap_or_default();
            let tokens = self.options.calibration.tokens(&measure);
            let came = slot.source.in_log();
            let came = came.and_then(|at| self.projection.log().get(at));
            band_of(slot, came, tokens)
        })
    }
}

/// True if a plan only chose how a new message is shown. The removal of reasoning that a new answer
/// makes invalid changes earlier messages too.
fn is_view(plan: &Plan) -> bool {
    let strips = |edit: &Edit| matches!(edit, Edit::StripReasoning { .. });
    plan.reason == PlanReason::Admission && !plan.edits.iter().any(strips)
}

/// The length of the first window that a plan can be part of.
fn first_window(plan: &Plan) -> usize {
    // After an overflow the same messages are sent again.
    if plan.reason == PlanReason::Overflow || plan.since == 0 {
        plan.at
    } else {
        plan.at.max(plan.since + 1)
    }
}

/// A reason as text.
fn reason_text(reason: &PlanReason) -> String {
    match reason {
        PlanReason::Triggered { trigger } => format!("trigger: {trigger}"),
        PlanReason::OutputsOverBudget => "old outputs were over their budget".to_owned(),
        PlanReason::Fit => "the window would not have fit".to_owned(),
        PlanReason::Overflow => "the provider said that the prompt was too long".to_owned(),
        PlanReason::ByHand => "by hand".to_owned(),
        PlanReason::FrontChanged => "tools or instructions changed".to_owned(),
        PlanReason::Nothing | PlanReason::Admission => "a new message".to_owned(),
    }
}
