//! The window that is sent, and what to do when the provider refuses it.

use trimtab_engine::planner::{Ladder, Misfit, Overflow};
use trimtab_engine::view::retrieval::AnswerLimits;
use trimtab_wire::overflow::{OverflowAction, OverflowKind, OverflowVerdict};

use super::carry_out::LadderOutcome;
use super::signed_reasoning::AnswerInFlight;
use super::{PendingSummary, Session, SessionError};

/// A window that fits, ready to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyWindow {
    /// How long an answer to ask for, in tokens, where it had to be lowered or is known.
    pub max_output: Option<u64>,
    /// The tokens of the window by estimate, tool definitions included.
    pub tokens: u64,
}

/// What to do after an overflow.
#[derive(Debug)]
pub enum RecoveryOutcome {
    /// Ask for [`Session::ready`] again, and send what it gives: it is smaller.
    Retry,
    /// The same, after this summary was asked for and finished.
    Summarise(PendingSummary),
    /// Hand on the provider's own error.
    GiveUp,
}

impl Session {
    /// Makes the window fit, step by step, and counts it as sent. [`window`](Self::window) is
    /// what to send then.
    ///
    /// An error names what alone is too large, or says that the policy forbids what would
    /// help. Nothing is lost by it.
    pub fn ready(&mut self) -> Result<ReadyWindow, SessionError> {
        self.windows += 1;
        self.handed_out = None;
        if self.setup.policy.fit
            && let LadderOutcome::Stuck(misfit) =
                self.run_ladder(Ladder::before_call(&self.setup.policy))?
        {
            return Err(self.does_not_fit(&misfit));
        }
        let (tokens, total) = self.decide(|conversation, conditions| {
            let total = conversation.window.measures().total();
            (conditions.prompt_tokens(&total), total)
        })?;
        self.sent = self.projection.log().len();
        self.cold = false;
        self.under_way = AnswerInFlight::Answer;
        self.handed_out = Some(total);
        Ok(ReadyWindow {
            max_output: self.lowered.or(self.setup.limits.max_output),
            tokens,
        })
    }

    /// True if the window fits as it is, or its model's window is not known.
    pub fn fits(&mut self) -> Result<bool, SessionError> {
        self.decide(|conversation, conditions| {
            let excess = conditions.excess(conversation.window, conditions.answer_reserve());
            excess.is_none()
        })
    }

    /// How long each of `calls` answers of the retrieval tools to one request may be, so that
    /// they fit the window as they are.
    pub fn retrieval_limits(&self, calls: usize) -> AnswerLimits {
        self.conditions(|conditions| AnswerLimits::for_room(conditions.messages_room(), calls))
    }

    /// Makes the window smaller after the provider refused it.
    ///
    /// The figures of the error are remembered: a limit that is less than the window that was
    /// known replaces it. The number of attempts per call is the policy's.
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
        let excess =
            self.decide(|conversation, conditions| overflow.excess(conversation, conditions))?;
        // Other limits are in bytes.
        let in_tokens = matches!(
            verdict.kind,
            OverflowKind::Prompt | OverflowKind::PromptAndAnswer
        );
        if let Some(limit) = sizes.limit.filter(|limit| in_tokens && *limit > 0) {
            let known = self.setup.limits.window;
            self.setup.limits.window = known.min(Some(limit)).or(Some(limit));
        }
        // What was refused is not answered.
        self.under_way = AnswerInFlight::Nothing;
        self.usage = None;
        let over_window = self.decide(|conversation, conditions| {
            overflow.excess_over_window(conversation, conditions)
        })?;
        let (policy, attempt) = (&self.setup.policy, self.recovered);
        let goal = (excess, over_window);
        let Some(ladder) = Ladder::after_overflow(policy, &overflow, attempt, goal) else {
            return Ok(RecoveryOutcome::GiveUp);
        };
        self.recovered += 1;
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
            },
        }
    }
}
