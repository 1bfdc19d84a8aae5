//! Admits messages: stores their outputs, decides how they are shown, and appends them to the log.

use std::collections::BTreeMap;
use std::sync::Arc;

use trimtab_engine::decide::admit::{
    IncomingOutput, OutputRoom, incoming_view, measure_plain_outputs,
};
use trimtab_engine::observation::{outputs_of, show};
use trimtab_engine::plan::{Edit, Plan, PlanReason};
use trimtab_engine::view::Spill;
use trimtab_model::estimate::Measure;
use trimtab_model::{Message, MessageKind, Output, Role};
use trimtab_store::Stream;

use super::stored::StoredEntry;
use super::{Session, SessionError, SessionEvent, SessionEventKind};
use crate::admission::{spill_file, store_outputs, tool_of};

impl Session {
    /// Appends a message. Its outputs are stored in full and get their view. Returns its position.
    pub fn admit(&mut self, message: Message) -> Result<usize, SessionError> {
        self.admit_with_views(message, true)
    }

    /// The same for a message that the provider ignores, because a summary of its own follows. It is
    /// sent as it came.
    pub fn admit_summarised(&mut self, message: Message) -> Result<usize, SessionError> {
        self.admit_with_views(message, false)
    }

    fn admit_with_views(
        &mut self,
        mut message: Message,
        may_shorten: bool,
    ) -> Result<usize, SessionError> {
        // System messages always stay, so a repeated one is shown only once. The preset that
        // changes nothing does not do that.
        let fits = self.setup.policy.fit && may_shorten;
        let log = self.projection.log();
        let repeats = fits && self.systems.contains(log, &message);
        if fits && self.observations.is_observation(log, &message) {
            message.meta.kind = Some(MessageKind::Observation);
        }
        let named = |stored| self.as_shown_ref(stored);
        let (store, projection) = (&*self.store, &self.projection);
        store_outputs(store, &self.id, projection, &mut message, named)?;
        // Each long output is measured once; the view and the log use the same measure.
        let texts = measure_plain_outputs(&message);
        let shown = if may_shorten {
            self.show(&message, &texts)
        } else {
            Vec::new()
        };
        let mut entry = StoredEntry {
            message,
            shown,
            archived: repeats,
        };
        // The log is written before memory changes: if the store fails, the session is as before.
        let bytes = entry.bytes();
        self.log_position =
            self.store
                .append(&self.id, Stream::Log, self.log_position, &[&bytes])?;
        let answer = entry.message.role == Role::Assistant;
        // A user who comes back may have fixed what made the summaries fail.
        if entry.message.is_real_user() {
            self.calls.failed_tool_summaries = 0;
        }
        let message = Arc::new(entry.message);
        // A client that continues brings the answer, or has dropped it.
        self.calls.coming_answer = None;
        let at = self.projection.admit_measured(Arc::clone(&message), &texts);
        let edits = edits(at, &message, entry.shown, repeats);
        let plan = Plan::new(PlanReason::Admission, edits);
        if plan.shows_a_ref() {
            self.first_ref = None;
        }
        // Not written to the journal: the log entry contains the views.
        self.projection.carry_out(plan);
        if answer {
            self.answer_received(at)?;
        }
        Ok(at)
    }

    /// The views of the outputs of a new message. `texts` are the measures of plain-text outputs,
    /// by part index.
    fn show(
        &mut self,
        message: &Message,
        texts: &BTreeMap<usize, Measure>,
    ) -> Vec<(usize, Output)> {
        let (mut views, mut round) = (Vec::new(), 0);
        let mut left = outputs_of(message).count();
        for (part, output) in outputs_of(message) {
            let tool = tool_of(&output, &self.projection);
            let spill = spill_file(&*self.store, &self.id, &self.views, (tool, &output));
            // The output itself is stored, so a missing file is only a warning.
            if let Some(Spill::Failed(why)) = &spill {
                let note = format!("an output could not be written to a file: {why}");
                let event = SessionEvent::new(SessionEventKind::Warning, PlanReason::Admission);
                self.events.push(event.with_note(note));
            }
            let is_for_program = self.projection.log().is_for_program(&output);
            let incoming = IncomingOutput {
                tool,
                output: &output,
                measure: texts.get(&part).copied(),
                observed: message.meta.kind == Some(MessageKind::Observation),
                is_for_program,
                spill: spill.as_ref(),
            };
            let (view, takes) = self.with_uncalibrated(|conditions| {
                let weigh = |measure: &Measure| conditions.weigh(measure);
                // Earlier outputs of this message are not in the projection yet.
                let used = weigh(&self.projection.total()).saturating_add(round);
                let open = weigh(self.projection.open_outputs()).saturating_add(round);
                let room = OutputRoom::new(&self.setup.policy, conditions, used, open);
                let view = incoming_view(&self.views, &incoming, &room, conditions);
                left -= 1;
                // Only further outputs of the same message need this figure.
                let takes = match (&view, &incoming.measure) {
                    _ if left == 0 => 0,
                    (None, Some(measure)) => weigh(measure),
                    _ => weigh(&Measure::of_text(&view.as_ref().unwrap_or(&output).text())),
                };
                (view, takes)
            });
            round += takes;
            views.extend(view.map(|view| (part, view)));
        }
        views
    }
}

/// The edits of a new message: how its outputs are shown, and whether it is archived.
pub(super) fn edits(
    at: usize,
    message: &Message,
    shown: Vec<(usize, Output)>,
    archived: bool,
) -> Vec<Edit> {
    let edit = |(part, output)| show(message, at, part, output);
    let archive = archived.then_some(Edit::Archive { message: at });
    shown.into_iter().map(edit).chain(archive).collect()
}
