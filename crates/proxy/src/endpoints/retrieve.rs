//! `GET|POST /v1/retrieve/{ref}`: a stored output, whole or searched, for its tenant only.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::task::spawn_blocking;
use trimtab::retrieval::Retrieval;
use trimtab_engine::view::tools;
use trimtab_model::Dialect;
use trimtab_store::{OutputForm, SessionId, Store};

use super::compress_rows::ref_of_hash;
use super::{NO_MEMORY, NO_STORE};
use crate::access::{SESSIONS, Tenant, TenantKeys};
use crate::conversation::client_session_id;
use crate::conversation::client_sessions;
use crate::request::context::RequestContext;
use crate::resources::memory_budget::Reservation;
use crate::routing::query;
use crate::transport::body::ProxyBody;
use crate::transport::headers;

/// The error for a ref that is unknown, malformed or of another tenant.
const NOT_FOUND: &str = "ref not found";
/// The form of an answer that has the bytes as they were stored.
const AS_STORED: &str = "stored";
const UNKNOWN_FORM: &str = "`form` has an unknown value\nhint: use form=stored, or leave it out";
const NOT_A_QUERY: &str =
    "the body is no search\nhint: send {\"query\": \"...\"}, or no body for the whole output";
/// The largest output in one answer, in bytes.
const LONGEST: usize = 64 << 20;
/// The longest body of a request in bytes. It holds a pattern, and is parsed at once.
pub(super) const LONGEST_BODY: usize = 64 << 10;
/// Bytes of memory that are needed per byte of an output: for the output, and for a growing buffer
/// with its JSON.
const BYTES_PER_BYTE: usize = 4;

#[derive(Default, Deserialize)]
struct RetrieveQuery {
    #[serde(default)]
    query: Option<String>,
}

/// What was found under a ref.
enum FoundOutput {
    /// The reply, with its content type.
    Reply(&'static str, Bytes),
    /// There is no memory for it now.
    NoMemory,
}

/// A whole output.
#[derive(Serialize)]
struct WholeOutput<'a> {
    hash: &'a str,
    original_content: &'a str,
    tool_name: &'a str,
    lines: u64,
    bytes: u64,
}

pub(super) async fn answer(
    mut context: RequestContext,
    id: String,
    body: Bytes,
) -> Response<ProxyBody> {
    // Gateways name outputs by hexadecimal digits.
    let id = ref_of_hash(&id).unwrap_or(id);
    // Without a body there is nothing to search for. A wrong body is not ignored: the answer would
    // be a whole output instead of some lines.
    let body = Some(body).filter(|body| !body.trim_ascii().is_empty());
    let wanted = body.map(|body| serde_json::from_slice::<RetrieveQuery>(&body));
    let Ok(wanted) = wanted.transpose() else {
        return context.refuse(StatusCode::BAD_REQUEST, NOT_A_QUERY);
    };
    let wanted = wanted.unwrap_or_default();
    let query = wanted
        .query
        .or_else(|| query::field(&context.path, "query"));
    let form = query::field(&context.path, "form");
    if form.as_deref().is_some_and(|form| form != AS_STORED) {
        return context.refuse(StatusCode::BAD_REQUEST, UNKNOWN_FORM);
    }
    let as_stored = form.is_some();
    let Some(opened) = context.shared.store_state.readable() else {
        return context.refuse(StatusCode::SERVICE_UNAVAILABLE, NO_STORE);
    };
    let Ok(tenant) = context.tenant.clone() else {
        return context.refuse(StatusCode::NOT_FOUND, NOT_FOUND);
    };
    let wanted = RetrieveScope::new(&context, &opened.keys, &tenant);
    let (store, memory) = (Arc::clone(&opened.store), context.reservation());
    // The reply is written there too, because an output can be long.
    let found = spawn_blocking(move || {
        let session = wanted.owner(store.as_ref(), &id)?;
        match query {
            Some(query) => search(store.as_ref(), session, &id, &query),
            None => whole_output(store.as_ref(), &session, &id, as_stored, memory),
        }
    });
    match found.await.ok().flatten() {
        Some(FoundOutput::Reply(kind, reply)) => {
            context.pending_record.record.retrievals += 1;
            context.reply_text(kind, reply)
        }
        Some(FoundOutput::NoMemory) => context.refuse(StatusCode::SERVICE_UNAVAILABLE, NO_MEMORY),
        // Unknown, malformed and foreign refs are all the same.
        None => context.refuse(StatusCode::NOT_FOUND, NOT_FOUND),
    }
}

/// The sessions of a tenant in which a ref is searched.
struct RetrieveScope {
    /// The prefix of all sessions of the tenant.
    prefix: String,
    /// The session in our own header, which may be the full name from an answer.
    named: Option<String>,
    /// The client sessions that the client's name may mean, one per dialect.
    client_sessions: Vec<String>,
}

impl RetrieveScope {
    fn new(context: &RequestContext, keys: &TenantKeys, tenant: &Tenant) -> Self {
        let hint = client_session_id::in_headers(&context.headers);
        let name = hint.map(|hint| hint.session_name(keys, tenant));
        let client_sessions = name.iter().flat_map(|name| {
            Dialect::ALL
                .into_iter()
                .map(|dialect| client_sessions::name(tenant, dialect, name))
        });
        Self {
            prefix: format!("{SESSIONS}{}/", tenant.as_str()),
            named: headers::header_text(&context.headers, &headers::SESSION).map(str::to_owned),
            client_sessions: client_sessions.collect(),
        }
    }

    /// The newest session that may read the ref.
    fn owner(&self, store: &dyn Store, id: &str) -> Option<SessionId> {
        let sessions = store.sessions_with_ref(&self.prefix, id).ok()?;
        let mut sessions = sessions.into_iter();
        sessions.find(|session| self.includes(session.as_str()))
    }

    /// True if the request asks for this session of its tenant.
    fn includes(&self, session: &str) -> bool {
        let Some(named) = &self.named else {
            return true;
        };
        let mut client_sessions = self.client_sessions.iter();
        session == named
            || client_sessions
                .any(|client_session| client_sessions::is_branch(session, client_session))
    }
}

/// The lines of an output that match a pattern.
fn search(store: &dyn Store, session: SessionId, id: &str, query: &str) -> Option<FoundOutput> {
    store.metadata(&session, id).ok()?;
    let arguments = json!({"ref_id": id, "pattern": query}).to_string();
    let found = Retrieval::new(store, session).call(tools::GREP, &arguments);
    let reply = json!({"hash": id, "query": query, "results": [found.text]});
    Some(FoundOutput::Reply(
        "application/json",
        Bytes::from(reply.to_string()),
    ))
}

/// An output as text in JSON, or its bytes as they were stored: images too, and the JSON of removed
/// messages.
fn whole_output(
    store: &dyn Store,
    session: &SessionId,
    id: &str,
    as_stored: bool,
    mut memory: Reservation,
) -> Option<FoundOutput> {
    let metadata = store.metadata(session, id).ok()?;
    let size = usize::try_from(metadata.byte_size).ok();
    // The answer is completely in memory. Longer outputs can still be searched.
    let size = size.filter(|size| *size <= LONGEST)?;
    let (form, needed) = if as_stored {
        (OutputForm::Whole, size)
    } else {
        (OutputForm::Text, size * BYTES_PER_BYTE)
    };
    if !memory.grow(needed) {
        return Some(FoundOutput::NoMemory);
    }
    let stored = store.open(session, id, form).ok()?;
    let bytes = stored.bytes().ok()?;
    if as_stored {
        memory.set(bytes.capacity());
        // A browser must never show what a tool printed as a page.
        let kind = "application/octet-stream";
        return Some(FoundOutput::Reply(kind, memory.attach(bytes)));
    }
    let reply = serde_json::to_vec(&WholeOutput {
        hash: id,
        original_content: &String::from_utf8_lossy(&bytes),
        tool_name: &metadata.labels.tool,
        lines: stored.shown_lines().ok()?,
        bytes: metadata.byte_size,
    });
    let reply = reply.ok()?;
    // The reply is counted until the client has read it.
    memory.set(reply.capacity());
    Some(FoundOutput::Reply("application/json", memory.attach(reply)))
}
