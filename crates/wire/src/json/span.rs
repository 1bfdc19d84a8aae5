//! A byte range of a body.

use std::ops::Range;

/// A byte range of a body, as offsets of four bytes each.
///
/// Bodies of four gigabytes and more are rejected before they are scanned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The end, exclusive.
    pub end: u32,
}

impl Span {
    /// The range from `start` to `end`.
    pub fn new(start: usize, end: usize) -> Self {
        let narrow = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Self {
            start: narrow(start),
            end: narrow(end),
        }
    }

    /// The position of `piece`, a slice of `text`.
    pub fn of_slice(text: &str, piece: &str) -> Self {
        let start = piece.as_ptr().addr().wrapping_sub(text.as_ptr().addr());
        Self::new(start, start.wrapping_add(piece.len()))
    }

    /// Number of bytes.
    pub fn len(self) -> usize {
        self.range().len()
    }

    /// True if the range is empty, which also means "missing".
    pub fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// The offsets as a range.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// True if `other` lies within this range.
    pub fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// The bytes of `text`; empty if the range is not inside it.
    pub(crate) fn of(self, text: &str) -> &str {
        text.get(self.range()).unwrap_or_default()
    }
}
