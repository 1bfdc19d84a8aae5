//! Computes whether a rewrite pays.

use std::fmt;

use super::switch_point::{SwitchPoint, SwitchReason};

/// The costs and savings of a rewrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::decide) struct RewriteAccount {
    /// Tokens of the window before.
    pub(super) before: u64,
    /// Tokens of the window after.
    pub(super) after: u64,
    /// Tokens from the first change on, after the rewrite: they are written again.
    pub(super) suffix: u64,
    /// The number of calls after which it has paid; none if it never does.
    break_even: Option<u64>,
    /// The expected number of further calls.
    calls: u64,
}

impl RewriteAccount {
    /// The account of a rewrite that shrinks a window from `before` to `after` tokens and changes
    /// its last `suffix` tokens.
    pub(super) fn new(
        due: &SwitchPoint,
        (before, after, suffix): (u64, u64, u64),
        calls: u64,
    ) -> Self {
        let rates = due.rates;
        // Costs are in thousandths of an uncached token.
        let extra = match due.switch {
            // Uncached tokens must be written anyway.
            SwitchReason::Cold => 0,
            _ => rates.write.saturating_sub(rates.read),
        };
        let cost = suffix.saturating_mul(extra);
        // After the rewrite, tokens cost the ordinary price.
        let risen = before.saturating_mul(rates.rise) / 1_000;
        let saving = risen.saturating_sub(after).saturating_mul(rates.read);
        let break_even = if cost == 0 {
            Some(0)
        } else {
            (saving > 0).then(|| cost.div_ceil(saving))
        };
        Self {
            before,
            after,
            suffix,
            break_even,
            calls,
        }
    }

    /// True if the expected calls pay for it.
    pub(super) fn pays(&self) -> bool {
        self.break_even.is_some_and(|calls| calls <= self.calls)
    }
}

impl fmt::Display for RewriteAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = (self.before, self.after);
        write!(f, "an estimated {before} to {after} tokens, ")?;
        write!(f, "{} of them from the first change on; ", self.suffix)?;
        match self.break_even {
            Some(0) => f.write_str("it costs nothing extra"),
            Some(paid) if self.pays() => {
                let expected = self.calls;
                write!(f, "it pays after {paid} calls, {expected} are expected")
            }
            _ => f.write_str("it costs more than it saves, but the window was full"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::TokenRates;
    use super::*;

    #[test]
    fn rewrite_pays_when_reading_less_costs_less_than_writing_again() {
        let due = SwitchPoint {
            switch: SwitchReason::HighWater,
            room: 50_000,
            rates: TokenRates::default(),
        };
        // 30,000 tokens less are read at 0.1 with every call. 10,000 are written again at 1.25
        // instead of read at 0.1.
        let account = RewriteAccount::new(&due, (40_000, 10_000, 10_000), 20);
        assert_eq!(account.break_even, Some(4));
        assert!(account.pays());
    }

    #[test]
    fn a_cold_cache_costs_nothing_and_a_cliff_pays_sooner() {
        let account = |switch, rise| {
            let rates = TokenRates {
                rise,
                ..TokenRates::default()
            };
            let due = SwitchPoint {
                switch,
                room: 200_000,
                rates,
            };
            RewriteAccount::new(&due, (100_000, 40_000, 40_000), 5)
        };
        assert_eq!(account(SwitchReason::Cold, 1_000).break_even, Some(0));
        let warm = account(SwitchReason::HighWater, 1_000);
        let cliff = account(SwitchReason::PriceCliff, 2_000);
        assert_eq!((warm.break_even, cliff.break_even), (Some(8), Some(3)));
        assert!(!warm.pays() && cliff.pays());
    }
}
