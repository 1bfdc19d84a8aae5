//! What a request leaves to be made durable, and when.
//!
//! Messages that are sent unchanged can be written later: if they are lost, the client sends them
//! again. Everything else depends on a plan and often shows a ref, so it must be durable before a
//! model has the complete request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use trimtab_store::{Error as StoreError, StagedStore};

use crate::transport::body::BoxError;

/// The delay of writes that no request depends on, so that writes of several requests are combined.
const BEHIND: Duration = Duration::from_millis(50);
/// The duration of a lease: how long a session in memory is safe from collection after we are
/// killed.
pub(crate) const LEASE: Duration = Duration::from_mins(15);

/// True if a write was rejected because another process wrote first, now or earlier.
pub(crate) fn is_conflict(error: &StoreError) -> bool {
    matches!(error, StoreError::Conflict { .. } | StoreError::Lost)
}

/// Whether a flush of a conversation is scheduled.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlushScheduled(Arc<AtomicBool>);

impl FlushScheduled {
    /// Flushes `staged` soon, unless that is already scheduled.
    pub(crate) fn schedule(&self, staged: &Arc<StagedStore>) {
        // Without a runtime nothing is served either, and the flush at the end is enough.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        // One scheduled write takes along everything that is staged until it runs.
        if staged.is_idle() || self.0.swap(true, Ordering::AcqRel) {
            return;
        }
        let (staged, scheduled) = (Arc::clone(staged), self.clone());
        runtime.spawn(async move {
            tokio::time::sleep(BEHIND).await;
            // What is staged from now on may miss this write, so another one may be scheduled.
            scheduled.0.store(false, Ordering::Release);
            // A failure shows in the next request, which then passes unchanged.
            drop(spawn_blocking(move || staged.flush()).await);
        });
    }
}

/// Why a request that depends on a flush is not sent.
#[derive(Debug)]
pub(crate) enum FlushFailure {
    /// It failed; none if it did not end in time.
    Failed(Option<StoreError>),
    /// Another process has written to the conversation.
    Conflict,
}

/// Flushes the writes that a request depends on, within `limit`. A failure is recorded in
/// `outcome`.
pub(crate) fn flush_before(
    staged: Arc<StagedStore>,
    limit: Duration,
    outcome: Arc<OnceLock<FlushFailure>>,
) -> impl Future<Output = Result<(), BoxError>> + Send {
    // The flush starts here, and not when the future is first polled: it runs while the connection
    // to the upstream is made and the body is sent.
    let flushing = spawn_blocking(move || staged.flush());
    async move {
        let (why, flushed): (BoxError, FlushFailure) =
            match tokio::time::timeout(limit, flushing).await {
                Ok(Ok(Ok(()))) => return Ok(()),
                Ok(Ok(Err(error))) if is_conflict(&error) => (error.into(), FlushFailure::Conflict),
                Ok(Ok(Err(error))) => (error.to_string().into(), FlushFailure::Failed(Some(error))),
                Ok(Err(panicked)) => (panicked.into(), FlushFailure::Failed(None)),
                Err(late) => (late.into(), FlushFailure::Failed(None)),
            };
        outcome.get_or_init(|| flushed);
        Err(why)
    }
}
