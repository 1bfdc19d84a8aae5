//! Whether a loopback connection comes from a process of our own user.
//!
//! Everybody on a machine can connect to its loopback addresses. Linux lists the owner of every
//! socket in `/proc`, so there we know. On other systems we assume a machine with one user.

use std::net::SocketAddr;

/// True if the socket at `peer`, connected to us at `local`, belongs to our own user.
#[cfg(target_os = "linux")]
pub(super) fn is_own_user(peer: SocketAddr, local: SocketAddr) -> bool {
    let own = rustix::process::geteuid().as_raw();
    // A client with an IPv6 socket can be connected to an IPv4 address.
    let lists = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
    let mut found = lists.iter().filter_map(|list| {
        let list = std::fs::read_to_string(list).ok()?;
        owner(&list, peer, local)
    });
    found.next() == Some(own)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn is_own_user(_peer: SocketAddr, _local: SocketAddr) -> bool {
    true
}

/// The owner of the socket that connects `from` to `to`, in a list of sockets.
#[cfg(target_os = "linux")]
fn owner(list: &str, from: SocketAddr, to: SocketAddr) -> Option<u32> {
    let wanted = (canonical(from), canonical(to));
    list.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let from = address(fields.next()?)?;
        let to = address(fields.next()?)?;
        // The columns are: number, local, remote, state, queues, timer, retransmits, user.
        let user = fields.nth(4)?.parse().ok()?;
        ((from, to) == wanted).then_some(user)
    })
}

#[cfg(target_os = "linux")]
fn canonical(address: SocketAddr) -> (std::net::IpAddr, u16) {
    (address.ip().to_canonical(), address.port())
}

/// An address as the kernel writes it: words of 32 bits in the order of this machine.
#[cfg(target_os = "linux")]
fn address(text: &str) -> Option<(std::net::IpAddr, u16)> {
    use std::net::IpAddr;
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::with_capacity(16);
    for word in address.as_bytes().chunks(8) {
        let word = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let ip = match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(short) => IpAddr::from(short),
        Err(_) => IpAddr::from(<[u8; 16]>::try_from(bytes.as_slice()).ok()?),
    };
    Some((ip.to_canonical(), port))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn own_socket_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let local = listener.local_addr().unwrap();
        let client = TcpStream::connect(local).unwrap();
        let peer = client.local_addr().unwrap();
        assert!(is_own_user(peer, local));
        let other = SocketAddr::new(peer.ip(), 1);
        assert!(!is_own_user(other, local));
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn owner_of_both_families_is_read() {
        let list = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:A1B2 0100007F:2253 01 00000000:00000000 00:00000000 00000000  1000        0 77 1
   1: 0000000000000000FFFF00000100007F:A1B3 0000000000000000FFFF00000100007F:2253 01 00000000:00000000 00:00000000 00000000  1001        0 78 1
";
        let to = "127.0.0.1:8787".parse().unwrap();
        let user = |from: &str| owner(list, from.parse().unwrap(), to);
        assert_eq!(user("127.0.0.1:41394"), Some(1000));
        assert_eq!(user("127.0.0.1:41395"), Some(1001));
        assert_eq!(user("127.0.0.1:41396"), None);
    }
}
