//! How long work on files may go on.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Tells work on another thread when its time is up, or when nobody waits for it any more.
#[derive(Clone, Debug)]
pub(super) struct WorkLimit {
    time: Duration,
    until: Instant,
    waiting: Weak<()>,
}

impl WorkLimit {
    /// A limit in time, and what has to be held by whoever waits.
    pub(super) fn new(time: Duration) -> (Self, Arc<()>) {
        let waiting = Arc::new(());
        let limit = Self {
            time,
            until: Instant::now() + time,
            waiting: Arc::downgrade(&waiting),
        };
        (limit, waiting)
    }

    /// True if the work shall end.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() > self.until || self.waiting.strong_count() == 0
    }

    /// What to tell the model if the time was too short.
    pub(super) fn note(&self) -> Option<String> {
        let seconds = self.time.as_secs();
        self.is_over()
            .then(|| format!("[stopped after {seconds} s: there may be more]"))
    }
}
