//! Builds the film of a log and its journal.

use std::sync::Arc;

use trimtab_engine::journal::{Journal, JournalEntry};
use trimtab_engine::normalise::NormaliseOptions;
use trimtab_engine::plan::{Edit, Plan, PlanReason};
use trimtab_engine::window::Projection;
use trimtab_model::estimate::{Calibration, Measure};
use trimtab_model::{Message, Role};
use trimtab_wire::catalogue::Prices;

use super::band::{FilmBand, band_of};
use super::{Film, FilmBuilder};

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

/// The film of a log, as measured before, and its journal: a column for every answer in the log,
/// and one for the next call.
pub fn film_of(log: &[(Arc<Message>, Measure)], journal: &Journal, options: FilmOptions) -> Film {
    let mut walk = LogWalk::new(journal, options);
    let mut is_asked = false;
    for (at, (message, measure)) in log.iter().enumerate() {
        let is_answer = message.role == Role::Assistant;
        // An answer of several messages is one call.
        if is_answer && is_asked {
            walk.call(at);
        }
        is_asked = !is_answer;
        walk.admit(at, message, *measure);
    }
    if is_asked {
        walk.call(log.len());
    }
    walk.builder.finish()
}

/// Walks a log, and executes each plan at the call that first sent it.
struct LogWalk<'a> {
    options: FilmOptions,
    projection: Projection,
    /// The plans of admission, by position.
    admitted: Vec<(usize, &'a Plan)>,
    /// The other entries, with the length of the log from which each applies.
    entries: std::iter::Peekable<std::vec::IntoIter<(usize, &'a JournalEntry)>>,
    whole: u64,
    builder: FilmBuilder,
}

impl<'a> LogWalk<'a> {
    fn new(journal: &'a Journal, options: FilmOptions) -> Self {
        let (mut admitted, mut entries) = (Vec::new(), Vec::new());
        let mut holds_from = 0;
        for entry in journal.entries() {
            match entry {
                JournalEntry::Plan(plan) if is_view(plan) => {
                    let message = plan.edits.iter().find_map(Edit::shown_message);
                    admitted.extend(message.map(|at| (at, plan)));
                }
                JournalEntry::Plan(plan) => {
                    // Entries apply in the order of the journal, so none can apply before an
                    // earlier one.
                    holds_from = first_window(plan).max(holds_from);
                    entries.push((holds_from, entry));
                }
                // It applies from the first call after the plan that it undoes.
                JournalEntry::Undo => {
                    holds_from += 1;
                    entries.push((holds_from, entry));
                }
                JournalEntry::Judged { .. } | JournalEntry::Pin { .. } => {}
            }
        }
        // Reversed, so that the next one can be popped from the end.
        admitted.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        Self {
            projection: Projection::new(options.normalise),
            builder: FilmBuilder::new(options.prices),
            admitted,
            entries: entries.into_iter().peekable(),
            whole: 0,
            options,
        }
    }

    fn admit(&mut self, at: usize, message: &Arc<Message>, measure: Measure) {
        self.projection.admit_known(Arc::clone(message), measure);
        self.whole += self.options.calibration.tokens(&measure);
        while self.admitted.last().is_some_and(|(place, _)| *place <= at) {
            if let Some((_, plan)) = self.admitted.pop() {
                self.projection.carry_out(plan.clone());
            }
        }
    }

    /// Adds the column of a call with this many messages.
    fn call(&mut self, messages: usize) {
        let mut reasons = Vec::new();
        while let Some((_, entry)) = self.entries.next_if(|(from, _)| *from <= messages) {
            match entry {
                JournalEntry::Plan(plan) => {
                    reasons.push(reason_text(&plan.reason));
                    self.projection.carry_out(plan.clone());
                }
                JournalEntry::Undo => {
                    reasons.push("taken back by hand".to_owned());
                    self.projection.undo();
                }
                JournalEntry::Judged { .. } | JournalEntry::Pin { .. } => {}
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
