//! Breaking a turn off.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Breaks the turn of an agent off, from anywhere. Cloning gives another handle.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<State>);

#[derive(Debug, Default)]
struct State {
    set: AtomicBool,
    waiting: Notify,
}

impl Interrupt {
    /// Breaks the turn off that is going on, if there is one.
    pub fn interrupt(&self) {
        self.0.set.store(true, Ordering::SeqCst);
        self.0.waiting.notify_waiters();
    }

    /// True if the turn shall end, or if the last one was broken off.
    pub fn is_set(&self) -> bool {
        self.0.set.load(Ordering::SeqCst)
    }

    /// A new turn begins.
    pub(crate) fn clear(&self) {
        self.0.set.store(false, Ordering::SeqCst);
    }

    /// Waits until the turn shall end.
    pub(crate) async fn interrupted(&self) {
        loop {
            // Made before the look, so that nothing is missed in between.
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
    async fn whoever_waits_is_woken() {
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
