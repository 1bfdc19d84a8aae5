//! What is said when the proxy starts.

use std::net::SocketAddr;

use crate::proxy::settings::{Resolved, mode_name};

/// Where it listens, where requests go, and how to point a client at it.
pub(super) fn started(address: SocketAddr, resolved: &Resolved) -> String {
    let proxy = &resolved.proxy;
    let upstreams: Vec<String> = proxy.upstreams().iter().map(upstream).collect();
    let mode = mode_name(proxy.mode);
    let url = url(address, proxy.tls.is_some());
    format!(
        "trimtab: listening on {url} (preset {}, {mode}), upstreams: {}\n{}{}",
        proxy.preset,
        upstreams.join(", "),
        pointing(&url),
        not_encrypted(address, proxy.tls.is_some()),
    )
}

/// The base URL of the proxy.
fn url(address: SocketAddr, is_tls: bool) -> String {
    let scheme = if is_tls { "https" } else { "http" };
    format!("{scheme}://{address}")
}

/// What is said when keys and conversations pass the network as they are.
fn not_encrypted(address: SocketAddr, is_tls: bool) -> &'static str {
    if is_tls || address.ip().is_loopback() {
        return "";
    }
    "\nwarning: other machines can reach this address and nothing is encrypted: keys, tokens and \
     conversations can be read on the way\nhint: set proxy.tls.certificate and proxy.tls.key"
}

/// How to point clients at the proxy.
pub fn pointing(url: &str) -> String {
    format!(
        "  Anthropic clients:  ANTHROPIC_BASE_URL={url}\n  \
         OpenAI clients:     OPENAI_BASE_URL={url}/v1"
    )
}

fn upstream(upstream: &trimtab_proxy::Upstream) -> String {
    let dialects: Vec<String> = upstream.dialects.iter().map(ToString::to_string).collect();
    let mut about = dialects;
    about.extend((!upstream.prefix.is_empty()).then(|| format!("under {}", upstream.prefix)));
    about.extend(upstream.models.iter().cloned());
    let about = match about.as_slice() {
        [] => String::new(),
        about => format!(" ({})", about.join(", ")),
    };
    format!("{}{about}", upstream.url)
}
