//! The incomplete parts of an answer.

use std::collections::{BTreeMap, HashMap, VecDeque};

/// Incomplete parts, by the index that the stream gives them.
///
/// Some servers give several parts the same index: the newest one continues, and the oldest one
/// ends first.
#[derive(Clone, Debug)]
pub(super) struct OpenParts<P> {
    /// In the order of their start.
    parts: BTreeMap<u64, P>,
    /// The parts of each index, oldest first.
    by_index: HashMap<u64, VecDeque<u64>>,
    begun: u64,
}

impl<P> Default for OpenParts<P> {
    fn default() -> Self {
        Self {
            parts: BTreeMap::new(),
            by_index: HashMap::new(),
            begun: 0,
        }
    }
}

impl<P> OpenParts<P> {
    /// Starts a part at `index`.
    pub(super) fn begin(&mut self, index: u64, part: P) {
        self.by_index
            .entry(index)
            .or_default()
            .push_back(self.begun);
        self.parts.insert(self.begun, part);
        self.begun += 1;
    }

    /// The newest part at `index`.
    pub(super) fn newest(&mut self, index: u64) -> Option<&mut P> {
        let number = self.by_index.get(&index)?.back()?;
        self.parts.get_mut(number)
    }

    /// Removes the oldest part at `index`, which is complete.
    pub(super) fn end(&mut self, index: u64) -> Option<P> {
        let numbers = self.by_index.get_mut(&index)?;
        let number = numbers.pop_front()?;
        if numbers.is_empty() {
            self.by_index.remove(&index);
        }
        self.parts.remove(&number)
    }

    /// All parts in the order of their start.
    pub(super) fn in_order(self) -> impl Iterator<Item = P> {
        self.parts.into_values()
    }
}
