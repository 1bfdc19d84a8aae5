//! Prepares the window that is sent, and reacts when the provider rejects it.

use trimtab_engine::decide::{self, Overflow, PlanStep};
use trimtab_engine::plan::PlanReason;
use trimtab_engine::policy::Rung;
use trimtab_engine::view::retrieval::AnswerLimits;
use trimtab_wire::overflow::{OverflowAction, OverflowKind, OverflowVerdict};

use super::signed_reasoning::AnswerInFlight;
use super::{PendingSummary, Session, SessionError};

/// The limit of steps on one rung. Each step makes the window smaller, so only a bug can reach it.
const MOST_STEPS: usize = 64;

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
        if self.setup.policy.fit {
            self.make_it_fit()?;
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
        // One step should make the window fit. Otherwise a second one would replace most of it right
        // after the first.
        let excess = excess.max(over_window);
        let policy = &self.setup.policy;
        let rungs = decide::rungs_after_overflow(policy, &overflow, attempt, by_new_outputs);
        let Some(rungs) = rungs else {
            return Ok(RecoveryOutcome::GiveUp);
        };
        self.calls.recoveries += 1;
        let reason = PlanReason::Overflow;
        for (rung, may_ask) in rungs {
            let step = self.decide(|conversation| {
                decide::step_for_rung(conversation, rung, excess, &reason)
            })?;
            if may_ask
                && rung == Rung::Compact
                && let Some(PlanStep::Draft(draft)) = step
            {
                return Ok(RecoveryOutcome::Summarise(self.ask_for_summary(*draft)?));
            }
            if self.take_step(step, &reason)? {
                return Ok(RecoveryOutcome::Retry);
            }
        }
        let step =
            self.decide(|conversation| decide::shorten_sent(conversation, excess, &reason))?;
        Ok(if self.take_step(step, &reason)? {
            RecoveryOutcome::Retry
        } else {
            RecoveryOutcome::GiveUp
        })
    }

    /// Makes the window fit before a call, step by step; an error says why it cannot fit.
    fn make_it_fit(&mut self) -> Result<(), SessionError> {
        let reason = PlanReason::Fit;
        for first in [decide::shed_media, decide::drop_by_own_estimate] {
            let step = self.decide(first)?;
            self.take_step(step, &reason)?;
        }
        let rungs = decide::rungs_before_call(&self.setup.policy);
        if self.climb(&rungs, MOST_STEPS)? {
            return Ok(());
        }
        let step = self.decide(|conversation| {
            let excess = conversation.removable_excess()?;
            decide::shorten_sent(conversation, excess, &reason)
        })?;
        if self.take_step(step, &reason)? && self.fits()? {
            return Ok(());
        }
        Err(self.does_not_fit()?)
    }

    fn does_not_fit(&mut self) -> Result<SessionError, SessionError> {
        let (floor, tokens) = self.decide(|conversation| {
            // What cannot even be shortened comes first.
            let floor = conversation.check_hard_floor();
            let reserve = conversation.call.answer_reserve();
            let tokens = conversation.prompt_tokens().saturating_add(reserve);
            (floor.and_then(|()| conversation.check_floor()), tokens)
        })?;
        if let Err(floor) = floor {
            return Ok(SessionError::TooLarge(floor));
        }
        Ok(SessionError::OverBudget {
            tokens,
            window: self.setup.limits.window.unwrap_or_default(),
            preset: self.setup.policy.preset.clone(),
            hint: if self.setup.policy.compaction.auto {
                "add rungs to `ladder`, such as drop_oldest, or choose another preset"
            } else {
                "compact by hand, or set compaction.auto = true"
            },
        })
    }
}
