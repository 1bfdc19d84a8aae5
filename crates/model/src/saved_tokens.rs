//! Counts prompt tokens with and without Trimtab.

use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::Serialize;

/// Prompt tokens without and with Trimtab, by the same measure.
///
/// Only prompts count, because the answers are assumed to be the same on both sides.
///
/// ```
/// use trimtab_model::SavedTokens;
///
/// // Our estimates are 9,000 and 4,000; the provider counted 4,400 for what was sent.
/// let call = SavedTokens::of_changed(9_000, 4_000, Some(4_400), Some(200_000));
/// assert_eq!((call.without, call.with, call.saved()), (9_400, 4_400, 5_000));
/// // A summary is only asked for because of us.
/// let all = call + SavedTokens::of_extra(6_000);
/// assert_eq!(all.saved(), -1_000);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SavedTokens {
    /// Tokens that the client's original requests would have used.
    pub without: u64,
    /// Tokens that were sent instead, including requests that only Trimtab made.
    pub with: u64,
    /// Calls that would not have fit the model's window. Each counts as a full window, because
    /// nobody could have been billed for more.
    pub over_window: u64,
}

impl SavedTokens {
    /// A call of `tokens` that was sent unchanged.
    pub fn of_unchanged(tokens: u64) -> Self {
        Self {
            without: tokens,
            with: tokens,
            over_window: 0,
        }
    }

    /// A changed call, with estimates of the original and the sent prompt by the same measure. The
    /// provider's reported figure replaces the estimate of the sent prompt; the difference between
    /// the two prompts stays estimated.
    pub fn of_changed(came: u64, sent: u64, reported: Option<u64>, window: Option<u64>) -> Self {
        let with = reported.unwrap_or(sent);
        // Keep the estimated difference, and anchor it at the reported figure.
        let without = with.saturating_add(came).saturating_sub(sent);
        // A prompt that was answered has fit, whatever the known window says.
        let most = window.unwrap_or(u64::MAX).max(with);
        Self {
            without: without.min(most),
            with,
            over_window: u64::from(without > most),
        }
    }

    /// A call of `tokens` that only Trimtab made.
    pub fn of_extra(tokens: u64) -> Self {
        Self {
            with: tokens,
            ..Self::default()
        }
    }

    /// The saved tokens; negative if more were sent.
    pub fn saved(&self) -> i64 {
        let signed = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        signed(self.without).saturating_sub(signed(self.with))
    }
}

impl AddAssign for SavedTokens {
    fn add_assign(&mut self, other: Self) {
        self.without = self.without.saturating_add(other.without);
        self.with = self.with.saturating_add(other.with);
        self.over_window = self.over_window.saturating_add(other.over_window);
    }
}

impl Add for SavedTokens {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl Sum for SavedTokens {
    fn sum<I: Iterator<Item = Self>>(calls: I) -> Self {
        calls.fold(Self::default(), Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unchanged_request_saves_nothing() {
        assert_eq!(SavedTokens::of_unchanged(7_000).saved(), 0);
        assert_eq!(
            SavedTokens::of_changed(500, 500, Some(9_000), None).saved(),
            0
        );
    }

    #[test]
    fn a_larger_prompt_than_the_one_that_came_counts_against_us() {
        let grown = SavedTokens::of_changed(1_000, 1_400, Some(1_500), None);
        assert_eq!((grown.without, grown.saved()), (1_100, -400));
    }

    #[test]
    fn call_over_the_window_counts_as_a_full_window() {
        let over = SavedTokens::of_changed(90_000, 20_000, None, Some(64_000));
        assert_eq!((over.saved(), over.over_window), (44_000, 1));
        let fits = SavedTokens::of_changed(60_000, 20_000, None, Some(64_000));
        assert_eq!((fits.saved(), fits.over_window), (40_000, 0));
    }
}
