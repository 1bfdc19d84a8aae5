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

/// How long writes wait that a request does not rest on, so that it is under way by then.
const BEHIND: Duration = Duration::from_millis(1);

/// What is to be made durable.
pub(crate) enum Unwritten {
    /// Before a model reads the request.
    Before(Arc<Staged>),
    /// Whenever there is time.
    Behind(Arc<Staged>),
}

impl Unwritten {
    /// What must be durable before a model reads the request; the rest is seen to.
    pub(crate) fn before(self) -> Option<Arc<Staged>> {
        match self {
            Self::Before(staged) => Some(staged),
            Self::Behind(staged) => {
                tokio::spawn(flush_behind(staged));
                None
            }
        }
    }
}

async fn flush_behind(staged: Arc<Staged>) {
    tokio::time::sleep(BEHIND).await;
    // What fails here shows in the next request, which then passes as it came.
    drop(spawn_blocking(move || staged.flush()).await);
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
