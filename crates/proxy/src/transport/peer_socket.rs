//! The client's end of a connection on this machine: whose it is, and whether it is still open.
//!
//! Everybody on a machine can connect to its loopback addresses. Linux knows the owner of every
//! socket, and answers for a single connection in the time of a few system calls, so a crowd of
//! connections costs as little to ask about as one. On other systems we assume a machine with one
//! user.

use std::net::SocketAddr;

/// The socket of a client on this machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerSocket {
    from: SocketAddr,
    to: SocketAddr,
}

impl PeerSocket {
    /// The socket at `peer`, connected to us at `local`. Only for loopback do both ends belong to
    /// this machine.
    pub(crate) fn new(peer: SocketAddr, local: SocketAddr) -> Option<Self> {
        // The mapped form `::ffff:127.0.0.1` is made canonical first, or it would not count.
        let canonical = |address: SocketAddr| {
            let ip = address.ip().to_canonical();
            ip.is_loopback()
                .then(|| SocketAddr::new(ip, address.port()))
        };
        Some(Self {
            from: canonical(peer)?,
            to: canonical(local)?,
        })
    }

    /// True if it belongs to a process of our own user. A connection that its client has closed, or
    /// closed one half of, proves nothing.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_own_user(self) -> bool {
        let socket = diagnosis::ask(self.from, self.to);
        let own = rustix::process::geteuid().as_raw();
        socket.is_some_and(|socket| socket.is_established && socket.user == own)
    }

    /// True if a process still has it open, and can read from it.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_open(self) -> bool {
        diagnosis::ask(self.from, self.to).is_some()
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn is_own_user(self) -> bool {
        true
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn is_open(self) -> bool {
        false
    }
}

/// Questions to `sock_diag(7)`.
#[cfg(target_os = "linux")]
mod diagnosis {
    use std::net::{IpAddr, SocketAddr};

    use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
    use rustix::net::{netlink, recv, send, socket_with};

    /// `SOCK_DIAG_BY_FAMILY`, the type of the question and of the answer.
    const BY_FAMILY: u16 = 20;
    /// `NLM_F_REQUEST`.
    const REQUEST: u16 = 1;
    /// `IPPROTO_TCP`.
    const TCP: u8 = 6;
    /// `TCP_ESTABLISHED`.
    const ESTABLISHED: u8 = 1;
    /// `TCP_LISTEN`.
    const LISTENS: u8 = 10;
    /// The length of a question, and of an answer without attributes.
    const QUESTION: u32 = 72;
    const ANSWER: usize = 88;

    /// A socket that a process has open.
    pub(super) struct OpenSocket {
        pub(super) user: u32,
        pub(super) is_established: bool,
    }

    /// The socket that connects `from` to `to`, if a process has it open.
    pub(super) fn ask(from: SocketAddr, to: SocketAddr) -> Option<OpenSocket> {
        let (kind, flags) = (SocketType::DGRAM, SocketFlags::CLOEXEC);
        let protocol = Some(netlink::SOCK_DIAG);
        let socket = socket_with(AddressFamily::NETLINK, kind, flags, protocol).ok()?;
        send(&socket, &question(from, to), SendFlags::empty()).ok()?;
        let mut answer = [0; ANSWER];
        // The kernel has answered when `send` returns, so there is nothing to wait for.
        recv(&socket, &mut answer, RecvFlags::DONTWAIT).ok()?;
        let word = |at: usize| Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?));
        let is_answer = answer.get(4..6)? == BY_FAMILY.to_ne_bytes();
        // A socket that its process has closed is listed without an inode, and as one of root. If
        // the connection is gone, the kernel names a process that listens at the client's port.
        let is_open = is_answer && word(84)? != 0 && *answer.get(17)? != LISTENS;
        is_open.then_some(OpenSocket {
            user: word(80)?,
            is_established: *answer.get(17)? == ESTABLISHED,
        })
    }

    /// `struct nlmsghdr` and `struct inet_diag_req_v2`.
    fn question(from: SocketAddr, to: SocketAddr) -> Vec<u8> {
        // The kernel finds a client with an IPv6 socket by its IPv4 address, if it has one.
        let family = match from.ip() {
            IpAddr::V4(_) => AddressFamily::INET,
            IpAddr::V6(_) => AddressFamily::INET6,
        };
        let family = family.as_raw().to_le_bytes()[0];
        let mut question = Vec::with_capacity(QUESTION as usize);
        question.extend(QUESTION.to_ne_bytes());
        question.extend(BY_FAMILY.to_ne_bytes());
        question.extend(REQUEST.to_ne_bytes());
        // Our sequence number and address, which nothing needs.
        question.extend([0; 8]);
        question.extend([family, TCP, 0, 0]);
        // All states: the answer says which one it is.
        question.extend(u32::MAX.to_ne_bytes());
        question.extend(from.port().to_be_bytes());
        question.extend(to.port().to_be_bytes());
        for ip in [from.ip(), to.ip()] {
            match ip {
                IpAddr::V4(ip) => question.extend(ip.octets().into_iter().chain([0; 12])),
                IpAddr::V6(ip) => question.extend(ip.octets()),
            }
        }
        // Any interface, and no cookie.
        question.extend([0; 4]);
        question.extend([0xff; 8]);
        question
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{Shutdown, TcpListener, TcpStream};

    fn connected(listen: &str, host: &str) -> Option<(TcpListener, TcpStream, PeerSocket)> {
        let listener = TcpListener::bind(listen).ok()?;
        let local = listener.local_addr().ok()?;
        let client = TcpStream::connect((host, local.port())).ok()?;
        let socket = PeerSocket::new(client.local_addr().ok()?, local)?;
        Some((listener, client, socket))
    }

    #[test]
    fn open_socket_of_either_family_is_found() {
        for (listen, host) in [
            ("127.0.0.1:0", "127.0.0.1"),
            ("[::1]:0", "::1"),
            ("127.0.0.1:0", "::ffff:127.0.0.1"),
        ] {
            let Some((_listener, client, socket)) = connected(listen, host) else {
                continue;
            };
            assert!(socket.is_own_user() && socket.is_open(), "{host}");
            client.shutdown(Shutdown::Write).unwrap();
            assert!(!socket.is_own_user() && socket.is_open(), "{host}");
            // Nobody is connected from there, and somebody listens there.
            let (from, to) = (socket.to, SocketAddr::new(socket.from.ip(), 1));
            let other = PeerSocket { from, to };
            assert!(!other.is_own_user() && !other.is_open(), "{host}");
        }
    }

    #[test]
    fn closed_socket_proves_nothing() {
        let (_listener, mut client, socket) = connected("127.0.0.1:0", "127.0.0.1").unwrap();
        // Nobody reads it, so the kernel keeps the socket after it was closed.
        client.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        drop(client);
        assert!(!socket.is_own_user() && !socket.is_open());
    }

    #[test]
    fn only_loopback_is_on_this_machine() {
        let address = |text: &str| text.parse().unwrap();
        let local = address("127.0.0.1:8787");
        assert!(PeerSocket::new(address("[::ffff:127.0.0.1]:1"), local).is_some());
        assert!(PeerSocket::new(address("192.0.2.1:1"), local).is_none());
        assert!(PeerSocket::new(address("127.0.0.1:1"), address("192.0.2.1:1")).is_none());
    }
}
