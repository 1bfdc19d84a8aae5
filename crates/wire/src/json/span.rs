//! A run of bytes of a body.

use std::ops::Range;

/// A run of bytes of a body, as offsets.
///
/// Four bytes each: a body of four gigabytes is refused before it is scanned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The first byte behind it.
    pub end: u32,
}

impl Span {
    /// The run from `start` to `end`.
    pub fn new(start: usize, end: usize) -> Self {
        let narrow = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Self {
            start: narrow(start),
            end: narrow(end),
        }
    }

    /// Number of bytes.
    pub fn len(self) -> usize {
        self.range().len()
    }

    /// True if nothing is in it, which also stands for "not there".
    pub fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// The offsets as a range.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// True if `other` lies within this run.
    pub fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// The bytes of `text`; empty where the run is not in it.
    pub(crate) fn of(self, text: &str) -> &str {
        text.get(self.range()).unwrap_or_default()
    }
}
