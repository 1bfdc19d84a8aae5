//! Which web pages may use us.
//!
//! A browser says which page makes a request, by `Origin` and by `Sec-Fetch-Site`. A page that
//! we did not serve ourselves may use us only if the settings name it. Programs that are no
//! browsers send neither.

use http::header::{HeaderMap, ORIGIN};

use super::refusal::AccessRefusal;
use crate::config::ProxyConfig;

/// The header in which browsers name the relation between the page and us.
const FETCH_SITE: &str = "sec-fetch-site";
/// The relations that no foreign page has: our own pages, and addresses that a person typed.
const OWN_SITES: [&str; 2] = ["same-origin", "none"];

/// Refuses a request of a foreign page. We were called as `scheme` and `host`.
pub(super) fn check(
    config: &ProxyConfig,
    (scheme, host): (&str, &str),
    headers: &HeaderMap,
) -> Result<(), AccessRefusal> {
    // A browser sends one `Origin`. If a request has several, each of them must be allowed.
    let mut is_listed = false;
    for origin in headers.get_all(ORIGIN) {
        let origin = origin.to_str().unwrap_or_default();
        let listed = config.origins.iter();
        is_listed = listed.into_iter().any(|known| is_same(known, origin));
        if !is_listed && !is_own(scheme, host, origin) {
            return Err(AccessRefusal::origin(not_allowed(origin)));
        }
    }
    // A browser omits `Origin` on plain GET requests of other pages, such as those for an image,
    // but it still sends this header.
    let site = headers.get(FETCH_SITE);
    let is_own_site = site.is_none_or(|site| OWN_SITES.iter().any(|own| site == own));
    if is_own_site || is_listed {
        return Ok(());
    }
    let why = "the request comes from a web page that is not ours\n\
        hint: add the origin of the page to proxy.origins in the settings, \
        or send a token in the header x-trimtab-token";
    Err(AccessRefusal::origin(why.to_owned()))
}

fn not_allowed(origin: &str) -> String {
    let shown: String = origin.chars().take(100).collect();
    format!(
        "the request comes from the origin {shown:?}, which is not allowed\n\
         hint: add it to proxy.origins in the settings, or send a token in the header \
         x-trimtab-token; the origin null cannot be added"
    )
}

fn is_own(scheme: &str, host: &str, origin: &str) -> bool {
    is_same(&format!("{scheme}://{host}"), origin)
}

/// True if both are the same origin, with or without the usual port.
fn is_same(one: &str, other: &str) -> bool {
    normal(one).eq_ignore_ascii_case(normal(other))
}

fn normal(origin: &str) -> &str {
    let port = if origin.starts_with("https://") {
        ":443"
    } else {
        ":80"
    };
    // Ports of other schemes, such as those of apps, have no default that could be left out.
    let is_web = origin.starts_with("http");
    let short = origin.strip_suffix(port).filter(|_| is_web);
    short.unwrap_or(origin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn asks(config: &ProxyConfig, origin: Option<&str>, site: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        if let Some(origin) = origin {
            headers.insert(ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        if let Some(site) = site {
            headers.insert(FETCH_SITE, HeaderValue::from_str(site).unwrap());
        }
        check(config, ("http", "localhost:8787"), &headers).is_ok()
    }

    #[test]
    fn only_own_and_listed_origins_are_allowed() {
        let config = ProxyConfig {
            origins: vec!["vscode-file://vscode-app".to_owned()],
            ..ProxyConfig::default()
        };
        assert!(asks(&config, None, None));
        assert!(asks(&config, Some("http://localhost:8787"), None));
        assert!(asks(&config, Some("vscode-file://vscode-app"), None));
        for other in [
            "http://localhost:3000",
            "http://localhost",
            "https://localhost:8787",
            "http://evil.com",
            "app://obsidian.md",
            "null",
            "",
        ] {
            assert!(!asks(&config, Some(other), None), "{other}");
        }
    }

    #[test]
    fn cross_site_requests_without_an_origin_are_refused() {
        let config = ProxyConfig {
            origins: vec!["https://app.example".to_owned()],
            ..ProxyConfig::default()
        };
        for site in ["cross-site", "same-site", "nonsense"] {
            assert!(!asks(&config, None, Some(site)), "{site}");
        }
        assert!(asks(&config, None, Some("none")));
        assert!(asks(&config, None, Some("same-origin")));
        assert!(asks(
            &config,
            Some("https://app.example:443"),
            Some("cross-site")
        ));
    }

    #[test]
    fn usual_ports_need_not_be_written() {
        assert!(is_same("http://proxy.house", "http://PROXY.house:80"));
        assert!(is_same("https://proxy.house:443", "https://proxy.house"));
        assert!(!is_same("http://proxy.house:443", "https://proxy.house"));
    }
}
