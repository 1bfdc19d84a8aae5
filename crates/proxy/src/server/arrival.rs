//! A request as it comes from its connection, until it is known who sent it. `dispatch` calls
//! `accept` and `authenticate`; the result is a `RequestContext` with the body, or the answer
//! that refuses the request.

use std::sync::Arc;

use http::request::Parts;
use http::{Request, Response};
use hyper::body::{Body as _, Incoming};
use trimtab_wire::scan::detect;

use crate::access::{AccessCheck, AccessRefusal, InboundConnection, UnknownTenant, request_id};
use crate::records::record::PendingRecord;
use crate::request::context::RequestContext;
use crate::request::shared::{LiveSettings, SharedState};
use crate::resources::memory_budget::Reservation;
use crate::routing::spoken_dialects::SpokenDialects;
use crate::server::websocket;
use crate::transport::body::ProxyBody;
use crate::transport::client_body::ClientBody;
use crate::transport::connections::{Connection, OpenRequest};
use crate::transport::headers;

/// Approximate bytes of the connection buffers that a request in progress uses.
const STREAM_BUFFERS: usize = 64 << 10;

/// A request whose sender is not yet known.
pub(crate) struct ArrivedRequest {
    shared: Arc<SharedState>,
    settings: Arc<LiveSettings>,
    parts: Parts,
    incoming: Incoming,
    connection: Option<Arc<Connection>>,
    inbound: Arc<InboundConnection>,
    note: PendingRecord,
    open: Option<(OpenRequest, Reservation)>,
}

/// A request that passed access control.
pub(crate) struct AdmittedRequest {
    pub(crate) context: RequestContext,
    /// Its body.
    pub(crate) body: ProxyBody,
    /// The client's end of the tunnel, if it asks for a WebSocket.
    pub(crate) websocket: Option<websocket::TunnelClient>,
}

impl ArrivedRequest {
    /// Takes a request from its connection and opens its record, which is always written.
    pub(crate) fn accept(shared: Arc<SharedState>, request: Request<Incoming>) -> Self {
        let (mut parts, incoming) = request.into_parts();
        let connection = parts.extensions.remove::<Arc<Connection>>();
        let open = connection.as_ref().map(|connection| {
            // These buffers exist whether or not there is memory left, so they are counted and
            // never refused. No tenant is charged, because nobody is authenticated yet.
            let buffers = shared.memory.always_reserve(None, STREAM_BUFFERS);
            (connection.begin_request(parts.version), buffers)
        });
        let inbound = parts.extensions.remove::<Arc<InboundConnection>>();
        let inbound = inbound.unwrap_or_default();
        // The record is opened before any check, so a request that is refused has a line in the log
        // too.
        let mut note = shared.new_record(&parts.method, path_of(&parts));
        note.record.peer = inbound.peer.to_string();
        note.record.request_id = request_id::for_request(&parts.headers);
        note.record.client = headers::client_name(&parts.headers);
        note.record.trace_parent = headers::trace_parent(&parts.headers);
        Self {
            settings: shared.settings.get(),
            shared,
            parts,
            incoming,
            connection,
            inbound,
            note,
            open,
        }
    }

    /// Runs access control. Returns the admitted request, or the answer that refuses it.
    pub(crate) fn authenticate(mut self) -> Result<AdmittedRequest, Box<Response<ProxyBody>>> {
        // Taken out before the checks, because hyper keeps the connection of an upgrade among the
        // extensions, and these are dropped with `parts`.
        let websocket = websocket::requested_upgrade(&mut self.parts);
        let websocket = websocket.map(|client| (client, self.connection.clone()));
        let opened = self.shared.store_state.readable();
        let check = AccessCheck {
            state: &self.shared.access,
            config: &self.settings.config,
            tokens: &self.settings.tokens,
            keys: opened.as_ref().map(|opened| &opened.keys),
            connection: &self.inbound,
        };
        // A body without a length is charged to its quota later, when it has been counted.
        let bytes = self.incoming.size_hint().exact();
        let (tenant, refusal) = match check.admit(&mut self.parts, bytes) {
            Ok(caller) => {
                self.note.counted = caller.counted;
                let record = &mut self.note.record;
                let token = caller.token.map(|token| token.name.to_string());
                record.token = token.unwrap_or_default();
                if let Ok(tenant) = &caller.tenant {
                    tenant.as_str().clone_into(&mut record.tenant);
                }
                // A wrong value is the caller's mistake. Without an answer that says so, the
                // request would be sent in a way that its sender did not want.
                let policies = || self.settings.policy_names();
                let wrong = headers::wrong_value(&self.parts.headers, policies);
                (caller.tenant, wrong.map(AccessRefusal::header))
            }
            Err(refusal) => (Err(UnknownTenant::default()), Some(refusal)),
        };
        // A refused request gets its context as well: it writes the record and the headers of the
        // answer. Its body is never read.
        let wait = self.settings.config.limits.body_idle_time();
        let bytes = Arc::clone(&self.note.body_bytes);
        let (body, body_fault) = ClientBody::wrap(self.incoming, wait, bytes, self.connection);
        let context = RequestContext {
            path: path_of(&self.parts).to_owned(),
            shared: self.shared,
            settings: self.settings,
            method: self.parts.method,
            headers: self.parts.headers,
            tenant,
            pending_record: self.note,
            body_fault,
            open: self.open,
            usage: None,
            tap: None,
            continued: None,
            unmanaged_body: None,
        };
        let Some(refusal) = refusal else {
            return Ok(AdmittedRequest {
                context,
                body,
                websocket,
            });
        };
        // The error has the form of the client's dialect, so that the client shows our message
        // instead of a parse error.
        let by_client = || SpokenDialects::by_client(&context.headers).first();
        let dialect = detect(b"", &context.path).unwrap_or_else(by_client);
        Err(Box::new(context.deny(&refusal, dialect)))
    }
}

/// Path and query.
fn path_of(parts: &Parts) -> &str {
    parts.uri.path_and_query().map_or("", |path| path.as_str())
}
