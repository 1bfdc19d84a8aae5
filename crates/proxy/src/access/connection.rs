//! The connection that a request came over.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::transport::peer_socket::PeerSocket;

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
        let socket = PeerSocket::new(peer, local);
        Self {
            peer,
            local,
            is_tls,
            is_own_user: socket.is_some_and(PeerSocket::is_own_user),
        }
    }

    /// The scheme of our address.
    pub(super) fn scheme(&self) -> &'static str {
        if self.is_tls { "https" } else { "http" }
    }
}
