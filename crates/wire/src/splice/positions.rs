//! Sets of positions.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of positions as ranges. A compaction removes thousands of messages in a row, which are one
/// range.
#[derive(Debug, Default)]
pub(super) struct PositionSet(
    /// The end of each range by its start. No two ranges touch.
    BTreeMap<usize, usize>,
);

impl PositionSet {
    /// Adds all positions of a range.
    pub(super) fn insert(&mut self, mut added: Range<usize>) {
        if added.is_empty() {
            return;
        }
        // Ranges that touch become one, so that what follows sees each gap once.
        while let Some((start, end)) = self.last_up_to(added.end) {
            if end < added.start {
                break;
            }
            self.0.remove(&start);
            added = start.min(added.start)..end.max(added.end);
        }
        self.0.insert(added.start, added.end);
    }

    /// The longest range of the set that contains a position.
    pub(super) fn range_at(&self, position: usize) -> Option<Range<usize>> {
        let (start, end) = self.last_up_to(position)?;
        (position < end).then_some(start..end)
    }

    pub(super) fn contains(&self, position: usize) -> bool {
        self.range_at(position).is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The ranges, in order.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        self.0.iter().map(|(start, end)| *start..*end)
    }

    /// The last range that starts at `position` or before.
    fn last_up_to(&self, position: usize) -> Option<(usize, usize)> {
        let mut before = self.0.range(..=position);
        before.next_back().map(|(start, end)| (*start, *end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_one() {
        let mut set = PositionSet::default();
        for range in [4..6, 1..2, 9..12, 6..7, 2..2, 10..11] {
            set.insert(range);
        }
        assert_eq!(set.ranges().collect::<Vec<_>>(), [1..2, 4..7, 9..12]);
        set.insert(2..9);
        assert_eq!(set.ranges().count(), 1);
        assert_eq!(set.range_at(5), Some(1..12));
        assert!(!set.contains(0) && !set.contains(12));
    }
}
