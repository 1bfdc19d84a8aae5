//! Prepares the window that is sent, and reacts when the provider rejects it.

use trimtab_engine::planner::{Ladder, Misfit, Overflow};
use trimtab_engine::view::retrieval::AnswerLimits;
use trimtab_wire::overflow::{OverflowAction, OverflowKind, OverflowVerdict};

use super::carry_out::LadderOutcome;
use super::signed_reasoning::AnswerInFlight;
use super::{PendingSummary, Session, SessionError};

/// A window that fits, ready to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyWindow {
    /// The length of the answer to request in tokens, if it was lowered or is known.
    pub max_output: Option<u64>,
    /// The estimated tokens of the window, including the tool definitions.
    pub tokens: u64,
}

/// What to do after an overflow.
#[derive(Debug)]
pub enum RecoveryOutcome {
    /// Call [`Session::ready`] again, and send the window: it is smaller.
    Retry,
    /// The same, after this summary was asked for and finished.
    Summarise(PendingSummary),
    /// Pass on the provider's own error.
    GiveUp,
}

impl Session {
    /// Makes the window fit, step by step, and counts it as sent. Then send the
    /// [`window`](Self::window).
    ///
    /// An error names the part that alone is too large, or says that the policy forbids what would
    /// help. Nothing is lost by it.
    pub fn ready(&mut self) -> Result<ReadyWindow, SessionError> {
        self.windows += 1;
        self.calls.sent_measure = None;
        if self.setup.policy.fit
            && let LadderOutcome::Stuck(misfit) =
                self.run_ladder(Ladder::before_call(&self.setup.policy))?
        {
            return Err(self.does_not_fit(&misfit));
        }
        let (tokens, total) = self.decide(|conversation| {
            let total = conversation.window.measures().total();
            (conversation.call.prompt_tokens(&total), total)
        })?;
        self.sent_before = self.sent;
        self.sent = self.projection.log().len();
        // This call fills the cache again.
        self.calls.cold = false;
        self.calls.answer_in_flight = AnswerInFlight::Answer;
        self.calls.sent_measure = Some(total);
        Ok(ReadyWindow {
            max_output: self.calls.lowered_reserve.or(self.setup.limits.max_output),
            tokens,
        })
    }

    /// True if the window fits as it is, or if its model's window is unknown.
    pub fn fits(&mut self) -> Result<bool, SessionError> {
        self.decide(|conversation| conversation.excess().is_none())
    }

    /// The limits of each of `calls` answers of the retrieval tools to one request, so that they
    /// fit the window.
    pub fn retrieval_limits(&self, calls: usize) -> AnswerLimits {
        self.with_uncalibrated(|conditions| {
            AnswerLimits::for_room(conditions.messages_room(), calls)
        })
    }

    /// Starts a new call of the model, which may be repeated as often as the policy allows. Call it
    /// once before a call and its repetitions.
    pub fn begin_call(&mut self) {
        self.calls.recoveries = 0;
    }

    /// Makes the window smaller after the provider rejected it.
    ///
    /// The figures of the error are remembered: a limit below the known window replaces it. The
    /// policy limits the number of attempts per call.
    pub fn recover(&mut self, verdict: &OverflowVerdict) -> Result<RecoveryOutcome, SessionError> {
        if !verdict.is_overflow() {
            return Ok(RecoveryOutcome::GiveUp);
        }
        let sizes = &verdict.sizes;
        let overflow = Overflow {
            excess: sizes.excess(),
            actual: sizes.actual,
            counts_answer: verdict.kind == OverflowKind::PromptAndAnswer,
            lower_answer: verdict.action == OverflowAction::LowerReserve,
        };
        // No model has read what was rejected.
        self.sent = self.sent.min(self.sent_before);
        let attempt = self.calls.recoveries;
        // By the old limits: the figures of the error refer to the window that was sent.
        let (excess, by_new_outputs, assumed) = self.decide(|conversation| {
            let by_new_outputs = overflow.is_by_new_outputs(conversation);
            let excess = overflow.excess(conversation, attempt);
            (
                excess,
                by_new_outputs,
                overflow.assumed_window(conversation),
            )
        })?;
        // The limits of other errors are in bytes.
        let in_tokens = matches!(
            verdict.kind,
            OverflowKind::Prompt | OverflowKind::PromptAndAnswer
        );
        let limit = sizes.limit.filter(|limit| *limit > 0).or(assumed);
        if let Some(limit) = limit.filter(|_| in_tokens) {
            let known = self.setup.limits.window;
            // `None` is less than any limit, so an unknown window becomes the limit.
            self.setup.limits.window = known.min(Some(limit)).or(Some(limit));
        }
        // A rejected request gets no answer.
        self.calls.answer_in_flight = AnswerInFlight::Nothing;
        self.calls.usage = None;
        self.calls.coming_answer = None;
        let over_window = self.decide(|conversation| overflow.excess_over_window(conversation))?;
        let policy = &self.setup.policy;
        let goal = (excess, over_window);
        let ladder = Ladder::after_overflow(policy, &overflow, attempt, by_new_outputs, goal);
        let Some(ladder) = ladder else {
            return Ok(RecoveryOutcome::GiveUp);
        };
        self.calls.recoveries += 1;
        Ok(match self.run_ladder(ladder)? {
            LadderOutcome::Done => RecoveryOutcome::Retry,
            LadderOutcome::Summarise(pending) => RecoveryOutcome::Summarise(pending),
            LadderOutcome::Stuck(_) => RecoveryOutcome::GiveUp,
        })
    }

    fn does_not_fit(&self, misfit: &Misfit) -> SessionError {
        match *misfit {
            Misfit::TooLarge(floor) => SessionError::TooLarge(floor),
            Misfit::OverBudget { tokens, window } => SessionError::OverBudget {
                tokens,
                window,
                preset: self.setup.policy.preset.clone(),
                hint: if self.setup.policy.compaction.auto {
                    "add rungs to `ladder`, such as drop_oldest, or choose another preset"
                } else {
                    "compact by hand, or set compaction.auto = true"
                },
            },
        }
    }
}
