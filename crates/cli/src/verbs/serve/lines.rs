//! The messages of the proxy at startup.

use std::fmt::Write as _;
use std::net::SocketAddr;

use trimtab::provider::Provider;
use trimtab_proxy::UpstreamConfig;

use crate::proxy::destinations::destinations;
use crate::proxy::settings::{ResolvedProxy, mode_name};
use crate::ui::visible::visible;

/// Where the proxy listens, where requests go, and how to point a client at it.
pub(super) fn started(address: SocketAddr, resolved: &ResolvedProxy) -> String {
    let proxy = &resolved.proxy;
    let upstreams: Vec<String> = proxy.upstreams().iter().map(upstream).collect();
    let mode = mode_name(proxy.mode);
    let is_tls = proxy.tls.is_some();
    let url = url(address, is_tls);
    let mut text = format!(
        "trimtab: listening on {url} (preset {}, {mode}), upstreams: {}",
        visible(&proxy.preset),
        upstreams.join(", "),
    );
    for line in destinations(resolved) {
        let _ = write!(text, "\n{line}");
    }
    let _ = write!(text, "\n  dashboard: {url}/dashboard");
    text + &pointing(&url, &proxy.upstreams()) + not_encrypted(address, is_tls)
}

/// The base URL of the proxy.
fn url(address: SocketAddr, is_tls: bool) -> String {
    let scheme = if is_tls { "https" } else { "http" };
    format!("{scheme}://{address}")
}

/// The warning if keys and conversations pass the network unencrypted.
fn not_encrypted(address: SocketAddr, is_tls: bool) -> &'static str {
    if is_tls || address.ip().is_loopback() {
        return "";
    }
    "\nwarning: other machines can reach this address without encryption: keys, tokens and \
     conversations can be intercepted\nhint: set proxy.tls.certificate and proxy.tls.key"
}

/// How to point clients at the proxy, for dialects with an upstream.
pub fn pointing(url: &str, upstreams: &[UpstreamConfig]) -> String {
    let mut text = String::new();
    for provider in Provider::ALL {
        let dialects = provider.dialects();
        let takes = |upstream: &&UpstreamConfig| dialects.iter().any(|one| upstream.takes(*one));
        let taking = upstreams.iter().filter(takes);
        // The shortest prefix gives the simplest base URL.
        let Some(upstream) = taking.min_by_key(|upstream| upstream.prefix.len()) else {
            continue;
        };
        let (clients, path) = match provider {
            Provider::Anthropic => ("Anthropic clients:", ""),
            Provider::OpenAi => ("OpenAI clients:   ", "/v1"),
        };
        let (variable, prefix) = (provider.base_variable(), &upstream.prefix);
        let _ = write!(text, "\n  {clients}  {variable}={url}{prefix}{path}");
    }
    text
}

fn upstream(upstream: &UpstreamConfig) -> String {
    let dialects: Vec<String> = upstream.dialects.iter().map(ToString::to_string).collect();
    let mut about = dialects;
    about.extend((!upstream.prefix.is_empty()).then(|| format!("under {}", upstream.prefix)));
    about.extend(upstream.models.iter().cloned());
    let about = match about.as_slice() {
        [] => String::new(),
        about => format!(" ({})", about.join(", ")),
    };
    visible(&format!("{}{about}", upstream.url)).into_owned()
}
