//! A token budget for a text.

use crate::view::figures::longest_start;

/// A budget, and the measure that it is compared with.
///
/// ```
/// # use trimtab_engine::compaction::text_budget::TextBudget;
/// let bytes = |text: &str| text.len() as u64;
/// let room = TextBudget::new(10, &bytes);
/// assert!(room.holds("ten bytes!") && !room.holds("eleven byte"));
/// ```
#[derive(Clone, Copy)]
pub struct TextBudget<'w> {
    /// The budget.
    pub tokens: u64,
    /// The tokens of a text.
    pub weigh: &'w dyn Fn(&str) -> u64,
}

impl<'w> TextBudget<'w> {
    /// A budget of `tokens`, as `weigh` counts them.
    pub fn new(tokens: u64, weigh: &'w dyn Fn(&str) -> u64) -> Self {
        Self { tokens, weigh }
    }

    /// True if `text` is within the budget.
    pub fn holds(&self, text: &str) -> bool {
        self.weight(text) <= self.tokens
    }

    pub(super) fn weight(&self, text: &str) -> u64 {
        (self.weigh)(text)
    }

    /// The same measure with another budget.
    pub(super) fn with(&self, tokens: u64) -> Self {
        Self { tokens, ..*self }
    }

    /// `percent` percent of the budget.
    pub(super) fn share(&self, percent: u64) -> Self {
        self.with(self.tokens.saturating_mul(percent) / 100)
    }

    /// The longest prefix of `text` within the budget, in whole characters.
    pub(super) fn head<'t>(&self, text: &'t str) -> &'t str {
        let holds = |bytes: usize| text.get(..bytes).is_some_and(|head| self.holds(head));
        text.get(..longest_start(text, text.len(), holds))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_as_long_as_the_room_is() {
        let bytes = |text: &str| text.len() as u64;
        let head = |tokens| TextBudget::new(tokens, &bytes).head("aä中b");
        assert_eq!(
            [0, 1, 2, 3, 6, 7].map(head),
            ["", "a", "a", "aä", "aä中", "aä中b"]
        );
    }
}
