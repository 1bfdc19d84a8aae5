//! The items of a conversation as a linked list, from the newest to the oldest. Conversations that
//! continue from the same response share their beginning.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::resources::memory_budget::Reservation;

/// The items of a request and its answer, linked to those before them.
pub(crate) struct ChainHistory {
    previous: Option<Arc<Self>>,
    /// Items in JSON, joined by commas.
    items: String,
    /// The counter of all remembered bytes.
    bytes: Arc<AtomicUsize>,
    _memory: Reservation,
}

impl ChainHistory {
    pub(super) fn new(
        before: Option<Arc<Self>>,
        items: String,
        bytes: &Arc<AtomicUsize>,
        memory: Reservation,
    ) -> Self {
        bytes.fetch_add(items.len(), Ordering::Relaxed);
        Self {
            previous: before,
            items,
            bytes: Arc::clone(bytes),
            _memory: memory,
        }
    }

    /// One item of the last request and answer.
    pub(super) fn item(&self, place: Range<usize>) -> Option<&str> {
        self.items.get(place)
    }

    /// All items from the beginning on, as comma-joined runs.
    pub(super) fn items(&self) -> Vec<&str> {
        let mut items = Vec::new();
        let mut history = Some(self);
        while let Some(now) = history {
            items.push(now.items.as_str());
            history = now.previous.as_deref();
        }
        items.reverse();
        items
    }
}

impl Drop for ChainHistory {
    fn drop(&mut self) {
        self.bytes.fetch_sub(self.items.len(), Ordering::Relaxed);
        // Unlink in a loop: the default drop recurses once per response, and a long conversation
        // would overflow the stack.
        let mut before = self.previous.take();
        while let Some(mut last) = before.and_then(Arc::into_inner) {
            before = last.previous.take();
        }
    }
}
