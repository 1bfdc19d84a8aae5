//! Time limits for work on files.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Tells a blocking thread when its time is up or nobody waits for it any more.
#[derive(Clone, Debug)]
pub(super) struct WorkLimit {
    time: Duration,
    until: Instant,
    waiting: Weak<()>,
}

impl WorkLimit {
    /// A time limit, and a guard that the waiting task must hold.
    pub(super) fn new(time: Duration) -> (Self, Arc<()>) {
        let waiting = Arc::new(());
        let limit = Self {
            time,
            until: Instant::now() + time,
            waiting: Arc::downgrade(&waiting),
        };
        (limit, waiting)
    }

    /// True if the work should stop.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() > self.until || self.waiting.strong_count() == 0
    }

    /// The note for the model if the time was too short.
    pub(super) fn note(&self) -> Option<String> {
        let seconds = self.time.as_secs();
        self.is_over()
            .then(|| format!("[stopped after {seconds} s: there may be more]"))
    }
}
