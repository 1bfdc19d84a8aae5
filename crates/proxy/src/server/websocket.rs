//! WebSocket connections.
//!
//! Some clients try to hold a conversation over a WebSocket before they fall back to HTTP.
//! Over a WebSocket the window cannot be managed: the provider keeps the conversation, and each
//! message is sent once. So where we manage windows, such a request is answered with 426, the
//! only answer after which clients fall back at once. Every other WebSocket is connected to the
//! upstream, and bytes pass both ways unchanged.

use std::sync::Arc;

use http::header::{CONNECTION, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use hyper::upgrade::{self, OnUpgrade};
use hyper_util::rt::TokioIo;
use trimtab_wire::scan::detect;

use crate::config::ProxyMode;
use crate::request::context::RequestContext;
use crate::routing::route::UpstreamRoute;
use crate::routing::spoken_dialects::SpokenDialects;
use crate::transport::body::{self, ProxyBody};
use crate::transport::connections::Connection;
use crate::transport::headers;
use crate::transport::upload_progress::ConnectionOrder;

const WEBSOCKET: &str = "websocket";
/// The answer to a client that wants to hold a conversation over a WebSocket.
const OVER_HTTP: &str = "conversations are managed over HTTP only\n\
    hint: send the same request with POST, or set mode to observe or bypass";

/// The client's end of a tunnel: it counts as a connection until it ends.
pub(crate) type TunnelClient = (OnUpgrade, Option<Arc<Connection>>);

/// The connection of a request that asks for a WebSocket.
pub(crate) fn requested_upgrade(parts: &mut Parts) -> Option<OnUpgrade> {
    let wants = parts.method == Method::GET && has_protocol(&parts.headers, WEBSOCKET);
    let upgrade = parts.extensions.remove::<OnUpgrade>();
    upgrade.filter(|_| wants)
}

fn has_protocol(headers: &HeaderMap, protocol: &str) -> bool {
    let values = headers.get_all(UPGRADE).iter();
    let mut named = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    named.any(|name| name.trim().eq_ignore_ascii_case(protocol))
}

/// Answers a request that asks for a WebSocket.
pub(crate) async fn answer(
    mut context: RequestContext,
    client: TunnelClient,
) -> Response<ProxyBody> {
    // Only these paths carry conversations. Others, such as `/v1/realtime`, are tunnelled.
    let by_path = detect(b"", &context.path);
    let by_client = || SpokenDialects::by_client(&context.headers);
    let spoken = by_path.map_or_else(by_client, SpokenDialects::from);
    let settings = Arc::clone(&context.settings);
    let path = context.path.clone();
    let chosen = settings
        .routes
        .choose(&path, spoken, None, &context.headers);
    let (route, rest) = match chosen {
        Ok(chosen) => chosen,
        Err(why) => return context.no_route(why, spoken),
    };
    let mode = headers::mode(&context.headers)
        .unwrap_or_else(|| settings.routes.mode(&settings.config, &route, None));
    if by_path.is_some() && mode == ProxyMode::On {
        let mut answer = context.refuse(StatusCode::UPGRADE_REQUIRED, OVER_HTTP);
        let http = HeaderValue::from_static("HTTP/1.1");
        answer.headers_mut().insert(UPGRADE, http);
        return answer;
    }
    context.pending_record.set_reason("endpoint");
    connect(context, &route, rest, client).await
}

/// Connects the client to the upstream, if the upstream accepts the upgrade.
async fn connect(
    mut context: RequestContext,
    route: &UpstreamRoute,
    rest: &str,
    client: TunnelClient,
) -> Response<ProxyBody> {
    let Some(mut request) = context.upstream_request(route, rest, body::full_body("")) else {
        return context.refuse(StatusCode::BAD_REQUEST, "the path cannot be sent on");
    };
    ask_for_websocket(request.headers_mut());
    let mut answer = match context.shared.client.upgrade(request).await {
        Ok(answer) => answer,
        Err(failed) => return context.unreachable(&failed),
    };
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        let idle = context.settings.config.limits.idle_time();
        let answer = answer.map(|body| body::from_upstream(body, idle));
        return context.deliver(answer, None);
    }
    let (client, connection) = client;
    if let Some(connection) = connection {
        // A tunnel sends no requests, so it needs rules of its own for when it is idle.
        connection.progress().set_tunnel();
        let upstream = upgrade::on(&mut answer);
        // The tunnel outlives this request: both upgrades complete only after the answer is sent.
        tokio::spawn(async move {
            tokio::select! {
                () = copy_both_ways(client, upstream) => {}
                () = connection.wait_for_order(ConnectionOrder::Close) => {}
            }
        });
    }
    let mut answer = context.deliver(answer.map(|_| body::full_body("")), None);
    // `deliver` removes the headers that belong to one connection, and a WebSocket needs them.
    ask_for_websocket(answer.headers_mut());
    answer
}

/// Sets the headers that belong to one connection: we are the other end of both connections.
fn ask_for_websocket(headers: &mut HeaderMap) {
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static(WEBSOCKET));
}

/// Passes bytes both ways until both sides have ended.
async fn copy_both_ways(client: OnUpgrade, upstream: OnUpgrade) {
    let (Ok(client), Ok(upstream)) = tokio::join!(client, upstream) else {
        return;
    };
    let (mut client, mut upstream) = (TokioIo::new(client), TokioIo::new(upstream));
    // Whichever end breaks off, the other one is closed with it.
    tokio::io::copy_bidirectional(&mut client, &mut upstream)
        .await
        .ok();
}
