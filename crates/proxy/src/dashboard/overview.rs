//! Sessions with their savings, the store and the operator's checks, in figures.

use std::collections::HashSet;

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};
use trimtab_store::{OutputMetadata, SessionInfo};

use super::api::{ApiProblem, ApiRequest, json as to_json};

/// How many sessions of the store are listed.
const MOST_SESSIONS: usize = 300;
/// The sessions in which the largest outputs are looked for: those with most bytes.
const SESSIONS_SEARCHED: usize = 20;
/// How many of the largest outputs are listed.
const MOST_OUTPUTS: usize = 40;

/// `GET sessions`: the sessions of this run, and figures of the proxy.
pub(super) fn sessions(request: &ApiRequest) -> Result<Bytes, ApiProblem> {
    to_json(&json!({
        "sessions": request.shared.history.sessions(),
        "overview": overview(request),
    }))
}

/// `GET older`: sessions of the store that were not used since the start.
pub(super) fn older(request: &ApiRequest) -> Result<Bytes, ApiProblem> {
    let known = request.shared.history.sessions();
    let known: HashSet<&str> = known.iter().map(|entry| entry.id.as_str()).collect();
    let mut stored = stored_sessions(request)?;
    stored.retain(|info| !known.contains(info.session.as_str()));
    stored.sort_by_key(|info| std::cmp::Reverse(info.used));
    let older = stored.iter().take(MOST_SESSIONS).map(session_json);
    to_json(&json!({"sessions": older.collect::<Vec<Value>>()}))
}

/// Figures of the proxy.
fn overview(request: &ApiRequest) -> Value {
    let config = &request.settings.config;
    let (savings, compared) = request.shared.history.savings();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "preset": config.preset,
        "mode": config.mode,
        "holdout": config.holdout,
        "report": request.shared.report(),
        "savings": savings,
        "compared": compared,
    })
}

fn stored_sessions(request: &ApiRequest) -> Result<Vec<SessionInfo>, ApiProblem> {
    let opened = request.shared.store_state.readable().ok_or_else(no_store)?;
    let mut sessions = opened.store.sessions()?;
    // The proxy keeps what it learned in sessions of its own, which hold no conversation.
    sessions.retain(|info| info.outputs > 0 || info.session.as_str().starts_with("proxy/"));
    Ok(sessions)
}

fn no_store() -> ApiProblem {
    let why = "the store cannot be used now\nhint: the page Doctor says why";
    ApiProblem::new(StatusCode::SERVICE_UNAVAILABLE, why)
}

fn session_json(info: &SessionInfo) -> Value {
    json!({
        "id": info.session.as_str(),
        "created_ms": info.created,
        "last_ms": info.used,
        "outputs": info.outputs,
        "bytes": info.byte_size,
    })
}

/// `GET store`: how much there is, and what takes most of it.
pub(super) fn store(request: &ApiRequest) -> Result<Bytes, ApiProblem> {
    let opened = request.shared.store_state.readable().ok_or_else(no_store)?;
    let mut sessions = stored_sessions(request)?;
    sessions.sort_by_key(|info| std::cmp::Reverse(info.byte_size));
    let mut outputs: Vec<OutputMetadata> = Vec::new();
    for info in sessions.iter().take(SESSIONS_SEARCHED) {
        outputs.extend(opened.store.list(&info.session).unwrap_or_default());
    }
    outputs.sort_by_key(|output| std::cmp::Reverse(output.byte_size));
    let largest: Vec<Value> = outputs.iter().take(MOST_OUTPUTS).map(output_json).collect();
    let retention = request.settings.config.retention;
    to_json(&json!({
        "problem": request.shared.store_state.problem(),
        "errors": request.shared.store_state.failures(),
        "sessions": sessions.len(),
        "outputs": sessions.iter().map(|info| info.outputs).sum::<u64>(),
        "bytes": sessions.iter().map(|info| info.byte_size).sum::<u64>(),
        "largest_sessions": sessions.iter().take(MOST_OUTPUTS).map(session_json).collect::<Vec<Value>>(),
        "largest_outputs": largest,
        "max_age_seconds": retention.max_age().map(|age| age.as_secs()),
        "max_bytes": retention.max_bytes(),
    }))
}

fn output_json(output: &OutputMetadata) -> Value {
    json!({
        "ref": output.reference.id(),
        "session": output.session.as_str(),
        "tool": output.labels.tool,
        "bytes": output.byte_size,
        "stored": output.stored_size,
        "lines": output.line_count,
        "created_ms": output.created,
    })
}

/// `GET doctor`: what the operator's checks say.
pub(super) fn doctor(request: &ApiRequest) -> Result<Bytes, ApiProblem> {
    let report = request.shared.report();
    let checks = request.shared.checked();
    to_json(&json!({"checks": checks, "store": report.store, "report": report}))
}
