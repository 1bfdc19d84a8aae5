//! The films that open screens show. A film that is kept costs the next look at it only what is new.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hashlink::LruCache;
use trimtab::film::{FilmOptions, LogFilm};
use trimtab_store::now_millis;

/// How many films are kept; the least recently used are made again. Each holds the messages of its
/// session.
const FILMS: usize = 16;

/// A film with a number, by which a screen says which one it has.
pub(crate) struct NumberedFilm {
    pub(crate) number: u64,
    pub(crate) film: LogFilm,
}

/// The films that open screens show, by session.
pub(super) struct SessionFilms {
    films: Mutex<LruCache<String, NumberedFilm>>,
    /// The number of the next film. It begins with the time, so that no number is used again after
    /// a restart.
    next: AtomicU64,
}

impl SessionFilms {
    pub(super) fn new() -> Self {
        Self {
            films: Mutex::new(LruCache::new(FILMS)),
            next: AtomicU64::new(now_millis()),
        }
    }

    /// A new film.
    pub(super) fn begin(&self, options: FilmOptions) -> NumberedFilm {
        NumberedFilm {
            number: self.next.fetch_add(1, Ordering::Relaxed),
            film: LogFilm::new(options),
        }
    }

    /// Takes a film out. Who asks for it meanwhile makes a new one.
    pub(super) fn take(&self, id: &str) -> Option<NumberedFilm> {
        self.films().remove(id)
    }

    pub(super) fn keep(&self, id: &str, film: NumberedFilm) {
        self.films().insert(id.to_owned(), film);
    }

    pub(super) fn clear(&self) {
        self.films().clear();
    }

    fn films(&self) -> MutexGuard<'_, LruCache<String, NumberedFilm>> {
        self.films.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
