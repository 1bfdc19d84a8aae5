//! The connection that a request came over.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tokio::sync::OnceCell;

use super::local_user;

/// The connection of a request.
#[derive(Debug)]
pub(crate) struct InboundConnection {
    /// The client's address.
    pub(crate) peer: SocketAddr,
    /// Our address.
    pub(crate) local: SocketAddr,
    /// True if it is encrypted.
    pub(crate) is_tls: bool,
    is_own_user: OnceCell<bool>,
}

/// An unknown connection. It gives no rights to anybody.
impl Default for InboundConnection {
    fn default() -> Self {
        let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        Self::new(nowhere, nowhere, false)
    }
}

impl InboundConnection {
    pub(crate) fn new(peer: SocketAddr, local: SocketAddr, is_tls: bool) -> Self {
        Self {
            peer,
            local,
            is_tls,
            is_own_user: OnceCell::new(),
        }
    }

    /// The scheme of our address.
    pub(super) fn scheme(&self) -> &'static str {
        if self.is_tls { "https" } else { "http" }
    }

    /// True if the client is a process of our own user on this machine.
    pub(super) async fn is_own_user(&self) -> bool {
        let (peer, local) = (self.peer, self.local);
        // Only for loopback do both ends belong to this machine. The mapped form `::ffff:127.0.0.1`
        // is made canonical first, or it would not count as loopback.
        if !peer.ip().to_canonical().is_loopback() || !local.ip().to_canonical().is_loopback() {
            return false;
        }
        // The kernel's list of all sockets is read once per connection, not once per request.
        let is_own_user = self.is_own_user.get_or_init(|| async move {
            let lookup = tokio::task::spawn_blocking(move || local_user::is_own_user(peer, local));
            lookup.await.unwrap_or(false)
        });
        *is_own_user.await
    }
}
