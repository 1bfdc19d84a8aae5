//! Computes whether a rewrite pays.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::switch::{SwitchReason, TokenRates};

/// The costs and savings of a rewrite, for the report.
///
/// Costs are in thousandths of an uncached token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewriteAccount {
    /// The reason of the switch point.
    pub switch: SwitchReason,
    /// Tokens of the window before.
    pub before: u64,
    /// Tokens of the window after.
    pub after: u64,
    /// Tokens from the first change on, after the rewrite: they are written again.
    pub suffix: u64,
    /// The cost of writing them again instead of reading them.
    pub cost: u64,
    /// The saving of every further call.
    pub saving: u64,
    /// The number of calls after which it has paid; none if it never does.
    pub break_even: Option<u64>,
    /// The expected number of further calls.
    pub calls: u64,
    /// Outputs that became excerpts.
    pub excerpts: usize,
    /// Messages that were hidden.
    pub hidden: usize,
    /// Outputs of the newest round that were shortened because nothing else was left.
    pub shortened: usize,
}

impl RewriteAccount {
    /// The account of a rewrite that shrinks a window from `before` to `after` tokens and changes
    /// its last `suffix` tokens.
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
