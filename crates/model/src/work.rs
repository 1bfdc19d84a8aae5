//! Counts work, and lets other threads cancel it.
//!
//! Every loop over client input reports its work with [`step`]. Tests compare the counts for inputs
//! of different sizes ([`counted`]), and callers with a deadline set a [`CancelFlag`]: the next
//! report then ends the work ([`with_cancel`]).
//!
//! One unit is about one message, one part or one line, or [`UNIT_BYTES`] bytes of text.
//!
//! ```
//! use trimtab_model::work::{self, CancelFlag, Cancelled};
//!
//! let (sum, units) = work::counted(|| {
//!     (0..10).inspect(|_| work::step(1)).sum::<u64>()
//! });
//! assert_eq!((sum, units), (45, 10));
//!
//! let flag = CancelFlag::default();
//! flag.cancel();
//! let endless = || loop {
//!     work::step(1);
//! };
//! assert_eq!(work::with_cancel(&flag, endless), Err::<(), _>(Cancelled));
//! ```

use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The bytes of text that count as one unit.
pub const UNIT_BYTES: usize = 64;
/// The units between two checks of the flag: well under a millisecond of work.
const UNITS_BETWEEN_CHECKS: u64 = 2_048;

thread_local! {
    static DONE: Cell<u64> = const { Cell::new(0) };
    static NEXT_CHECK: Cell<u64> = const { Cell::new(0) };
    static FLAG: RefCell<Option<CancelFlag>> = const { RefCell::new(None) };
}

/// Tells work on another thread to stop.
#[derive(Clone, Debug, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Ends work under this flag at its next report.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True once the flag is set.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The work was cancelled. Its changes are incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the work was stopped because it took too long")
    }
}

impl std::error::Error for Cancelled {}

/// Reports that `units` of work are done or about to be done.
///
/// If the flag of this thread is set, the work ends here: the stack is unwound up to
/// [`with_cancel`], and locks held on the way are poisoned, as by a panic.
#[inline]
pub fn step(units: usize) {
    // No thread counts up to 2^64. Wrapping only keeps the overflow check out of this hot path.
    let done = DONE.get().wrapping_add(units as u64);
    DONE.set(done);
    // Checking the flag costs more than counting, so do it rarely.
    if done >= NEXT_CHECK.get() {
        check(done);
    }
}

/// Reports that `text` is read once.
#[inline]
pub fn step_text(text: &str) {
    step_bytes(text.len());
}

/// Reports that `bytes` bytes are read once.
#[inline]
pub fn step_bytes(bytes: usize) {
    // The one counts the visit itself, so that many empty texts are not free.
    step(1 + bytes / UNIT_BYTES);
}

#[cold]
fn check(done: u64) {
    NEXT_CHECK.set(done.wrapping_add(UNITS_BETWEEN_CHECKS));
    // A panic during unwinding would abort the process.
    if is_cancelled() && !std::thread::panicking() {
        // Unwinding instead of `panic!` skips the panic hook, which would print a message.
        resume_unwind(Box::new(Cancelled));
    }
}

/// True if the flag of this thread is set.
pub fn is_cancelled() -> bool {
    FLAG.with_borrow(|flag| flag.as_ref().is_some_and(CancelFlag::is_cancelled))
}

/// Runs `work` and returns the units that it reported.
pub fn counted<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = DONE.get();
    let result = work();
    (result, DONE.get().wrapping_sub(before))
}

/// Runs `work`, which ends early once `flag` is set.
///
/// The caller must then discard everything it was changing. A panic continues as a panic.
pub fn with_cancel<T>(flag: &CancelFlag, work: impl FnOnce() -> T) -> Result<T, Cancelled> {
    let guard = FlagGuard::set(Some(flag.clone()));
    // The closure may leave its data half changed. The caller promises to discard it, which is what
    // unwind safety asks for.
    let ended = catch_unwind(AssertUnwindSafe(work));
    // Restore the previous flag before a panic continues.
    drop(guard);
    ended.map_err(|cause| match cause.downcast::<Cancelled>() {
        Ok(cancelled) => *cancelled,
        Err(panic) => resume_unwind(panic),
    })
}

/// Runs `work` to its end even if the flag of this thread is set, for changes that must not be
/// split.
pub fn without_cancel<T>(work: impl FnOnce() -> T) -> T {
    let _guard = FlagGuard::set(None);
    work()
}

/// Restores the previous flag.
struct FlagGuard(Option<CancelFlag>);

impl FlagGuard {
    fn set(flag: Option<CancelFlag>) -> Self {
        // Check at the next report: the new flag may already be set.
        NEXT_CHECK.set(0);
        Self(FLAG.replace(flag))
    }
}

impl Drop for FlagGuard {
    fn drop(&mut self) {
        FLAG.set(self.0.take());
        NEXT_CHECK.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    fn endless() {
        loop {
            step(1);
        }
    }

    #[test]
    fn work_ends_after_its_flag_is_set() {
        let flag = CancelFlag::default();
        let other = flag.clone();
        let working = std::thread::spawn(move || with_cancel(&other, endless));
        flag.cancel();
        assert_eq!(working.join().unwrap(), Err(Cancelled));
        assert!(!is_cancelled());
    }

    #[test]
    fn cancelled_work_poisons_the_locks_it_holds() {
        let lock = Mutex::new(0);
        let flag = CancelFlag::default();
        flag.cancel();
        let work = || {
            let mut half_done = lock.lock().unwrap();
            *half_done = 1;
            endless();
        };
        assert_eq!(with_cancel(&flag, work), Err(Cancelled));
        assert!(lock.is_poisoned());
    }

    #[test]
    fn changes_that_belong_together_are_not_interrupted() {
        let flag = CancelFlag::default();
        flag.cancel();
        let mut done = 0;
        let ended = with_cancel(&flag, || {
            without_cancel(|| {
                for _ in 0..100_000 {
                    step(1);
                    done += 1;
                }
            });
            endless();
        });
        assert_eq!((ended, done), (Err(Cancelled), 100_000));
    }

    #[test]
    fn panic_stays_a_panic() {
        let flag = CancelFlag::default();
        let panicked = catch_unwind(|| with_cancel(&flag, || panic!("a fault of ours")));
        assert!(panicked.is_err());
    }
}
