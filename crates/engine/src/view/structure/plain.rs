//! Text that is nothing in particular: both ends, and what looks like an error in between.

use super::errors::trace;
use super::lines::Lines;
use super::select::{Wave, inward};

pub(super) fn waves<'a>(lines: &'a Lines<'_>, marks: &'a [usize]) -> Vec<Wave<'a>> {
    let count = lines.len();
    vec![
        Wave::new(15, 0..count),
        Wave::new(35, (0..count).rev()),
        Wave::new(65, both_ends(marks)),
        Wave::new(85, details(lines, marks)),
        Wave::new(100, inward(count)),
    ]
}

/// The marked lines from both ends inward: the first error is the cause, the last the outcome.
pub(super) fn both_ends(marks: &[usize]) -> impl Iterator<Item = usize> + '_ {
    inward(marks.len()).filter_map(|at| marks.get(at).copied())
}

/// What belongs to the marked lines, and the line before each.
pub(super) fn details<'a>(
    lines: &'a Lines<'_>,
    marks: &'a [usize],
) -> impl Iterator<Item = usize> + 'a {
    both_ends(marks).flat_map(|at| {
        let behind = at + 1..=at + trace(lines, at);
        behind.chain(at.checked_sub(1))
    })
}
