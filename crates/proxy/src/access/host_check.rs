//! Which hosts are ours.
//!
//! A web page whose name is made to lead to this machine sends its requests to us, and may
//! read the answers: to the browser we are the page's own server. Such requests name the page's
//! host, so every request must name a host of ours.

use std::net::{IpAddr, SocketAddr};

use http::header::{HOST, HeaderMap};
use http::{HeaderValue, Uri};

use super::refusal::AccessRefusal;
use crate::config::ProxyConfig;

/// Names of this machine.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Refuses a request that names a host that is not ours. `local` is our address on its connection.
pub(super) fn check(
    config: &ProxyConfig,
    local: SocketAddr,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), AccessRefusal> {
    let mut named = hosts(uri, headers).peekable();
    if named.peek().is_none() {
        let why = "the request names no host\nhint: send the header Host".to_owned();
        return Err(AccessRefusal::host(why));
    }
    // Every host must be ours, not only the first: the one that we check and the one that others
    // act on could differ.
    for host in named {
        let is_ours = host.is_some_and(|host| knows(config, local.ip(), host));
        if !is_ours {
            let host = host.unwrap_or_default();
            return Err(AccessRefusal::host(not_ours(host)));
        }
    }
    Ok(())
}

/// The host that a request names, in its spelling.
pub(super) fn host<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    hosts(uri, headers).next().flatten()
}

/// Every host that a request names; none for one that is not text.
fn hosts<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> impl Iterator<Item = Option<&'a str>> {
    let by_uri = uri.authority().map(|host| Some(host.as_str()));
    let by_header = headers.get_all(HOST).iter();
    let by_header = by_header.map(|host: &HeaderValue| host.to_str().ok());
    by_uri.into_iter().chain(by_header)
}

fn not_ours(host: &str) -> String {
    let name = without_port(host).unwrap_or(host);
    let shown: String = name.chars().take(100).collect();
    format!(
        "the request names the host {shown:?}, which is not one of this proxy\n\
         hint: if clients call it by that name, add it to proxy.hosts in the settings"
    )
}

/// True if `host`, with or without a port, is one of our names.
fn knows(config: &ProxyConfig, local: IpAddr, host: &str) -> bool {
    let Some(name) = without_port(host) else {
        return false;
    };
    // A setting may name a host with its port, so the whole text is compared as well.
    let is_named =
        |known: &str| known.eq_ignore_ascii_case(name) || known.eq_ignore_ascii_case(host);
    let mut names = LOCAL
        .into_iter()
        .chain(config.hosts.iter().map(String::as_str));
    // An address needs no DNS, so a page cannot be made to lead here by rebinding a name.
    let addresses = [config.listen.ip(), local.to_canonical()];
    let mut addresses = addresses.into_iter().filter_map(written);
    names.any(is_named) || addresses.any(|address| is_named(&address))
}

/// An address in the form of a host; none for the unspecified address.
fn written(address: IpAddr) -> Option<String> {
    match address {
        address if address.is_unspecified() => None,
        IpAddr::V4(address) => Some(address.to_string()),
        IpAddr::V6(address) => Some(format!("[{address}]")),
    }
}

/// The name in `name:port`; none if no port follows the colon.
fn without_port(host: &str) -> Option<&str> {
    let (name, port) = match host.rsplit_once(':') {
        // In `[::1]` the last colon is part of the address.
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    port.is_none_or(is_port).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_names_are_known() {
        let config = ProxyConfig {
            listen: "0.0.0.0:8787".parse().unwrap(),
            hosts: vec!["proxy.house".to_owned(), "odd.house:9000".to_owned()],
            ..ProxyConfig::default()
        };
        let local = "192.0.2.7:8787".parse().unwrap();
        let uri = Uri::from_static("/healthz");
        let asks = |name: &str| {
            let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_str(name).unwrap())]);
            check(&config, local, &uri, &headers).is_ok()
        };
        for good in [
            "localhost",
            "LOCALHOST:8787",
            "127.0.0.1:8787",
            "[::1]:8787",
            "proxy.house",
            "proxy.house:443",
            "odd.house:9000",
            "192.0.2.7:8787",
        ] {
            assert!(asks(good), "{good}");
        }
        for bad in [
            "evil.com",
            "localhost.evil.com",
            "localhost:8787#@evil.com",
            "evil.com:8787",
            "localhost:",
            "127.0.0.1@evil.com",
            "0.0.0.0:8787",
            "odd.house:9001",
            "192.0.2.8:8787",
            "",
        ] {
            assert!(!asks(bad), "{bad}");
        }
        assert!(check(&config, local, &uri, &HeaderMap::new()).is_err());
    }

    #[test]
    fn every_named_host_is_checked() {
        let config = ProxyConfig::default();
        let local = "127.0.0.1:8787".parse().unwrap();
        let ours = || HeaderValue::from_static("localhost:8787");
        let mut headers = HeaderMap::from_iter([(HOST, ours())]);
        let foreign = Uri::from_static("http://evil.com/v1/models");
        assert!(check(&config, local, &foreign, &headers).is_err());
        headers.append(HOST, HeaderValue::from_static("evil.com"));
        let path = Uri::from_static("/v1/models");
        assert!(check(&config, local, &path, &headers).is_err());
    }
}
