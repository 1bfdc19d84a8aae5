//! What a provider says of a window that it refused.

use super::{CallConditions, ConversationState};
use crate::budget::percent;

/// How much goes where the error does not say how much is too much, in percent of the window.
const UNKNOWN_EXCESS_PERCENT: u64 = 20;
/// What goes beside the figure that an error names, in percent of the window: counts differ.
const MARGIN_PERCENT: u64 = 2;

/// What a provider says of a window that it refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overflow {
    /// By how much it is too large, where the error says so.
    pub excess: Option<u64>,
    /// How large it is, by the provider's count.
    pub actual: Option<u64>,
    /// True if the answer's reserve counts as well.
    pub counts_answer: bool,
    /// True if a smaller reserve for the answer is enough.
    pub lower_answer: bool,
}

impl Overflow {
    /// How many of our tokens have to go.
    pub fn excess(
        &self,
        conversation: &ConversationState<'_>,
        conditions: &CallConditions<'_>,
    ) -> u64 {
        let total = conversation.window.measures().total();
        let estimate = conditions.prompt_tokens(&total);
        let excess = match self.excess {
            Some(excess) => self.in_our_tokens(excess, estimate + conditions.answer_reserve()),
            None => percent(estimate, UNKNOWN_EXCESS_PERCENT),
        };
        excess.saturating_add(percent(estimate, MARGIN_PERCENT))
    }

    /// How many tokens have to go for the window to fit its limit with the answer, by our estimate.
    pub fn excess_over_window(
        &self,
        conversation: &ConversationState<'_>,
        conditions: &CallConditions<'_>,
    ) -> u64 {
        let over = conditions.excess(conversation.window, conditions.answer_reserve());
        let window = conditions.window.unwrap_or_default();
        over.map_or(0, |over| {
            over.saturating_add(percent(window, MARGIN_PERCENT))
        })
    }

    /// The provider's figure in our tokens: where its count is larger than our estimate, ours
    /// has to go down by as much in proportion.
    fn in_our_tokens(&self, excess: u64, estimate: u64) -> u64 {
        match self.actual.filter(|actual| *actual > 0) {
            Some(actual) => {
                let ours = u128::from(excess) * u128::from(estimate) / u128::from(actual);
                u64::try_from(ours).unwrap_or(u64::MAX).max(1)
            }
            None => excess,
        }
    }
}
