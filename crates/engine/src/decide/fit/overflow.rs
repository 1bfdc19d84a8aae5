//! The provider's rejection of a window, and how many tokens must go because of it.

use trimtab_model::Role;
use trimtab_model::estimate::Measure;

use crate::budget::percent;
use crate::decide::ConversationState;
use crate::normalise::Slot;
use crate::observation::outputs_of;
use crate::policy::Rung;

/// How much is removed if the error does not say how much is too much, in percent of the window:
/// usually, and after the last rejections of a call whose new outputs are the cause. Their sizes have
/// no bound, so the window may be much smaller than the prompt.
const UNKNOWN_EXCESS_PERCENT: [u64; 2] = [20, 50];
/// How much is removed in addition to the figure of the error, in percent of the window, because
/// counts differ.
const MARGIN_PERCENT: u64 = 2;

/// If fewer tokens than this would fit, a rejection says nothing about the window.
const LEAST_REFUSED: u64 = 4_096;

/// What a provider says about a window that it rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overflow {
    /// The excess in tokens, if the error states it.
    pub excess: Option<u64>,
    /// The size by the provider's count.
    pub actual: Option<u64>,
    /// True if the reserve for the answer counts too.
    pub counts_answer: bool,
    /// True if a smaller reserve for the answer is enough.
    pub lower_answer: bool,
}

impl Overflow {
    /// The number of our tokens to remove. `attempt` is the number of earlier rejections of this
    /// call.
    pub fn excess(&self, conversation: &ConversationState<'_>, attempt: u32) -> u64 {
        let recovery = conversation.policy.recovery.ladder.first();
        if self.excess.is_none() && attempt == 0 && recovery == Some(&Rung::DropOldest) {
            // A design that drops one message after another begins with one.
            return 1;
        }
        let estimate = conversation.prompt_tokens();
        let excess = if let Some(excess) = self.excess {
            let with_answer = estimate.saturating_add(conversation.call.answer_reserve());
            self.in_our_tokens(excess, with_answer)
        } else {
            let [usual, most] = UNKNOWN_EXCESS_PERCENT;
            let has_another = attempt == 0 && conversation.policy.recovery.retries > 1;
            let is_usual = has_another || !self.is_by_new_outputs(conversation);
            percent(estimate, if is_usual { usual } else { most })
        };
        excess.saturating_add(percent(estimate, MARGIN_PERCENT))
    }

    /// True if outputs that no model has read yet, behind the newest answer, are most of the rejected
    /// prompt. Then nothing else helps as much, and what was sent before stays.
    pub fn is_by_new_outputs(&self, conversation: &ConversationState<'_>) -> bool {
        let is_answer = |slot: &&Slot| slot.message.role == Role::Assistant;
        let newest = conversation.slots.iter().rev();
        let newest = newest.take_while(|slot| !is_answer(slot));
        let is_new = |slot: &&Slot| {
            let at = slot.source.in_log();
            at.is_some_and(|at| at >= conversation.sent)
                && outputs_of(&slot.message).next().is_some()
        };
        let tokens = |slot: &Slot| conversation.call.weigh(&Measure::of(&slot.message));
        let new: u64 = newest.filter(is_new).map(tokens).sum();
        new > conversation.prompt_tokens() / 2
    }

    /// The window to assume if the error names no figure, although the window seemed to fit: a prompt
    /// that is a tenth smaller fits it beside the answer's reserve.
    pub fn assumed_window(&self, conversation: &ConversationState<'_>) -> Option<u64> {
        let is_unexpected = conversation.excess().is_none();
        // A design with another estimate must not find that what is assumed to fit is too large.
        let refused = conversation
            .prompt_tokens()
            .max(conversation.tokens_by_policy(&conversation.window.measures().total()));
        let fits = refused - refused / 10;
        // The reserve takes half of a window at most.
        let window = fits.saturating_add(conversation.call.answer_reserve().min(fits));
        (is_unexpected && fits >= LEAST_REFUSED).then_some(window)
    }

    /// The number of tokens to remove so that the window fits its limit with the answer, by our
    /// estimate.
    pub fn excess_over_window(&self, conversation: &ConversationState<'_>) -> u64 {
        let over = conversation.excess();
        let window = conversation.call.window.unwrap_or_default();
        over.map_or(0, |over| {
            over.saturating_add(percent(window, MARGIN_PERCENT))
        })
    }

    /// Converts the provider's figure to our tokens: if its count is larger than our estimate, ours
    /// must shrink in proportion.
    fn in_our_tokens(&self, excess: u64, estimate: u64) -> u64 {
        match self.actual.filter(|actual| *actual > 0) {
            Some(actual) => {
                let ours = u128::from(excess) * u128::from(estimate) / u128::from(actual);
                // At least one: a tiny excess must not become none by rounding.
                u64::try_from(ours).unwrap_or(u64::MAX).max(1)
            }
            None => excess,
        }
    }
}
