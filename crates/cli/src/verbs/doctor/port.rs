//! Can the proxy listen where it should?

use std::net::SocketAddr;
use std::time::Duration;

use http::Method;

use super::check::Check;
use crate::proxy::http::Http;

/// How long whoever is there may take to say who it is.
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
        return Check::ok("port", format!("a trimtab listens on {address} already"));
    }
    Check::problem(
        "port",
        format!("cannot listen on {address}: {error}"),
        "set another one with --listen or proxy.listen; port 0 takes any that is free",
    )
}
