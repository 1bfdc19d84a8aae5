//! What a request leaves to be made durable, and when.
//!
//! Messages that are sent as they came rest on nothing: until they are durable, the client
//! brings them again. Whatever else is sent rests on a decision and often shows a ref, so no
//! model may have the whole of it before that is durable.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::task::spawn_blocking;
use trimtab_store::{Error as StoreError, SessionId, Staged, Store, Stream};

use crate::transport::body::BoxError;

/// How long writes wait that no request rests on: those of several requests are carried out
/// together, and none of them is disturbed by it.
const BEHIND: Duration = Duration::from_millis(50);

/// How long a request waits at most to hear that no other process wrote to its conversation.
const CHECK: Duration = Duration::from_millis(250);

/// True if a write was refused because another process wrote first, now or before.
pub(crate) fn is_conflict(error: &StoreError) -> bool {
    matches!(error, StoreError::Conflict { .. } | StoreError::Lost)
}

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

/// How far a session was read.
#[derive(Clone)]
pub(crate) struct ReadUntil {
    pub(crate) store: Arc<dyn Store>,
    /// Where what this process adds to it waits.
    pub(crate) staged: Arc<Staged>,
    pub(crate) session: SessionId,
    /// The entries of the log and of the journal, those included that wait to be written.
    pub(crate) positions: (u64, u64),
}

impl ReadUntil {
    /// True if somebody has written to the session since.
    pub(crate) fn is_outdated(&self) -> Result<bool, StoreError> {
        let position = |stream| self.store.position(&self.session, stream);
        Ok(position(Stream::Log)? > self.positions.0
            || position(Stream::Journal)? > self.positions.1)
    }

    /// True if another process has, and not this one: what waits to be written is refused then.
    fn has_others(&self) -> Result<bool, StoreError> {
        let refused = || self.staged.flush().is_err_and(|error| is_conflict(&error));
        Ok(self.is_outdated()? && refused())
    }
}

/// What a model must not read a request before.
pub(crate) enum Waits {
    /// It is durable.
    Flush(Arc<Staged>),
    /// It is known that no other process wrote to the conversation.
    Check(ReadUntil),
}

impl Waits {
    /// Waits for it, for as long as `limit`. Says in `outcome` that it failed.
    pub(crate) async fn over(
        self,
        limit: Duration,
        outcome: Arc<OnceLock<Flushed>>,
    ) -> Result<(), BoxError> {
        match self {
            Self::Flush(staged) => flush_before(staged, limit, outcome).await,
            Self::Check(read) => check(read, outcome).await,
        }
    }
}

/// A check that fails, or takes too long, holds nothing up: what is read is what there was.
async fn check(read: ReadUntil, outcome: Arc<OnceLock<Flushed>>) -> Result<(), BoxError> {
    let checking = spawn_blocking(move || read.has_others());
    match tokio::time::timeout(CHECK, checking).await {
        Ok(Ok(Ok(true))) => {
            outcome.get_or_init(|| Flushed::Conflict);
            Err("another process has written to the conversation".into())
        }
        _ => Ok(()),
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

/// Why a request that waited is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// It failed.
    Failed,
    /// It was refused: another process has written to the conversation.
    Conflict,
}

/// Makes durable what a request rests on, within a time. Says in `outcome` that it did not.
fn flush_before(
    staged: Arc<Staged>,
    limit: Duration,
    outcome: Arc<OnceLock<Flushed>>,
) -> impl Future<Output = Result<(), BoxError>> + Send {
    let flushing = spawn_blocking(move || staged.flush());
    async move {
        let (why, flushed): (BoxError, Flushed) = match tokio::time::timeout(limit, flushing).await
        {
            Ok(Ok(Ok(()))) => return Ok(()),
            Ok(Ok(Err(error))) if is_conflict(&error) => (error.into(), Flushed::Conflict),
            Ok(Ok(Err(error))) => (error.into(), Flushed::Failed),
            Ok(Err(panicked)) => (panicked.into(), Flushed::Failed),
            Err(late) => (late.into(), Flushed::Failed),
        };
        outcome.get_or_init(|| flushed);
        Err(why)
    }
}
