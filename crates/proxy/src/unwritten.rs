//! What a request leaves to be made durable, and when.
//!
//! Messages that are sent as they came rest on nothing: until they are durable, the client
//! brings them again. Whatever else is sent rests on a decision and often shows a ref, so no
//! model may have the whole of it before that is durable.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::spawn_blocking;
use trimtab_store::Staged;

use crate::body::BoxError;

/// How long writes wait that no request rests on: those of several requests are carried out
/// together, and none of them is disturbed by it.
const BEHIND: Duration = Duration::from_millis(50);

/// What is to be made durable.
pub(crate) enum Unwritten {
    /// Before a model reads the request.
    Before(Arc<Staged>),
    /// Whenever there is time; nothing, if somebody will see to it already.
    Behind(Option<Behind>),
}

impl Unwritten {
    /// What must be durable before a model reads the request; the rest is seen to.
    pub(crate) fn before(self) -> Option<Arc<Staged>> {
        match self {
            Self::Before(staged) => Some(staged),
            Self::Behind(behind) => {
                if let Some(behind) = behind {
                    tokio::spawn(behind.flush());
                }
                None
            }
        }
    }
}

/// Says that what a conversation has written will be made durable.
#[derive(Clone, Debug, Default)]
pub(crate) struct Due(Arc<AtomicBool>);

impl Due {
    /// What is to be made durable later; none if that is due already.
    pub(crate) fn later(&self, staged: &Arc<Staged>) -> Option<Behind> {
        let is_due = self.0.swap(true, Ordering::AcqRel);
        (!is_due).then(|| Behind {
            staged: Arc::clone(staged),
            due: self.clone(),
        })
    }
}

/// Writes that no request rests on.
pub(crate) struct Behind {
    staged: Arc<Staged>,
    due: Due,
}

impl Behind {
    async fn flush(self) {
        tokio::time::sleep(BEHIND).await;
        let staged = Arc::clone(&self.staged);
        // What comes from now on may be too late for this time.
        drop(self);
        // What fails here shows in the next request, which then passes as it came.
        drop(spawn_blocking(move || staged.flush()).await);
    }
}

impl Drop for Behind {
    /// Nothing is due any more, also where it never came to be carried out.
    fn drop(&mut self) {
        self.due.0.store(false, Ordering::Release);
    }
}

/// Makes durable what a request rests on, within a time. Says in `failed` that it did not.
pub(crate) fn flush_before(
    staged: Arc<Staged>,
    limit: Duration,
    failed: Arc<AtomicBool>,
) -> impl Future<Output = Result<(), BoxError>> + Send {
    let flushing = spawn_blocking(move || staged.flush());
    async move {
        let why: BoxError = match tokio::time::timeout(limit, flushing).await {
            Ok(Ok(Ok(()))) => return Ok(()),
            Ok(Ok(Err(error))) => error.into(),
            Ok(Err(panicked)) => panicked.into(),
            Err(late) => late.into(),
        };
        failed.store(true, Ordering::Relaxed);
        Err(why)
    }
}
