//! What is said when the proxy starts.

use std::net::SocketAddr;

use crate::proxy::settings::{Resolved, mode_name};
use crate::ui::visible::visible;

/// Where it listens, where requests go, and how to point a client at it.
pub(super) fn started(address: SocketAddr, resolved: &Resolved) -> String {
    let proxy = &resolved.proxy;
    let upstreams: Vec<String> = proxy.upstreams().iter().map(upstream).collect();
    let mode = mode_name(proxy.mode);
    format!(
        "trimtab: listening on http://{address} (preset {}, {mode}), upstreams: {}\n{}",
        visible(&proxy.preset),
        upstreams.join(", "),
        pointing(address)
    )
}

/// How to point clients at the proxy.
pub fn pointing(address: SocketAddr) -> String {
    format!(
        "  Anthropic clients:  ANTHROPIC_BASE_URL=http://{address}\n  \
         OpenAI clients:     OPENAI_BASE_URL=http://{address}/v1"
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
    visible(&format!("{}{about}", upstream.url)).into_owned()
}
