//! Checks whether the proxy can listen on its port.

use std::net::SocketAddr;
use std::time::Duration;

use http::Method;
use serde_json::Value;

use super::check::DoctorCheck;
use crate::proxy::http::HttpClient;

/// How long the current listener may take to identify itself.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) async fn check(http: &HttpClient, address: SocketAddr) -> DoctorCheck {
    // Binding is the only reliable test. The listener is dropped at once.
    let Err(error) = tokio::net::TcpListener::bind(address).await else {
        return DoctorCheck::ok("port", format!("{address} is free"));
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
    DoctorCheck::problem(
        "port",
        format!("cannot listen on {address}: {error}"),
        "choose another address with --listen or proxy.listen; port 0 picks a free port",
    )
}

/// The check for a running proxy that passed `unmanaged` requests because the provider keeps their
/// conversations.
fn of_running(address: SocketAddr, unmanaged: u64) -> DoctorCheck {
    let running = format!("a trimtab is already listening on {address}");
    if unmanaged == 0 {
        return DoctorCheck::ok("port", running);
    }
    DoctorCheck::warning(
        "port",
        format!(
            "{running}; it passed {unmanaged} requests unmanaged, because the provider keeps a \
             part of them that the proxy has not seen (previous_response_id, conversation or prompt)"
        ),
        "start these conversations through the proxy, or send the whole input (store = false)",
    )
}

/// The number of such requests that a running proxy passed; 0 if it does not report it.
async fn unmanaged(http: &HttpClient, address: SocketAddr) -> u64 {
    let url = format!("http://{address}/trimtab/status");
    let asked = http
        .send(Method::GET, &url, &[], Vec::new(), PATIENCE)
        .await;
    let status = asked.ok();
    let status = status.and_then(|answer| serde_json::from_slice::<Value>(&answer.body).ok());
    let partial = status.and_then(|status| status.get("partial")?.as_u64());
    partial.unwrap_or(0)
}
