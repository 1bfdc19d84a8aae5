//! Keeps signed reasoning valid if the bytes before it change outside a plan.

use trimtab_engine::decide::strip_bound_reasoning;
use trimtab_engine::journal::JournalEntry;
use trimtab_engine::plan::{Edit, Plan, PlanReason};
use trimtab_model::estimate::Measure;

use super::{Session, SessionError, SessionEvent, SessionEventKind};

/// The note about reasoning that was removed because something in front of it changed.
const FRONT_NOTE: &str = "earlier reasoning was removed: tools or instructions in front of it changed, and it is bound to them";

/// An edit that removes nothing. Its plan notes that the front has changed.
const EMPTY_STRIP: Edit = Edit::StripReasoning { from: 0, before: 0 };

/// Whether an answer is in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AnswerInFlight {
    /// No answer is in flight.
    #[default]
    Nothing,
    /// An answer to the current window.
    Answer,
    /// An answer to a window that a plan has changed since, because a summary was finished
    /// meanwhile.
    Stale,
}

impl AnswerInFlight {
    /// Records that a plan was executed.
    pub(super) fn mark_stale(&mut self) {
        if *self == Self::Answer {
            *self = Self::Stale;
        }
    }
}

impl Session {
    /// Counts the answer to the last window, which is not in the log yet: a client will bring it
    /// with its next request.
    pub fn answer_comes(&mut self, answer: Measure) {
        if self.calls.answer_in_flight != AnswerInFlight::Nothing {
            self.calls.coming_answer = Some(answer);
            self.count_answer(answer);
        }
    }

    /// The reported usage already includes this answer, unless it is about an earlier window.
    fn count_answer(&mut self, answer: Measure) {
        let is_reported = self.calls.sent_measure.is_none();
        if let Some(reported) = self.calls.usage.as_mut().filter(|_| is_reported) {
            reported.answer = answer;
        }
    }

    /// Records the answer at `at`. Reasoning that followed another window is removed.
    pub(super) fn answer_received(&mut self, at: usize) -> Result<(), SessionError> {
        if self.calls.answer_in_flight != AnswerInFlight::Nothing
            && let Some(answer) = self.projection.measure(at).copied()
        {
            self.count_answer(answer);
        }
        match std::mem::take(&mut self.calls.answer_in_flight) {
            AnswerInFlight::Stale => self.strip_reasoning(at, PlanReason::Admission),
            AnswerInFlight::Nothing | AnswerInFlight::Answer => Ok(()),
        }
    }

    /// Undoes the newest undoable plan; false if there is none.
    pub fn undo(&mut self) -> Result<bool, SessionError> {
        if !self.projection.can_undo() {
            return Ok(false);
        }
        let before = self.window_tokens()?;
        let made_at = {
            let mut newest_first = self.projection.journal().plans().rev();
            let undone = newest_first.find(|plan| plan.can_be_undone());
            undone.map_or(0, |plan| plan.at)
        };
        self.write(&JournalEntry::Undo)?;
        self.projection.undo();
        self.calls.usage = None;
        self.calls.answer_in_flight.mark_stale();
        // Reasoning that came since is bound to the window that no longer exists. Then reasoning
        // that was removed before must not come back in front of it.
        if strip_bound_reasoning(made_at, self.projection.slots()).is_some() {
            self.strip_reasoning(0, PlanReason::Admission)?;
        }
        let mut event = SessionEvent::new(SessionEventKind::Undone, PlanReason::ByHand);
        (event.tokens_before, event.messages_before) = before;
        (event.tokens_after, event.messages_after) = self.window_tokens()?;
        self.events.push(event);
        Ok(true)
    }

    /// True if the window contains signed reasoning that the model binds to what precedes it.
    pub fn has_bound_reasoning(&self) -> bool {
        let strip = strip_bound_reasoning(0, self.projection.slots());
        self.setup.bound_reasoning && strip.is_some()
    }

    /// Sets whether the next model binds signed reasoning to everything before it.
    pub fn set_bound_reasoning(&mut self, bound: bool) -> Result<(), SessionError> {
        let was = std::mem::replace(&mut self.setup.bound_reasoning, bound);
        // For the model before, edits left the reasoning behind them.
        if bound && !was && !self.projection.is_unedited() {
            self.strip_reasoning(0, PlanReason::Admission)?;
        }
        Ok(())
    }

    /// Tells the session that the provider refused reasoning in the last window as bound to other
    /// messages. All that is there so far is removed.
    pub fn reasoning_was_refused(&mut self) -> Result<(), SessionError> {
        self.setup.bound_reasoning = true;
        self.strip_reasoning(0, PlanReason::FrontChanged)
    }

    /// Tells the session that something in front of all messages changes with the next call: tools
    /// or instructions. Reasoning that is bound to it is removed. Further calls, even after a
    /// restart, change nothing.
    pub fn front_changes(&mut self) -> Result<(), SessionError> {
        if std::mem::replace(&mut self.front_changed, true) {
            return Ok(());
        }
        if !self.setup.bound_reasoning {
            return Ok(());
        }
        let strip = strip_bound_reasoning(0, self.projection.slots());
        // The plan is also the note, for other processes, that this has happened.
        self.strip(strip.unwrap_or(EMPTY_STRIP), PlanReason::FrontChanged)
    }

    /// Removes the signed reasoning from position `first` on for good, if the model binds it to
    /// what precedes it.
    fn strip_reasoning(&mut self, first: usize, reason: PlanReason) -> Result<(), SessionError> {
        let bound = self.setup.bound_reasoning;
        let strip = strip_bound_reasoning(first, self.projection.slots()).filter(|_| bound);
        strip.map_or(Ok(()), |strip| self.strip(strip, reason))
    }

    /// Executes this edit, and reports it if there was any reasoning.
    fn strip(&mut self, strip: Edit, reason: PlanReason) -> Result<(), SessionError> {
        let mut plan = Plan::new(reason, vec![strip]);
        plan.at = self.projection.log().len();
        // The window that is sent next is the first without it.
        plan.since = self.sent.min(plan.at.saturating_sub(1));
        plan.tokens_before = self.slot_tokens();
        self.write(&JournalEntry::Plan(plan.clone()))?;
        self.projection.carry_out(plan.clone());
        plan.tokens_after = self.slot_tokens();
        if plan.tokens_after == plan.tokens_before {
            return Ok(());
        }
        let messages = self.projection.slots().len();
        let event = SessionEvent::new(SessionEventKind::Trimmed, PlanReason::Nothing);
        let event = event.with_plan(&plan, (messages, messages));
        // Why an answer is stripped on arrival is in the plan that came before it.
        let is_front = plan.reason == PlanReason::FrontChanged;
        let note = is_front.then(|| FRONT_NOTE.to_owned());
        self.events.push(event.with_note(note));
        Ok(())
    }

    /// The estimated tokens of the window, without building it: a round may be incomplete.
    fn slot_tokens(&self) -> u64 {
        self.setup.calibration.tokens(&self.projection.total())
    }
}
