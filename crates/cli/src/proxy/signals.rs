//! Signals that stop the proxy or reload its settings.

use std::io;

/// The meaning of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalOrder {
    /// Let open streams finish, then exit.
    Stop,
    /// Reload the settings.
    Reload,
}

/// The signals that the proxy handles.
#[cfg(unix)]
pub struct SignalOrders {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl SignalOrders {
    /// Registers the signal handlers.
    pub fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) -> SignalOrder {
        tokio::select! {
            _ = self.terminate.recv() => SignalOrder::Stop,
            _ = self.interrupt.recv() => SignalOrder::Stop,
            _ = self.hang_up.recv() => SignalOrder::Reload,
        }
    }
}

#[cfg(not(unix))]
pub struct SignalOrders;

#[cfg(not(unix))]
impl SignalOrders {
    /// Registers the signal handlers.
    pub fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) -> SignalOrder {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        SignalOrder::Stop
    }
}

impl SignalOrders {
    /// Waits for a signal to stop.
    pub async fn stop(&mut self) {
        while self.next().await != SignalOrder::Stop {}
    }
}
