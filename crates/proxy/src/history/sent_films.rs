//! The last answers to pages that show a session.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use hashlink::LruCache;

/// How many sessions keep their last answer.
const SENT: usize = 4;

/// The last answers about some sessions. Pages ask every two seconds, and mostly nothing has
/// changed since, or another page has asked for the same.
pub(crate) struct SentFilms(Mutex<LruCache<String, (FilmVersion, Bytes)>>);

/// What an answer depends on: the messages, the entries of the journal, and the calls.
pub(crate) type FilmVersion = (usize, usize, u64);

impl Default for SentFilms {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(SENT)))
    }
}

impl SentFilms {
    pub(crate) fn find(&self, id: &str, version: FilmVersion) -> Option<Bytes> {
        let mut sent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, answer) = sent.get(id)?;
        (*known == version).then(|| answer.clone())
    }

    /// Forgets all answers, because some of their text was erased.
    pub(crate) fn clear(&self) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    pub(crate) fn keep(&self, id: &str, version: FilmVersion, answer: Bytes) {
        let mut sent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sent.insert(id.to_owned(), (version, answer));
    }
}
