//! Interrupts a turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Interrupts the turn of an agent, from any thread. Clones share the same state.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<InterruptState>);

#[derive(Debug, Default)]
struct InterruptState {
    set: AtomicBool,
    waiting: Notify,
}

impl Interrupt {
    /// Interrupts the current turn, if there is one.
    pub fn interrupt(&self) {
        self.0.set.store(true, Ordering::SeqCst);
        self.0.waiting.notify_waiters();
    }

    /// True if the turn should end, or if the last one was interrupted.
    pub fn is_set(&self) -> bool {
        self.0.set.load(Ordering::SeqCst)
    }

    /// Resets the state for a new turn.
    pub(crate) fn clear(&self) {
        self.0.set.store(false, Ordering::SeqCst);
    }

    /// Waits for an interrupt.
    pub(crate) async fn interrupted(&self) {
        loop {
            // Register before checking the flag, so that an interrupt in between is not missed.
            let woken = self.0.waiting.notified();
            if self.is_set() {
                return;
            }
            woken.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn interrupt_wakes_all_waiters() {
        let interrupt = Interrupt::default();
        let other = interrupt.clone();
        let waiting = tokio::spawn(async move { other.interrupted().await });
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!waiting.is_finished());
        interrupt.interrupt();
        waiting.await.unwrap();
        interrupt.interrupted().await;
        interrupt.clear();
        assert!(!interrupt.is_set());
    }
}
