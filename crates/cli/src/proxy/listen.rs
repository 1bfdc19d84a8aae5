//! Parses listening addresses as users write them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use trimtab_proxy::PORT;

/// Parses an address with or without a port, or a port alone. A port alone, `:PORT` and `localhost`
/// mean the loopback address.
pub fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let text = text.trim();
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    // An IPv6 address may be given with or without its brackets.
    let alone = text.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = alone.parse() {
        return Ok(SocketAddr::new(ip, PORT));
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, port),
        None if text.bytes().all(|byte| byte.is_ascii_digit()) => ("", text),
        None => (text, ""),
    };
    let is_here = host.is_empty() || host.eq_ignore_ascii_case("localhost");
    let port = match port {
        "" if !host.is_empty() => Some(PORT),
        port => port.parse().ok(),
    };
    match port.filter(|_| is_here) {
        Some(port) => Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)),
        None => Err(
            "give an IP address and a port, such as 127.0.0.1:8787 or 0.0.0.0:8787, or a port \
             alone, such as :9000, for this machine only"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listen_addresses_parse_in_all_spellings() {
        for (text, expected) in [
            ("127.0.0.1:9000", "127.0.0.1:9000"),
            ("0.0.0.0:1", "0.0.0.0:1"),
            ("[::1]:9000", "[::1]:9000"),
            ("::1", "[::1]:8787"),
            ("10.0.0.1", "10.0.0.1:8787"),
            (":9000", "127.0.0.1:9000"),
            ("9000", "127.0.0.1:9000"),
            ("0", "127.0.0.1:0"),
            ("localhost:8787", "127.0.0.1:8787"),
            ("LocalHost", "127.0.0.1:8787"),
        ] {
            let read = parse_listen(text).map(|address| address.to_string());
            assert_eq!(read.as_deref(), Ok(expected), "{text}");
        }
        for text in [
            "",
            ":",
            "70000",
            ":70000",
            "example.com:80",
            "localhost:x",
            "a b",
        ] {
            assert!(parse_listen(text).is_err(), "{text}");
        }
    }
}
