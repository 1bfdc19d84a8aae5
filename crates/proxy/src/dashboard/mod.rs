//! The dashboard: pages, and their data as JSON. It only shows; nothing here changes a session.
//!
//! Everything here is for the operator (`access` checks that) and runs off the threads that serve
//! requests. The pages are plain files in `assets`, and load nothing from elsewhere.

mod api;
mod assets;
mod film_data;
mod message_data;
mod overview;
mod session_access;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ETAG, IF_NONE_MATCH};
use http::{HeaderName, HeaderValue, Method, Response, StatusCode};
use serde_json::json;

use crate::dashboard::api::{ApiProblem, ApiRequest};
use crate::request::context::RequestContext;
use crate::resources::deadline;
use crate::routing::own_endpoint::DASHBOARD;
use crate::transport::body::ProxyBody;

/// What browsers are told about every answer: to run and load nothing that is not from here, and
/// to keep nothing.
const PAGE_HEADERS: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// Answers a request to the dashboard.
pub(crate) async fn answer(context: RequestContext) -> Response<ProxyBody> {
    let path = context.path.split('?').next().unwrap_or_default();
    let place = path.strip_prefix(DASHBOARD).unwrap_or_default().to_owned();
    let mut answer = if !matches!(context.method, Method::GET | Method::HEAD) {
        context.refuse(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered here")
    } else if let Some(name) = place.strip_prefix("/api/") {
        data(context, name).await
    } else {
        match assets::find(&place) {
            Some((kind, text)) => context.reply_text(kind, text),
            None => context.refuse(StatusCode::NOT_FOUND, "there is no such page"),
        }
    };
    for (name, value) in PAGE_HEADERS {
        let name = HeaderName::from_static(name);
        answer
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// Answers a request for data. A page that has the same data already gets only the status 304.
async fn data(context: RequestContext, name: &str) -> Response<ProxyBody> {
    let Some(handler) = api::handler(name) else {
        return context.refuse(StatusCode::NOT_FOUND, "there is no such data");
    };
    let known = context.headers.get(IF_NONE_MATCH).cloned();
    let request = ApiRequest::new(&context);
    let work =
        move || handler(&request).map_err(|ApiProblem { status, message }| (status, message));
    let turns = Arc::clone(&context.shared.screen_turns);
    match deadline::run_in_turn(&turns, api::TIME, work).await {
        Ok(Ok(json)) => {
            let tag = entity_tag(&json);
            let is_known = tag.is_some() && tag == known;
            let body = if is_known { Bytes::new() } else { json };
            let mut answer = context.reply_text("application/json", body);
            if is_known {
                *answer.status_mut() = StatusCode::NOT_MODIFIED;
            }
            answer.headers_mut().extend(tag.map(|tag| (ETAG, tag)));
            answer
        }
        Ok(Err((status, message))) => context.refuse(status, &message),
        Err(why) => {
            let text = json!({"error": {"message": format!("that took too long or failed: {}", why.reason())}});
            context.reply(StatusCode::SERVICE_UNAVAILABLE, &text)
        }
    }
}

/// The tag that tells data from other data.
fn entity_tag(json: &Bytes) -> Option<HeaderValue> {
    let mut hasher = DefaultHasher::new();
    json.hash(&mut hasher);
    HeaderValue::try_from(format!("\"{:016x}\"", hasher.finish())).ok()
}
