//! A catalogue that remembers what it found.

use hashlink::LruCache;
use trimtab_wire::catalogue::{Catalogue, FoundModel};

use super::learned::{MODELS, NAME};

/// A catalogue with a cache of lookups. A lookup reads thousands of names, and one of an unknown
/// name also compares it with all of them, which takes a millisecond.
pub(crate) struct CatalogueLookups {
    catalogue: Catalogue,
    found: LruCache<String, Option<FoundModel>>,
}

impl CatalogueLookups {
    pub(crate) fn new(catalogue: Catalogue) -> Self {
        Self {
            catalogue,
            found: LruCache::new(MODELS),
        }
    }

    /// The model of that name.
    pub(crate) fn find(&mut self, model: &str) -> Option<FoundModel> {
        // A body can have a name of megabytes, which must not stay in memory.
        if model.len() > NAME {
            return None;
        }
        if let Some(found) = self.found.get(model) {
            return found.clone();
        }
        let found = self.catalogue.find(model).ok();
        self.found.insert(model.to_owned(), found.clone());
        found
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
}
