//! The proxy as clients see it.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]

mod bound;
mod chains;
mod client_fields;
mod connections;
mod copies;
mod dashboard;
mod differential;
mod durable;
mod ends;
mod fake;
mod fits;
mod gateway_rules;
mod hidden_streams;
mod identical;
mod learned_windows;
mod managed;
mod memory;
mod own;
mod passing;
mod provider_items;
mod provider_types;
mod raw_http;
mod recovery;
mod reload;
mod renewed;
mod replayed;
mod request_headers;
mod restarts;
mod retrieval;
mod roles;
mod savings;
mod shapes;
mod shapes_chat;
mod shapes_messages;
mod shapes_responses;
mod store_state;
mod stores;
mod system_items;
mod talk;
mod websocket;

use std::sync::Arc;

use trimtab_proxy::{Proxy, ProxyConfig, RunningProxy};
use trimtab_store::{MemoryStore, Store};

/// Settings for tests: any port, sessions for bodies of any size.
pub(crate) fn config(upstream: &str) -> ProxyConfig {
    let mut config = ProxyConfig::to_upstream(upstream);
    config.listen = "127.0.0.1:0".parse().unwrap();
    config.limits.session_bytes = 0;
    // A machine that runs many tests at once is slow.
    config.limits.plan_ms = 20_000;
    config
}

/// A proxy in front of `upstream`, and its base address.
pub(crate) async fn proxy(config: ProxyConfig) -> (RunningProxy, String) {
    proxy_with(config, Arc::new(MemoryStore::new())).await
}

/// The same over a store of the test.
pub(crate) async fn proxy_with(
    config: ProxyConfig,
    store: Arc<dyn Store>,
) -> (RunningProxy, String) {
    let running = Proxy::start(config, store).await.unwrap();
    let base = format!("http://{}", running.address());
    (running, base)
}
