//! Whether a loopback connection comes from a process of our own user.
//!
//! Everybody on a machine can connect to its loopback addresses. Linux knows the owner of every
//! socket, and answers for a single connection in the time of a few system calls, so a crowd of
//! connections costs as little to ask about as one. On other systems we assume a machine with one
//! user.

use std::net::SocketAddr;

/// True if the socket at `peer`, connected to us at `local`, belongs to our own user.
#[cfg(target_os = "linux")]
pub(super) fn is_own_user(peer: SocketAddr, local: SocketAddr) -> bool {
    diagnosis::owner(peer, local) == Some(rustix::process::geteuid().as_raw())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn is_own_user(_peer: SocketAddr, _local: SocketAddr) -> bool {
    true
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
    /// The length of a question, and of an answer without attributes.
    const QUESTION: u32 = 72;
    const ANSWER: usize = 88;

    /// The user of the socket that connects `from` to `to`, if it is open.
    pub(super) fn owner(from: SocketAddr, to: SocketAddr) -> Option<u32> {
        let (kind, flags) = (SocketType::DGRAM, SocketFlags::CLOEXEC);
        let protocol = Some(netlink::SOCK_DIAG);
        let socket = socket_with(AddressFamily::NETLINK, kind, flags, protocol).ok()?;
        send(&socket, &question(from, to), SendFlags::empty()).ok()?;
        let mut answer = [0; ANSWER];
        // The kernel has answered when `send` returns, so there is nothing to wait for.
        recv(&socket, &mut answer, RecvFlags::DONTWAIT).ok()?;
        let word = |at: usize| Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?));
        let is_answer = answer.get(4..6)? == BY_FAMILY.to_ne_bytes();
        let state = *answer.get(17)?;
        let (user, inode) = (word(80)?, word(84)?);
        // A socket that its process has closed is listed without an inode, and as one of root. A
        // process that listens at the same port is found if the connection is gone.
        (is_answer && state == ESTABLISHED && inode != 0).then_some(user)
    }

    /// `struct nlmsghdr` and `struct inet_diag_req_v2`.
    fn question(from: SocketAddr, to: SocketAddr) -> Vec<u8> {
        // A client with an IPv6 socket can be connected to an IPv4 address. The kernel finds it by
        // that address.
        let (from_ip, to_ip) = (from.ip().to_canonical(), to.ip().to_canonical());
        let family = match from_ip {
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
        for ip in [from_ip, to_ip] {
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
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn open_socket_of_either_family_is_found() {
        for (listen, host) in [
            ("127.0.0.1:0", "127.0.0.1"),
            ("[::1]:0", "::1"),
            ("127.0.0.1:0", "::ffff:127.0.0.1"),
        ] {
            let Ok(listener) = TcpListener::bind(listen) else {
                continue;
            };
            let local = listener.local_addr().unwrap();
            let client = TcpStream::connect((host, local.port())).unwrap();
            let peer = client.local_addr().unwrap();
            assert!(is_own_user(peer, local), "{host}");
            let other = SocketAddr::new(peer.ip(), 1);
            assert!(!is_own_user(other, local), "{host}");
            // A listener is no proof, although it is at the same place.
            assert!(!is_own_user(local, other), "{host}");
        }
    }

    #[test]
    fn closed_socket_proves_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let local = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(local).unwrap();
        let peer = client.local_addr().unwrap();
        // Nobody reads it, so the kernel keeps the socket after it was closed.
        client.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        drop(client);
        assert!(!is_own_user(peer, local));
    }
}
