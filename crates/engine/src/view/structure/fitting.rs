//! Finds how much of something fits, with few attempts: each attempt measures a whole view.

/// The number of attempts that are guessed from the sizes of earlier ones. Sizes that grow
/// unevenly would mislead further guesses.
const GUESSES: usize = 6;

/// An amount that was tried, and its size.
#[derive(Clone, Copy)]
pub(super) struct TriedAmount {
    pub(super) amount: usize,
    pub(super) size: u64,
}

/// The largest amount below `high` whose size is at most `cap`.
///
/// `low` fits. `other` tells with it how fast the size grows. `size` is none if it is far above the
/// cap; it must not fall as the amount grows.
pub(super) fn largest_fitting(
    mut low: TriedAmount,
    mut other: TriedAmount,
    mut high: usize,
    cap: u64,
    mut size: impl FnMut(usize) -> Option<u64>,
) -> usize {
    let (mut attempts, mut failed) = (0, false);
    while low.amount.saturating_add(1) < high {
        attempts += 1;
        let amount = if attempts <= GUESSES {
            let amounts = low.amount.abs_diff(other.amount) as u64;
            let more = cap.saturating_sub(low.size).saturating_mul(amounts);
            let more = more / low.size.abs_diff(other.size).max(1);
            let more = usize::try_from(more).unwrap_or(usize::MAX);
            low.amount.saturating_add(more)
        } else if failed {
            usize::midpoint(low.amount, high)
        } else {
            // Doubling keeps unnecessary work in proportion to what fits.
            low.amount.saturating_mul(2)
        };
        let amount = amount.clamp(low.amount + 1, high - 1);
        let size = size(amount);
        let tried = size.map(|size| TriedAmount { amount, size });
        if let Some(fits) = tried.filter(|tried| tried.size <= cap) {
            other = std::mem::replace(&mut low, fits);
        } else {
            (high, failed) = (amount, true);
            other = tried.unwrap_or(other);
        }
    }
    low.amount
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_largest_amount_that_fits_is_found(
            steps in prop::collection::vec(0_u64..50, 1..400),
            cap in 0_u64..6_000,
        ) {
            let sizes: Vec<u64> = steps
                .iter()
                .scan(0, |sum, step| {
                    *sum += step;
                    Some(*sum)
                })
                .collect();
            let size = |amount: usize| sizes.get(amount - 1).copied();
            let start = TriedAmount { amount: 0, size: 0 };
            let other = TriedAmount { amount: 4, size: 1 };
            let mut attempts = 0;
            let found = largest_fitting(start, other, steps.len() + 1, cap, |amount| {
                attempts += 1;
                size(amount)
            });
            let expected = sizes.iter().take_while(|size| **size <= cap).count();
            prop_assert_eq!(found, expected);
            prop_assert!(attempts <= GUESSES + 20, "{} attempts", attempts);
        }
    }
}
