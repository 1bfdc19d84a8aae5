//! What a request leaves to be made durable, and when.
//!
//! Messages that are sent unchanged can be written later: if they are lost, the client sends them
//! again. Everything else depends on a plan and often shows a ref, so it must be durable before a
//! model has the complete request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::task::spawn_blocking;
use trimtab_store::{Error as StoreError, StagedStore};

use crate::transport::body::BoxError;

/// The delay of writes that no request depends on, so that writes of several requests are combined.
const BEHIND: Duration = Duration::from_millis(50);

/// True if a write was rejected because another process wrote first, now or earlier.
pub(crate) fn is_conflict(error: &StoreError) -> bool {
    matches!(error, StoreError::Conflict { .. } | StoreError::Lost)
}

/// Writes that are not yet durable.
pub(crate) enum UnflushedWrites {
    /// Before a model reads the request.
    BeforeSend(Arc<StagedStore>),
    /// Later. None if a flush is already scheduled.
    AfterSend(Option<LazyFlush>),
}

impl UnflushedWrites {
    /// The writes that must be durable before a model reads the request. Others are scheduled.
    pub(crate) fn required_before_send(self) -> Option<Arc<StagedStore>> {
        match self {
            Self::BeforeSend(staged) => Some(staged),
            Self::AfterSend(behind) => {
                if let Some(behind) = behind {
                    tokio::spawn(behind.flush());
                }
                None
            }
        }
    }
}

/// Whether a flush of a conversation is scheduled.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlushScheduled(Arc<AtomicBool>);

impl FlushScheduled {
    /// A flush of `staged` for later; none if one is already scheduled.
    pub(crate) fn schedule(&self, staged: &Arc<StagedStore>) -> Option<LazyFlush> {
        // One scheduled write takes along everything that is staged until it runs.
        let is_due = self.0.swap(true, Ordering::AcqRel);
        (!is_due).then(|| LazyFlush {
            staged: Arc::clone(staged),
            flush_scheduled: self.clone(),
        })
    }
}

/// A write that no request depends on.
pub(crate) struct LazyFlush {
    staged: Arc<StagedStore>,
    flush_scheduled: FlushScheduled,
}

impl LazyFlush {
    async fn flush(self) {
        tokio::time::sleep(BEHIND).await;
        let staged = Arc::clone(&self.staged);
        // Messages that are staged from now on may miss this write, so another one may be
        // scheduled. Dropping `self` allows it.
        // A failure shows in the next request, which then passes unchanged.
        drop(spawn_blocking(move || staged.flush()).await);
    }
}

impl Drop for LazyFlush {
    /// Allows another flush to be scheduled, also if this one never ran.
    fn drop(&mut self) {
        self.flush_scheduled.0.store(false, Ordering::Release);
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
