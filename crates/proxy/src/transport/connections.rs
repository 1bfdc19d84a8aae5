//! The connections of clients: what each of them is doing, its deadlines, and which one is closed
//! when there are too many.
//!
//! The less its client has done, the sooner a connection is closed: first one without a complete
//! request head, then one between two requests, then one whose client has stopped sending or
//! reading. Active requests of clients that keep up are never closed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};

use crate::config::ProxyLimits;
use crate::transport::upload_progress::{ConnectionOrder, ConnectionPriority, ConnectionProgress};

/// All connections of clients.
#[derive(Default)]
pub(crate) struct Connections {
    open: Mutex<BTreeMap<u64, Arc<Connection>>>,
    next: AtomicU64,
    /// How many of them have no order to end.
    staying: AtomicUsize,
    emptied: Notify,
}

impl Connections {
    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Connection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an accepted connection.
    pub(crate) fn add(self: &Arc<Self>) -> Arc<Connection> {
        let connection = Arc::new(Connection {
            number: self.next.fetch_add(1, Ordering::Relaxed),
            all: Arc::clone(self),
            progress: Mutex::new(ConnectionProgress::new(Instant::now())),
            order: watch::Sender::new(ConnectionOrder::Serve),
        });
        self.staying.fetch_add(1, Ordering::Relaxed);
        self.open()
            .insert(connection.number, Arc::clone(&connection));
        connection
    }

    /// The number of connections without an order to end.
    pub(crate) fn len(&self) -> usize {
        self.staying.load(Ordering::Relaxed)
    }

    /// Ends the connection with the lowest priority. False if all of them are needed.
    pub(crate) fn end_lowest_priority(&self) -> bool {
        let now = Instant::now();
        let open = self.open();
        let worths = open.values().filter(|open| open.is_serving());
        let worths = worths.filter_map(|open| Some((open.progress().priority(now)?, open)));
        let Some((worth, least)) = worths.min_by_key(|(worth, _)| *worth) else {
            return false;
        };
        // An idle client may be sending its next request right now. HTTP lets us finish such a
        // connection in order; cutting it off would lose that request.
        least.order(if matches!(worth, ConnectionPriority::Idle(_)) {
            ConnectionOrder::Finish
        } else {
            ConnectionOrder::Close
        });
        true
    }

    /// Ends all connections that missed a deadline.
    pub(crate) fn end_late(&self, limits: &ProxyLimits) {
        let now = Instant::now();
        for connection in self.open().values() {
            let order = connection.progress().order(now, limits);
            connection.order(order);
        }
    }

    /// Gives all connections the same order.
    pub(crate) fn tell_all(&self, order: ConnectionOrder) {
        for connection in self.open().values() {
            connection.order(order);
        }
    }

    /// Waits until all of them have ended.
    pub(crate) async fn wait_until_empty(&self) {
        loop {
            // Created before the check: `notify_one` stores a permit, so an end between the check
            // and the wait is not missed.
            let left = self.emptied.notified();
            if self.open().is_empty() {
                return;
            }
            left.await;
        }
    }
}

/// A connection of a client.
pub(crate) struct Connection {
    number: u64,
    all: Arc<Connections>,
    progress: Mutex<ConnectionProgress>,
    order: watch::Sender<ConnectionOrder>,
}

impl Connection {
    /// Its progress.
    pub(crate) fn progress(&self) -> MutexGuard<'_, ConnectionProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_serving(&self) -> bool {
        *self.order.borrow() == ConnectionOrder::Serve
    }

    /// Gives an order, unless a stricter one was given.
    fn order(&self, order: ConnectionOrder) {
        self.order.send_if_modified(|old| {
            // Counted once per connection, with its first order. The place is free from then on,
            // although the connection may take a moment to end.
            if *old == ConnectionOrder::Serve && order > ConnectionOrder::Serve {
                self.all.staying.fetch_sub(1, Ordering::Relaxed);
            }
            let is_stricter = order > *old;
            *old = order.max(*old);
            is_stricter
        });
    }

    /// Waits for an order that is at least as strict.
    pub(crate) async fn wait_for_order(&self, least: ConnectionOrder) {
        let mut orders = self.order.subscribe();
        // It cannot fail: the sender is here.
        drop(orders.wait_for(|order| *order >= least).await);
    }

    /// Records the start of a request. It ends when the returned value is dropped.
    pub(crate) fn begin_request(self: &Arc<Self>, version: http::Version) -> OpenRequest {
        self.progress().begin(version == http::Version::HTTP_2);
        OpenRequest(Arc::clone(self))
    }

    /// Removes the connection.
    pub(crate) fn leave(&self) {
        self.order(ConnectionOrder::Close);
        self.all.open().remove(&self.number);
        self.all.emptied.notify_one();
    }
}

/// A request in progress on a connection.
pub(crate) struct OpenRequest(Arc<Connection>);

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.progress().end(Instant::now());
    }
}

/// How often connections are checked for their deadlines: a fraction of the shortest one.
pub(crate) fn check_interval(limits: &ProxyLimits) -> Duration {
    let shortest = [
        limits.header_ms,
        limits.keep_alive_ms,
        limits.answer_stall_ms,
        limits.idle_ms,
    ];
    let shortest = shortest.into_iter().min().unwrap_or(0);
    // A connection then ends at most a quarter of its time late.
    Duration::from_millis((shortest / 4).clamp(10, 5_000))
}
