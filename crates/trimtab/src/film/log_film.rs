//! Makes the film of a log and its journal.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use trimtab_engine::journal::JournalEntry;
use trimtab_engine::plan::{Edit, Plan, PlanReason};
use trimtab_engine::window::Projection;
use trimtab_model::estimate::Measure;
use trimtab_model::{Message, Role};

use super::band::{FilmBand, band_of};
use super::{Film, FilmBuilder};
use crate::session::Setup;

/// The film of a log and its journal: a column for every answer in the log, and one for the next
/// call. `setup` is that of its session.
pub fn film_of(log: &[(Arc<Message>, Measure)], journal: &[JournalEntry], setup: &Setup) -> Film {
    let mut film = LogFilm {
        projection: Projection::new(setup.normalise()),
        builder: FilmBuilder::new(setup.prices),
        setup,
        whole: 0,
        admitted: BTreeMap::new(),
        entries: VecDeque::new(),
    };
    film.read(journal);
    // True if the last message asks for an answer.
    let mut is_asked = false;
    for (message, measure) in log {
        let is_answer = message.role == Role::Assistant;
        // An answer of several messages is one call.
        if is_answer && is_asked {
            film.call();
        }
        is_asked = !is_answer;
        film.admit(message, *measure);
    }
    if is_asked {
        film.call();
    }
    film.builder.finish()
}

/// A film while it is made.
struct LogFilm<'a> {
    setup: &'a Setup,
    /// The log so far, with the plans that calls have sent.
    projection: Projection,
    whole: u64,
    /// The plans of admission whose messages are still to come, by position.
    admitted: BTreeMap<usize, Vec<&'a Plan>>,
    /// The other entries that no call has sent yet, with the length of the log from which each
    /// applies.
    entries: VecDeque<(usize, &'a JournalEntry)>,
    builder: FilmBuilder,
}

impl<'a> LogFilm<'a> {
    /// Finds out which message or call each entry belongs to.
    fn read(&mut self, journal: &'a [JournalEntry]) {
        // Entries apply in the order of the journal, so none can apply before an earlier one.
        let mut holds_from = 0;
        for entry in journal {
            match entry {
                JournalEntry::Plan(plan) if is_view(plan) => {
                    if let Some(at) = plan.edits.iter().find_map(Edit::shown_message) {
                        self.admitted.entry(at).or_default().push(plan);
                    }
                    continue;
                }
                JournalEntry::Plan(plan) => holds_from = first_window(plan).max(holds_from),
                // It applies from the first call after the plan that it undoes.
                JournalEntry::Undo => holds_from += 1,
                JournalEntry::Judged { .. } => continue,
            }
            self.entries.push_back((holds_from, entry));
        }
    }

    fn admit(&mut self, message: &Arc<Message>, measure: Measure) {
        let at = self.projection.admit_known(Arc::clone(message), measure);
        self.whole += self.setup.calibration.tokens(&measure);
        for plan in self.admitted.remove(&at).unwrap_or_default() {
            self.projection.carry_out(plan.clone());
        }
    }

    /// Adds the column of a call with all messages so far.
    fn call(&mut self) {
        let messages = self.projection.log().len();
        let mut reasons = Vec::new();
        let sent = self.entries.partition_point(|(from, _)| *from <= messages);
        for (_, entry) in self.entries.drain(..sent) {
            if let JournalEntry::Plan(plan) = entry {
                reasons.push(reason_text(&plan.reason));
                self.projection.carry_out(plan.clone());
            } else {
                reasons.push("taken back by hand".to_owned());
                self.projection.undo();
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
            let tokens = self.setup.calibration.tokens(&measure);
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
