//! Runs blocking work on other threads than those that serve connections, with a deadline, and
//! cancels it when nobody waits for it any more.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};
use trimtab_model::work::{CancelFlag, with_cancel};

use crate::resources::memory_budget::{Reservation, WAIT_FOR_MEMORY};

/// Why work has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkFailure {
    /// It took too long and was cancelled.
    Slow,
    /// It panicked.
    Panicked,
}

impl WorkFailure {
    /// The reason in one word, for the log.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Slow => "slow",
            Self::Panicked => "panicked",
        }
    }
}

/// Runs `work` on a blocking thread, for at most `limit`.
///
/// When the time is up, or nobody waits any more, the work is cancelled and ends at its next report
/// (see [`trimtab_model::work`]). Locks that it holds are then poisoned, and their data is loaded
/// from the store again: see `ClientSession::branches`. Everything it owns, such as a permit, is
/// released when it has really ended.
pub(crate) async fn run_within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, WorkFailure> {
    let flag = CancelFlag::default();
    // Dropping a blocking task does not stop it. The flag does, also when this future is dropped
    // because the client went away.
    let _guard = CancelOnDrop(flag.clone());
    let working = spawn_blocking(move || with_cancel(&flag, work));
    match timeout(limit, working).await {
        Ok(Ok(Ok(done))) => Ok(done),
        Ok(Ok(Err(_))) | Err(_) => Err(WorkFailure::Slow),
        Ok(Err(_)) => Err(WorkFailure::Panicked),
    }
}

/// Permits for as much concurrent work as leaves processors for the threads that serve connections.
pub(crate) fn worker_permits() -> Arc<Semaphore> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    // Twice as many as processors, because some of the work waits for a disk.
    Arc::new(Semaphore::new(2 * processors))
}

/// The right to work now: as many requests have one as the processors can serve.
pub(crate) struct WorkTurn {
    _permit: Option<OwnedSemaphorePermit>,
    /// What is left of the time for the work.
    pub(crate) time_left: Duration,
}

impl WorkTurn {
    /// Waits for a permit.
    ///
    /// It waits for at most half of the time and then continues without a permit, because permits
    /// do not return while a disk hangs.
    async fn wait(turns: &Arc<Semaphore>, limit: Duration) -> Self {
        let began = Instant::now();
        let permit = timeout(limit / 2, Arc::clone(turns).acquire_owned()).await;
        Self {
            _permit: permit.ok().and_then(Result::ok),
            time_left: limit.saturating_sub(began.elapsed()),
        }
    }
}

/// A turn together with memory: `memory` grows to `bytes`. None if others do not free enough within
/// a short time. Large work waits longer, because only one at a time may exceed the share of its
/// tenant.
pub(crate) async fn turn_with_memory(
    turns: &Arc<Semaphore>,
    limit: Duration,
    memory: &mut Reservation,
    bytes: usize,
) -> Option<WorkTurn> {
    let began = Instant::now();
    let patience = if memory.may_exceed_share(bytes) {
        WAIT_FOR_MEMORY.max(limit / 2)
    } else {
        WAIT_FOR_MEMORY
    };
    loop {
        let turn = WorkTurn::wait(turns, limit.saturating_sub(began.elapsed())).await;
        if memory.grow_for_work(bytes) {
            return Some(turn);
        }
        // The permit goes back: others can work, and free the memory that is missing.
        drop(turn);
        if began.elapsed() >= patience {
            return None;
        }
        sleep(WAIT_FOR_MEMORY / 10).await;
    }
}

/// Like [`run_within`], but waits for a turn first.
pub(crate) async fn run_in_turn<T: Send + 'static>(
    turns: &Arc<Semaphore>,
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, WorkFailure> {
    let turn = WorkTurn::wait(turns, limit).await;
    let working = run_within(turn.time_left, move || {
        let _turn = turn;
        work()
    });
    working.await
}

/// Cancels the work when it is dropped.
struct CancelOnDrop(CancelFlag);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_model::work;

    /// Works without end, and lets go of a permit when it is stopped.
    fn endless(permits: &Arc<Semaphore>) -> impl FnOnce() + Send + use<> {
        let permit = Arc::clone(permits).try_acquire_owned().unwrap();
        move || {
            let _permit = permit;
            loop {
                work::step(1);
            }
        }
    }

    #[tokio::test]
    async fn work_is_stopped_when_its_time_is_up() {
        let permits = Arc::new(Semaphore::new(1));
        let limit = Duration::from_millis(1);
        let ended = run_within(limit, endless(&permits)).await;
        assert_eq!(ended, Err(WorkFailure::Slow));
        // The permit comes back when the work has ended.
        drop(permits.acquire().await.unwrap());
    }

    #[tokio::test]
    async fn work_is_stopped_when_nobody_waits_for_it() {
        let permits = Arc::new(Semaphore::new(1));
        let working = tokio::spawn(run_within(Duration::from_mins(10), endless(&permits)));
        working.abort();
        drop(permits.acquire().await.unwrap());
    }

    #[tokio::test]
    async fn result_and_panic_are_told_apart() {
        let limit = Duration::from_mins(1);
        assert_eq!(run_within(limit, || 7).await, Ok(7));
        let panicked = run_within(limit, || panic!("a fault of ours")).await;
        assert_eq!(panicked, Err::<(), _>(WorkFailure::Panicked));
    }

    #[tokio::test]
    async fn work_waits_for_its_turn_for_half_of_its_time() {
        let limit = Duration::from_secs(2);
        let turns = Arc::new(Semaphore::new(1));
        let held = Arc::clone(&turns).try_acquire_owned().unwrap();
        let began = Instant::now();
        assert_eq!(run_in_turn(&turns, limit, || 7).await, Ok(7));
        assert!(began.elapsed() >= limit / 2);
        drop(held);
        assert_eq!(run_in_turn(&turns, limit, || 8).await, Ok(8));
        assert_eq!(turns.available_permits(), 1);
    }
}
