//! Keeps recently read parts of images in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// The most bytes that a process keeps in memory.
const MOST: usize = 64 << 20;

/// A part of a body: its name and its number.
type SegmentKey = (String, u64);

/// Recently read parts of images. A body never changes, so a part is never outdated.
#[derive(Default)]
pub(super) struct SegmentCache(Mutex<CachedSegments>);

#[derive(Default)]
struct CachedSegments {
    segments: HashMap<SegmentKey, (u64, Arc<Vec<u8>>)>,
    /// The keys by their last use.
    by_use: BTreeMap<u64, SegmentKey>,
    uses: u64,
    bytes: usize,
}

impl SegmentCache {
    /// The part, if it is in memory. The caller inserts it again to mark it as used.
    pub(super) fn get(&self, key: &SegmentKey) -> Option<Arc<Vec<u8>>> {
        let cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, bytes) = cache.segments.get(key)?;
        Some(Arc::clone(bytes))
    }

    /// Drops everything.
    pub(super) fn clear(&self) {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *cache = CachedSegments::default();
    }

    /// Keeps a part, and drops those that were not used for the longest time.
    pub(super) fn insert(&self, key: SegmentKey, bytes: &Arc<Vec<u8>>) {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cache.insert(key, bytes);
    }
}

impl CachedSegments {
    fn insert(&mut self, key: SegmentKey, bytes: &Arc<Vec<u8>>) {
        self.uses += 1;
        let used = self.uses;
        self.by_use.insert(used, key.clone());
        self.bytes += bytes.len();
        if let Some((earlier, replaced)) = self.segments.insert(key, (used, Arc::clone(bytes))) {
            // The same part was inserted again, which only marks it as used.
            self.by_use.remove(&earlier);
            self.bytes -= replaced.len();
        }
        while self.bytes > MOST
            && let Some((_, oldest)) = self.by_use.pop_first()
            && let Some((_, dropped)) = self.segments.remove(&oldest)
        {
            self.bytes -= dropped.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_drops_the_least_recently_used_segment_when_it_is_full() {
        let cache = SegmentCache::default();
        let half = Arc::new(vec![0; MOST / 2]);
        let key = |number| ("body".to_owned(), number);
        cache.insert(key(1), &half);
        cache.insert(key(2), &half);
        cache.insert(key(1), &half);
        cache.insert(key(3), &half);
        assert!(cache.get(&key(2)).is_none());
        assert!(cache.get(&key(1)).is_some() && cache.get(&key(3)).is_some());
        assert_eq!(cache.0.lock().unwrap().bytes, MOST);
    }
}
