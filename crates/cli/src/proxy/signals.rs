//! Orders from outside.

use std::io;

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Let open streams end, and end.
    Stop,
    /// Read the settings again.
    Reload,
}

/// The signals that are orders.
#[cfg(unix)]
pub struct Orders {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Orders {
    /// Begins to listen for them.
    pub fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// The next order.
    pub async fn next(&mut self) -> Order {
        tokio::select! {
            _ = self.terminate.recv() => Order::Stop,
            _ = self.interrupt.recv() => Order::Stop,
            _ = self.hang_up.recv() => Order::Reload,
        }
    }
}

#[cfg(not(unix))]
pub struct Orders;

#[cfg(not(unix))]
impl Orders {
    /// Begins to listen for them.
    pub fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// The next order.
    pub async fn next(&mut self) -> Order {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Order::Stop
    }
}

impl Orders {
    /// Waits for an order to stop.
    pub async fn stop(&mut self) {
        while self.next().await != Order::Stop {}
    }
}
