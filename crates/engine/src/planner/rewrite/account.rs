//! Does a rewrite pay? The break-even arithmetic.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::switch::{SwitchReason, TokenRates};

/// What a rewrite costs and saves, for the report.
///
/// Costs are in thousandths of a token that touches no cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewriteAccount {
    /// Why there was a switch point.
    pub switch: SwitchReason,
    /// Tokens of the window before.
    pub before: u64,
    /// Tokens of the window after.
    pub after: u64,
    /// Tokens from the first change on, after the rewrite: they are written again.
    pub suffix: u64,
    /// What writing them again costs beyond reading them.
    pub cost: u64,
    /// What every further call saves.
    pub saving: u64,
    /// After so many calls it has paid; none if it never does.
    pub break_even: Option<u64>,
    /// How many further calls are expected.
    pub calls: u64,
    /// Outputs that became excerpts.
    pub excerpts: usize,
    /// Messages that were hidden.
    pub hidden: usize,
    /// Outputs of the newest round that were shortened because nothing else was left.
    pub shortened: usize,
}

impl RewriteAccount {
    /// The account of a rewrite that takes a window from `before` to `after` tokens and
    /// changes its last `suffix` tokens.
    ///
    /// ```
    /// # use trimtab_engine::planner::{RewriteAccount, TokenRates, SwitchReason};
    /// // 30,000 tokens less, 10,000 written again at 1.25 instead of read at 0.1
    /// let account = RewriteAccount::new(SwitchReason::HighWater, (40_000, 10_000, 10_000), TokenRates::default(), 20);
    /// assert_eq!((account.cost, account.saving), (11_500_000, 3_000_000));
    /// assert_eq!(account.break_even, Some(4));
    /// assert!(account.pays());
    /// ```
    pub fn new(
        switch: SwitchReason,
        tokens: (u64, u64, u64),
        rates: TokenRates,
        calls: u64,
    ) -> Self {
        let (before, after, suffix) = tokens;
        let extra = match switch {
            // What is not cached has to be written anyway.
            SwitchReason::Cold => 0,
            _ => rates.write.saturating_sub(rates.read),
        };
        let cost = suffix.saturating_mul(extra);
        // What is left is billed at the ordinary price.
        let risen = before.saturating_mul(rates.rise) / 1_000;
        let saving = risen.saturating_sub(after).saturating_mul(rates.read);
        let break_even = if cost == 0 {
            Some(0)
        } else {
            (saving > 0).then(|| cost.div_ceil(saving))
        };
        Self {
            switch,
            before,
            after,
            suffix,
            cost,
            saving,
            break_even,
            calls,
            excerpts: 0,
            hidden: 0,
            shortened: 0,
        }
    }

    /// True if the expected calls pay for it.
    pub fn pays(&self) -> bool {
        self.break_even.is_some_and(|calls| calls <= self.calls)
    }
}

impl fmt::Display for RewriteAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            before,
            after,
            suffix,
            calls,
            ..
        } = self;
        write!(
            f,
            "{before} to {after} tokens, {suffix} of them written again; "
        )?;
        match self.break_even {
            Some(0) => f.write_str("it costs nothing extra"),
            Some(paid) if self.pays() => {
                write!(f, "it pays after {paid} calls, {calls} are expected")
            }
            _ => f.write_str("it does not pay by itself, but the window was full"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cold_cache_costs_nothing_and_a_cliff_pays_sooner() {
        let tokens = (100_000, 40_000, 40_000);
        let account = |switch, rise| {
            let rates = TokenRates {
                rise,
                ..TokenRates::default()
            };
            RewriteAccount::new(switch, tokens, rates, 5)
        };
        assert_eq!(account(SwitchReason::Cold, 1_000).break_even, Some(0));
        let warm = account(SwitchReason::HighWater, 1_000);
        let cliff = account(SwitchReason::PriceCliff, 2_000);
        assert_eq!((warm.saving, cliff.saving), (6_000_000, 16_000_000));
        assert_eq!((warm.break_even, cliff.break_even), (Some(8), Some(3)));
        assert!(!warm.pays() && cliff.pays());
    }
}
