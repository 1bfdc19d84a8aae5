//! The connection that a request came over.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

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
    /// True if the client is a process of our own user on this machine. Found out when the
    /// connection is made: a client that closes it, or half of it, no longer proves who it is.
    pub(super) is_own_user: bool,
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
        // Only for loopback do both ends belong to this machine. The mapped form `::ffff:127.0.0.1`
        // is made canonical first, or it would not count as loopback.
        let is_loopback = |address: SocketAddr| address.ip().to_canonical().is_loopback();
        let is_here = is_loopback(peer) && is_loopback(local);
        Self {
            peer,
            local,
            is_tls,
            is_own_user: is_here && local_user::is_own_user(peer, local),
        }
    }

    /// The scheme of our address.
    pub(super) fn scheme(&self) -> &'static str {
        if self.is_tls { "https" } else { "http" }
    }
}
