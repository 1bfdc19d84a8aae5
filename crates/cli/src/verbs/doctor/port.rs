//! Checks whether the proxy can listen on its port.

use std::net::SocketAddr;
use std::time::Duration;

use http::Method;
use serde_json::Value;

use super::check::Check;
use crate::proxy::http::Http;

/// How long the current listener may take to identify itself.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) async fn check(http: &Http, address: SocketAddr) -> Check {
    let Err(error) = tokio::net::TcpListener::bind(address).await else {
        return Check::ok("port", format!("{address} is free"));
    };
    // This endpoint needs no token.
    let url = format!("http://{address}/healthz");
    let asked = http
        .send(Method::GET, &url, &[], Vec::new(), PATIENCE)
        .await;
    let is_ours = asked.is_ok_and(|answer| !answer.header("x-trimtab-action").is_empty());
    if is_ours {
        return of_running(address, unmanaged(http, address).await);
    }
    Check::problem(
        "port",
        format!("cannot listen on {address}: {error}"),
        "choose another address with --listen or proxy.listen; port 0 picks a free port",
    )
}

/// The check for a running proxy that passed `unmanaged` requests because the provider keeps their
/// conversations.
fn of_running(address: SocketAddr, unmanaged: u64) -> Check {
    let running = format!("a trimtab is already listening on {address}");
    if unmanaged == 0 {
        return Check::ok("port", running);
    }
    Check::warning(
        "port",
        format!(
            "{running}; it passed {unmanaged} requests unmanaged, because the provider keeps a \
             part of them that the proxy has not seen (previous_response_id, conversation or prompt)"
        ),
        "start these conversations through the proxy, or send the whole input (store = false)",
    )
}

/// How many such requests a running proxy passed; 0 if it does not say.
async fn unmanaged(http: &Http, address: SocketAddr) -> u64 {
    let url = format!("http://{address}/trimtab/status");
    let asked = http
        .send(Method::GET, &url, &[], Vec::new(), PATIENCE)
        .await;
    let status = asked.ok();
    let status = status.and_then(|answer| serde_json::from_slice::<Value>(&answer.body).ok());
    let partial = status.and_then(|status| status.get("partial")?.as_u64());
    partial.unwrap_or(0)
}
