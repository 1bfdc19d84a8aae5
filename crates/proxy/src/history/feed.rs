//! The live feed of the dashboard: which sessions changed.
//!
//! Calls can come faster than screens can draw. So what changes shortly after an event waits, and
//! is told once; the last change is always told.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tokio::sync::{Notify, broadcast};

/// The pause between two groups of events.
const PAUSE: Duration = Duration::from_millis(250);
/// How many groups a slow screen may lag behind before it misses some.
const GROUPS: usize = 64;
/// The largest group. If more sessions have changed, screens ask for everything again.
const MOST_EVENTS: usize = 100;

/// A screen that reads this asks for everything again.
pub(crate) const MISSED: &[u8] = b"data: {\"type\":\"missed\"}\n\n";

/// Events for all screens.
pub(super) struct LiveFeed {
    /// None once the proxy stops.
    screens: Mutex<Option<broadcast::Sender<Bytes>>>,
    /// The events that wait, with their kinds and sessions.
    waiting: Mutex<BTreeSet<(String, &'static str)>>,
    change: Arc<Notify>,
}

impl LiveFeed {
    /// A feed, with a task that sends its events until it is dropped.
    pub(super) fn start() -> Arc<Self> {
        let change = Arc::new(Notify::new());
        let feed = Arc::new(Self {
            screens: Mutex::new(Some(broadcast::channel(GROUPS).0)),
            waiting: Mutex::default(),
            change: Arc::clone(&change),
        });
        tokio::spawn(send_groups(Arc::downgrade(&feed), change));
        feed
    }

    /// Events from now on, in the form of server-sent events; none if the proxy stops.
    pub(super) fn subscribe(&self) -> Option<broadcast::Receiver<Bytes>> {
        self.screens().as_ref().map(broadcast::Sender::subscribe)
    }

    /// Tells all screens soon that a session changed. Never waits for them.
    pub(super) fn tell(&self, kind: &'static str, session: &str) {
        // Without an open dashboard nothing is written for it.
        if !self.has_screens() {
            return;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // One too many is enough to know that there are too many.
        if waiting.len() <= MOST_EVENTS {
            waiting.insert((session.to_owned(), kind));
        }
        self.change.notify_one();
    }

    /// True if a screen is open.
    pub(super) fn has_screens(&self) -> bool {
        let screens = self.screens();
        screens
            .as_ref()
            .is_some_and(|screens| screens.receiver_count() > 0)
    }

    /// Ends the feed of every screen.
    pub(super) fn close(&self) {
        *self.screens() = None;
    }

    fn send_group(&self) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let events = std::mem::take(&mut *waiting);
        drop(waiting);
        if events.is_empty() {
            return;
        }
        let group = if events.len() > MOST_EVENTS {
            Bytes::from_static(MISSED)
        } else {
            let events = events.iter().map(|(session, kind)| {
                let event = json!({"type": kind, "session": session});
                format!("data: {event}\n\n")
            });
            Bytes::from(events.collect::<String>())
        };
        if let Some(screens) = self.screens().as_ref() {
            // An error says that the last screen has gone.
            drop(screens.send(group));
        }
    }

    fn screens(&self) -> MutexGuard<'_, Option<broadcast::Sender<Bytes>>> {
        self.screens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LiveFeed {
    fn drop(&mut self) {
        // The task finds that the feed is gone.
        self.change.notify_one();
    }
}

/// Sends what changed, at once and then in groups.
async fn send_groups(feed: Weak<LiveFeed>, change: Arc<Notify>) {
    loop {
        change.notified().await;
        let Some(feed) = feed.upgrade() else {
            return;
        };
        feed.send_group();
        drop(feed);
        // What changes in this pause wakes the task again.
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn received(events: &mut broadcast::Receiver<Bytes>) -> String {
        let group = tokio::time::timeout(Duration::from_secs(10), events.recv()).await;
        String::from_utf8(group.unwrap().unwrap().to_vec()).unwrap()
    }

    #[tokio::test]
    async fn first_event_is_told_at_once_and_later_ones_in_groups() {
        let feed = LiveFeed::start();
        let mut events = feed.subscribe().unwrap();
        feed.tell("call", "a");
        assert_eq!(
            received(&mut events).await,
            "data: {\"session\":\"a\",\"type\":\"call\"}\n\n"
        );
        for _ in 0..1_000 {
            feed.tell("call", "a");
            feed.tell("call", "b");
        }
        // A single group has all of them, and the last one is not missing.
        assert_eq!(received(&mut events).await.matches("data:").count(), 2);
        feed.tell("changed", "a");
        assert!(received(&mut events).await.contains("changed"));
    }

    #[tokio::test]
    async fn too_many_sessions_are_told_as_one_event() {
        let feed = LiveFeed::start();
        let mut events = feed.subscribe().unwrap();
        for session in 0..=MOST_EVENTS {
            feed.tell("call", &session.to_string());
        }
        assert_eq!(received(&mut events).await.as_bytes(), MISSED);
    }

    #[tokio::test]
    async fn closed_feed_ends() {
        let feed = LiveFeed::start();
        let mut events = feed.subscribe().unwrap();
        feed.close();
        assert!(events.recv().await.is_err());
        assert!(feed.subscribe().is_none());
    }
}
