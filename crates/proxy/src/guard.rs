//! Who may ask us anything.
//!
//! A web page can make a browser send requests to a server on the same machine. Such requests
//! name the page's host, by `Host` or by `Origin`, so both are checked against the names under
//! which we are known. Nothing here depends on anything but the parsed head of a request.

use http::header::{AUTHORIZATION, HOST, HeaderMap, ORIGIN};
use http::{HeaderValue, StatusCode, Uri};

use crate::config::ProxyConfig;
use crate::headers;

/// Names of this machine.
const LOCAL: [&str; 4] = ["localhost", "127.0.0.1", "[::1]", "::1"];

/// Why a request is refused.
pub(crate) type Refusal = (StatusCode, &'static str);

/// Refuses a request that does not carry the token, if there is one.
pub(crate) fn token(config: &ProxyConfig, headers: &HeaderMap, own: bool) -> Result<(), Refusal> {
    let Some(token) = &config.token else {
        return Ok(());
    };
    let by_header = headers.get(headers::TOKEN).map(HeaderValue::as_bytes);
    // A provider's key stands there in every other request.
    let by_bearer = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.as_bytes().strip_prefix(b"Bearer "))
        .filter(|_| own);
    let presented = by_header.or(by_bearer).unwrap_or_default();
    if token.matches(presented) {
        Ok(())
    } else {
        let why = "the request carries no valid token\nhint: send it in the header x-trimtab-token";
        Err((StatusCode::UNAUTHORIZED, why))
    }
}

/// Refuses a request to an endpoint of ours that was not meant for us.
pub(crate) fn host(config: &ProxyConfig, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
    let named = headers.get(HOST).map(HeaderValue::as_bytes);
    let named = named.or(uri.authority().map(|host| host.as_str().as_bytes()));
    let host = named.and_then(|host| std::str::from_utf8(host).ok());
    if headers.get_all(HOST).iter().count() > 1 || !host.is_some_and(|host| knows(config, host)) {
        let why = "the request names a host that is not ours\nhint: add it to hosts";
        return Err((StatusCode::FORBIDDEN, why));
    }
    origin(config, headers)
}

/// Refuses a request that a web page of another host makes.
pub(crate) fn origin(config: &ProxyConfig, headers: &HeaderMap) -> Result<(), Refusal> {
    for origin in headers.get_all(ORIGIN) {
        let host = origin
            .to_str()
            .ok()
            .and_then(|origin| origin.split_once("://"))
            .map(|(_, host)| host);
        if !host.is_some_and(|host| knows(config, host)) {
            let why = "the request comes from a web page of another host\nhint: add it to hosts";
            return Err((StatusCode::FORBIDDEN, why));
        }
    }
    Ok(())
}

/// True if `host`, with or without a port, is a name of ours.
fn knows(config: &ProxyConfig, host: &str) -> bool {
    let Some(name) = without_port(host) else {
        return false;
    };
    let listen = config.listen.ip();
    let ours = config.hosts.iter().map(String::as_str);
    let listening = (!listen.is_unspecified()).then(|| listen.to_string());
    LOCAL
        .into_iter()
        .chain(ours)
        .chain(listening.as_deref())
        .any(|known| known.eq_ignore_ascii_case(name))
}

/// The name in `name:port`; none if what follows the colon is no port.
fn without_port(host: &str) -> Option<&str> {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    port.is_none_or(is_port).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;
    use http::HeaderName;

    fn with(name: HeaderName, value: &str) -> HeaderMap {
        let value = HeaderValue::from_str(value).unwrap();
        HeaderMap::from_iter([(name, value)])
    }

    #[test]
    fn only_our_own_names_are_known() {
        let config = ProxyConfig {
            hosts: vec!["proxy.house".to_owned()],
            ..ProxyConfig::default()
        };
        let uri = Uri::from_static("/healthz");
        let asks = |name: &str| host(&config, &uri, &with(HOST, name)).is_ok();
        for good in [
            "localhost",
            "LOCALHOST:8787",
            "127.0.0.1:8787",
            "[::1]:8787",
            "proxy.house",
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
            "",
        ] {
            assert!(!asks(bad), "{bad}");
        }
        assert!(host(&config, &uri, &HeaderMap::new()).is_err());
    }

    #[test]
    fn pages_of_other_hosts_are_refused() {
        let config = ProxyConfig::default();
        assert!(origin(&config, &with(ORIGIN, "http://localhost:3000")).is_ok());
        assert!(origin(&config, &with(ORIGIN, "http://evil.com")).is_err());
        assert!(origin(&config, &with(ORIGIN, "null")).is_err());
    }

    #[test]
    fn the_token_is_asked_for() {
        let config = ProxyConfig {
            token: Some(Secret::new("t")),
            ..ProxyConfig::default()
        };
        assert!(token(&config, &with(headers::TOKEN, "t"), false).is_ok());
        assert!(token(&config, &with(AUTHORIZATION, "Bearer t"), true).is_ok());
        assert!(token(&config, &with(AUTHORIZATION, "Bearer t"), false).is_err());
        assert!(token(&config, &HeaderMap::new(), true).is_err());
    }
}
