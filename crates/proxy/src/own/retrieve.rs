//! `GET|POST /v1/retrieve/{ref}`: a stored output, whole or searched, for its tenant only.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use trimtab::retrieval::Retrieval;
use trimtab_engine::view::tools;
use trimtab_store::{Form, SessionId, Store};

use super::NO_STORE;
use crate::asked::Asked;
use crate::body::Body;
use crate::headers;

/// How many sessions of a tenant are looked through where the request names none.
const SESSIONS: usize = 256;
/// The longest output that is given in one answer.
const LONGEST: u64 = 64 << 20;

#[derive(Default, Deserialize)]
struct Wanted {
    #[serde(default)]
    query: Option<String>,
}

pub(super) async fn answer(asked: Asked, id: String, body: Bytes) -> Response<Body> {
    let wanted: Wanted = serde_json::from_slice(&body).unwrap_or_default();
    let query = wanted.query.or_else(|| in_path(&asked.path));
    let Some(opened) = asked.shared.store_state.readable() else {
        return asked.refuse(StatusCode::SERVICE_UNAVAILABLE, NO_STORE);
    };
    let tenant = opened.keys.tenant(&asked.headers);
    let prefix = format!("proxy/{}/", tenant.as_str());
    let named = headers::text(&asked.headers, &headers::SESSION).map(str::to_owned);
    let store = Arc::clone(&opened.store);
    let found = spawn_blocking(move || {
        let session = owner(store.as_ref(), &prefix, named, &id)?;
        given(store.as_ref(), session, &id, query)
    });
    match found.await.ok().flatten() {
        Some(found) => asked.reply(StatusCode::OK, &found),
        // Unknown, malformed and foreign refs are all the same.
        None => asked.refuse(StatusCode::NOT_FOUND, "ref not found"),
    }
}

/// The query of a path, if it asks for something.
fn in_path(path: &str) -> Option<String> {
    let (_, query) = path.split_once('?')?;
    let mut fields = query.split('&').filter_map(|field| field.split_once('='));
    let (_, value) = fields.find(|(name, _)| *name == "query")?;
    Some(decoded(value))
}

/// Text of a query: `+` and `%` undone.
fn decoded(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits: Vec<u8> = rest.by_ref().take(2).collect();
                let digits = String::from_utf8_lossy(&digits).into_owned();
                bytes.push(u8::from_str_radix(&digits, 16).unwrap_or(b'?'));
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The session of the tenant that may redeem the ref.
fn owner(store: &dyn Store, prefix: &str, named: Option<String>, id: &str) -> Option<SessionId> {
    let redeems = |session: &SessionId| store.metadata(session, id).is_ok();
    if let Some(named) = named {
        let named = SessionId::new(named).ok()?;
        let ours = named.as_str().starts_with(prefix);
        return (ours && redeems(&named)).then_some(named);
    }
    let mut sessions = store.sessions().ok()?;
    sessions.retain(|info| info.session.as_str().starts_with(prefix));
    sessions.sort_by_key(|info| std::cmp::Reverse(info.used));
    let mut newest = sessions.into_iter().take(SESSIONS).map(|info| info.session);
    newest.find(redeems)
}

fn given(store: &dyn Store, session: SessionId, id: &str, query: Option<String>) -> Option<Value> {
    let metadata = store.metadata(&session, id).ok()?;
    if let Some(query) = query {
        let arguments = json!({"ref_id": id, "pattern": query}).to_string();
        let found = Retrieval::new(store, session).call(tools::GREP, &arguments);
        return Some(json!({"hash": id, "query": query, "results": [found.text]}));
    }
    if metadata.byte_size > LONGEST {
        return None;
    }
    let bytes = store.open(&session, id, Form::Text).ok()?.bytes().ok()?;
    Some(json!({
        "hash": id,
        "original_content": String::from_utf8_lossy(&bytes),
        "tool_name": metadata.labels.tool,
        "lines": metadata.line_count,
        "bytes": metadata.byte_size,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_read_from_paths() {
        assert_eq!(
            in_path("/v1/retrieve/x?a=b&query=two+words%21").unwrap(),
            "two words!"
        );
        assert_eq!(in_path("/v1/retrieve/x"), None);
    }
}
