//! `GET|POST /v1/retrieve/{ref}`: a stored output, whole or searched, for its tenant only.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use trimtab::retrieval::Retrieval;
use trimtab_engine::view::tools;
use trimtab_model::Dialect;
use trimtab_store::{OutputForm, SessionId, Store};

use super::NO_STORE;
use super::compress_rows::ref_of_hash;
use crate::access::{SESSIONS, Tenant, TenantKeys};
use crate::conversation::client_session_id;
use crate::conversation::client_sessions;
use crate::request::context::RequestContext;
use crate::routing::query;
use crate::transport::body::ProxyBody;
use crate::transport::headers;

/// The error for a ref that is unknown, malformed or of another tenant.
const NOT_FOUND: &str = "ref not found";
/// The largest output in one answer, in bytes.
const LONGEST: u64 = 64 << 20;

#[derive(Default, Deserialize)]
struct RetrieveQuery {
    #[serde(default)]
    query: Option<String>,
}

pub(super) async fn answer(
    mut context: RequestContext,
    id: String,
    body: Bytes,
) -> Response<ProxyBody> {
    // Gateways name outputs by hexadecimal digits.
    let id = ref_of_hash(&id).unwrap_or(id);
    let wanted: RetrieveQuery = serde_json::from_slice(&body).unwrap_or_default();
    let query = wanted
        .query
        .or_else(|| query::field(&context.path, "query"));
    let Some(opened) = context.shared.store_state.readable() else {
        return context.refuse(StatusCode::SERVICE_UNAVAILABLE, NO_STORE);
    };
    let Ok(tenant) = context.tenant.clone() else {
        return context.refuse(StatusCode::NOT_FOUND, NOT_FOUND);
    };
    let wanted = RetrieveScope::new(&context, &opened.keys, &tenant);
    let store = Arc::clone(&opened.store);
    let found = spawn_blocking(move || {
        let session = wanted.owner(store.as_ref(), &id)?;
        output_json(store.as_ref(), session, &id, query)
    });
    match found.await.ok().flatten() {
        Some(found) => {
            context.pending_record.record.retrievals += 1;
            context.reply(StatusCode::OK, &found)
        }
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

fn output_json(
    store: &dyn Store,
    session: SessionId,
    id: &str,
    query: Option<String>,
) -> Option<Value> {
    let metadata = store.metadata(&session, id).ok()?;
    if let Some(query) = query {
        let arguments = json!({"ref_id": id, "pattern": query}).to_string();
        let found = Retrieval::new(store, session).call(tools::GREP, &arguments);
        return Some(json!({"hash": id, "query": query, "results": [found.text]}));
    }
    // The answer is one JSON document in memory. Longer outputs can still be searched.
    if metadata.byte_size > LONGEST {
        return None;
    }
    let stored = store.open(&session, id, OutputForm::Text).ok()?;
    let bytes = stored.bytes().ok()?;
    Some(json!({
        "hash": id,
        "original_content": String::from_utf8_lossy(&bytes),
        "tool_name": metadata.labels.tool,
        "lines": stored.shown_lines().ok()?,
        "bytes": metadata.byte_size,
    }))
}
