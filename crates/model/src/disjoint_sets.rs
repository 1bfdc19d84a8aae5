//! Groups of messages that belong together.

use crate::work;

/// Disjoint sets of messages, each represented by its first message.
#[derive(Clone, Debug)]
pub struct DisjointSets {
    /// For every message an earlier one of its set, or itself.
    earlier: Vec<usize>,
}

impl DisjointSets {
    /// A set of its own for each of `messages` messages.
    pub fn new(messages: usize) -> Self {
        let earlier = (0..messages).collect();
        Self { earlier }
    }

    /// The first message of the set of `at`. Halves the path to it, which keeps many queries almost
    /// linear.
    pub fn first_of(&mut self, mut at: usize) -> usize {
        loop {
            let before = self.before(at);
            let further = self.before(before);
            if before == further {
                return before;
            }
            if let Some(shorter) = self.earlier.get_mut(at) {
                *shorter = further;
            }
            at = further;
        }
    }

    fn before(&self, at: usize) -> usize {
        self.earlier.get(at).copied().unwrap_or(at)
    }

    /// Makes the sets of two messages one.
    pub fn join(&mut self, one: usize, other: usize) {
        work::step(1);
        let (one, other) = (self.first_of(one), self.first_of(other));
        // The later set joins the earlier one, so that the representative stays the first message.
        if let Some(later) = self.earlier.get_mut(one.max(other)) {
            *later = one.min(other);
        }
    }
}
