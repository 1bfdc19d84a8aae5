//! The way of a request: refused, answered by us, passed on, or managed.

use std::convert::Infallible;
use std::sync::Arc;

use http::{Method, Request, Response, StatusCode};
use hyper::body::{Body as _, Incoming};
use trimtab_model::Dialect;
use trimtab_wire::scan::detect;

use crate::access::{
    AccessCheck, InboundConnection, RequestCaller, Tenant, UnknownTenant, request_id,
};
use crate::config::Mode;
use crate::conversation::store_state::OpenedStore;
use crate::endpoints;
use crate::prefix_cache::prefix_hash::Hashed;
use crate::records::record::Note;
use crate::request::bypass_reason;
use crate::request::context::Asked;
use crate::request::plan_memory::BYTES_PER_BYTE;
use crate::request::shared::Shared;
use crate::routing::own_endpoint::OwnEndpoint;
use crate::routing::spoken_dialects::Spoken;
use crate::server::manage::manage;
use crate::server::websocket;
use crate::transport::body::{Body, Received, receive, rejoined};
use crate::transport::client_body::ClientBody;
use crate::transport::connections::Connection;
use crate::transport::counted_body::counted;
use crate::transport::headers;

/// Bytes that a request takes in buffers of its connections while it is under way, about.
const STREAM_BUFFERS: usize = 64 << 10;
/// Answers a request, whose connection is among its extensions.
pub(crate) async fn handle(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let (mut parts, incoming) = request.into_parts();
    let connection = parts.extensions.remove::<Arc<Connection>>();
    let open = connection.as_ref().map(|connection| {
        let buffers = shared.memory.always_reserve(None, STREAM_BUFFERS);
        (connection.begin_request(parts.version), buffers)
    });
    let websocket = websocket::asked_for(&mut parts);
    let settings = shared.settings.get();
    let path = parts.uri.path_and_query().map_or("", |path| path.as_str());
    let path = path.to_owned();
    let mut note = shared.note(&parts.method, &path);
    let inbound = parts.extensions.remove::<Arc<InboundConnection>>();
    let inbound = inbound.unwrap_or_default();
    note.record.peer = inbound.peer.to_string();
    note.record.request_id = request_id::of(&parts.headers);
    let opened = shared.store_state.readable();
    let check = AccessCheck {
        state: &shared.access,
        config: &settings.config,
        tokens: &settings.tokens,
        keys: opened.as_ref().map(|opened| &opened.keys),
        connection: &inbound,
    };
    let admitted = check.admit(&mut parts, incoming.size_hint().exact()).await;
    let (tenant, refusal) = match admitted {
        Ok(caller) => (note_caller(&mut note, caller), None),
        Err(refusal) => (Err(UnknownTenant::default()), Some(refusal)),
    };
    let wait = settings.config.limits.body_idle_time();
    let (body, body_fault) = ClientBody::watched(incoming, wait, connection.clone());
    let body = counted(body, Arc::clone(&note.body_bytes));
    let is_own = OwnEndpoint::of_path(parts.uri.path()).is_some();
    let asked = Asked {
        shared,
        settings,
        method: parts.method,
        path,
        headers: parts.headers,
        tenant,
        note,
        body_fault,
        open,
        planning: None,
        usage: None,
        tap: None,
    };
    Ok(match refusal {
        Some(refusal) => {
            let by_path = detect(b"", &asked.path);
            let by_client = || Spoken::by_client(&asked.headers).first();
            let dialect = by_path.unwrap_or_else(by_client);
            asked.deny(&refusal, dialect)
        }
        None if is_own => endpoints::answer(asked, body).await,
        None if !asked.path.starts_with('/') => {
            asked.refuse(StatusCode::BAD_REQUEST, "the request names no path")
        }
        None => match websocket {
            Some(client) => websocket::answer(asked, (client, connection)).await,
            None => Box::pin(forward(asked, body)).await,
        },
    })
}

/// Writes down who sent a request, and gives whose it is.
fn note_caller(note: &mut Note, caller: RequestCaller) -> Result<Tenant, UnknownTenant> {
    note.counted = caller.counted;
    if let Some(token) = &caller.token {
        token.name.as_ref().clone_into(&mut note.record.token);
    }
    if let Ok(tenant) = &caller.tenant {
        tenant.as_str().clone_into(&mut note.record.tenant);
    }
    caller.tenant
}

/// Sends a request on, managed or as it came.
async fn forward(mut asked: Asked, body: Body) -> Response<Body> {
    let by_path = detect(b"", &asked.path).filter(|_| asked.method == Method::POST);
    let by_client = || Spoken::by_client(&asked.headers);
    let spoken = by_path.map_or_else(by_client, Spoken::from);
    let bypass = headers::mode(&asked.headers) == Some(Mode::Bypass);
    let reason = match by_path {
        None => "endpoint",
        Some(_) if bypass_reason::is_count(&asked.path) => "count",
        Some(_) if bypass => "bypass",
        Some(dialect) => match asked.shared.store_state.usable() {
            Some(opened) => return Box::pin(look_into(asked, opened, dialect, body)).await,
            None => "store",
        },
    };
    asked.note.because(reason);
    asked.pass(spoken, None, body).await
}

/// Reads the body of a request that may be managed.
async fn look_into(
    mut asked: Asked,
    opened: Arc<OpenedStore>,
    dialect: Dialect,
    body: Body,
) -> Response<Body> {
    let limit = asked.settings.config.limits.body_bytes;
    // It is hashed while it comes.
    let mut hashed = Hashed::new(opened.keys.prints());
    let seen = |piece: &[u8]| hashed.add(piece);
    let memory = (Some(asked.reservation()), BYTES_PER_BYTE);
    let (reason, read, rest) = match receive(body, limit, memory, seen).await {
        Received::Whole(bytes, memory) => {
            asked.planning = memory;
            return Box::pin(manage(asked, opened, dialect, (bytes, hashed))).await;
        }
        Received::Broken(..) => return asked.broken_body(),
        Received::TooLong(read, rest) => ("body-too-long", read, rest),
        Received::NoMemory(read, rest) => ("memory", read, rest),
    };
    asked.note.because(reason);
    asked.pass(dialect, None, rejoined(read, rest)).await
}
