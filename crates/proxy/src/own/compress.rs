//! `POST /v1/compress`: a conversation in, the window that we would send out, in the form that
//! gateways already call.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use trimtab_model::Dialect;
use trimtab_wire::scan::detect;

use crate::asked::Asked;
use crate::body::Body;
use crate::plan::{Decided, Managed, Pace, Work};

/// What is said about a body that is no conversation.
const NOT_UNDERSTOOD: &str =
    "the body is no conversation\nhint: send {\"messages\": [...], \"model\": \"...\"}";

pub(super) async fn answer(asked: Asked, body: Bytes) -> Response<Body> {
    let Some(dialect) = detect(&body, "") else {
        return asked.refuse(StatusCode::BAD_REQUEST, NOT_UNDERSTOOD);
    };
    let Ok(tenant) = asked.tenant.clone() else {
        return match unchanged(dialect, &body) {
            Some(found) => asked.reply(StatusCode::OK, &found),
            None => asked.refuse(StatusCode::BAD_REQUEST, NOT_UNDERSTOOD),
        };
    };
    let work = Work {
        shared: Arc::clone(&asked.shared),
        settings: Arc::clone(&asked.settings),
        dialect,
        path: asked.path.clone(),
        headers: asked.headers.clone(),
        tenant,
        body: body.clone(),
        hashed: None,
    };
    let decided = spawn_blocking(move || match work.decide(Pace::MayWait) {
        Decided::Manage(managed) => Some(compressed(&managed)),
        Decided::Pass { .. } | Decided::Later(_) => None,
    });
    let Ok(compressed) = decided.await else {
        return asked.refuse(StatusCode::INTERNAL_SERVER_ERROR, "planning failed");
    };
    match compressed.flatten().or_else(|| unchanged(dialect, &body)) {
        Some(found) => asked.reply(StatusCode::OK, &found),
        None => asked.refuse(StatusCode::BAD_REQUEST, NOT_UNDERSTOOD),
    }
}

/// The window, and what it saves.
fn compressed(managed: &Managed) -> Option<Value> {
    let outgoing = &managed.outgoing;
    let body = outgoing.body.as_ref().unwrap_or(&managed.work.body);
    let refs = managed.on_branch(|branch| Ok(branch.refs_shown()?)).ok()?;
    let (before, after) = (outgoing.tokens_before, outgoing.tokens);
    Some(json!({
        "messages": messages(managed.work.dialect, body)?,
        "tokens_before": before,
        "tokens_after": after,
        "tokens_saved": before.saturating_sub(after),
        "compression_ratio": ratio(before, after),
        "ccr_hashes": refs,
        "session": managed.session,
    }))
}

/// A conversation in which there is nothing to do.
fn unchanged(dialect: Dialect, body: &[u8]) -> Option<Value> {
    let tokens = body.len() as u64 / 4;
    Some(json!({
        "messages": messages(dialect, body)?,
        "tokens_before": tokens,
        "tokens_after": tokens,
        "tokens_saved": 0,
        "compression_ratio": 1.0,
        "ccr_hashes": [],
    }))
}

fn messages(dialect: Dialect, body: &[u8]) -> Option<Value> {
    let mut body: Value = serde_json::from_slice(body).ok()?;
    let name = if dialect == Dialect::Responses {
        "input"
    } else {
        "messages"
    };
    body.get_mut(name).map(Value::take)
}

fn ratio(before: u64, after: u64) -> f64 {
    if before == 0 {
        1.0
    } else {
        after as f64 / before as f64
    }
}
