//! The dashboard: pages, their data as JSON, and a live feed.
//!
//! Everything here is for the operator (`access` checks that) and runs off the threads that serve
//! requests. The pages are plain files in `assets`, and load nothing from elsewhere.

mod actions;
mod api;
mod assets;
mod film_data;
mod live_feed;
mod message_data;
mod overview;
mod replay_data;
mod scratch_store;
mod screen_version;
mod session_access;

use http::{HeaderName, HeaderValue, Method, Response, StatusCode};
use serde_json::json;

use crate::dashboard::api::{ApiProblem, ApiRequest, WorkKind};
use crate::request::context::RequestContext;
use crate::resources::deadline;
use crate::routing::own_endpoint::DASHBOARD;
use crate::transport::body::{CollectedBody, ProxyBody, collect};

/// The largest body of an order.
const LARGEST_ORDER: usize = 64 << 10;

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
pub(crate) async fn answer(context: RequestContext, body: ProxyBody) -> Response<ProxyBody> {
    let path = context.path.split('?').next().unwrap_or_default();
    let place = path.strip_prefix(DASHBOARD).unwrap_or_default().to_owned();
    let is_read = matches!(context.method, Method::GET | Method::HEAD);
    let mut answer = match place.strip_prefix("/api/") {
        Some("events") if is_read => live_feed::answer(context),
        Some(name) => data(context, name, body).await,
        None if !is_read => context.refuse(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered"),
        None => match assets::find(&place) {
            Some((kind, text)) => context.reply_text(kind, text),
            None => context.refuse(StatusCode::NOT_FOUND, "there is no such page"),
        },
    };
    for (name, value) in PAGE_HEADERS {
        let name = HeaderName::from_static(name);
        answer
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// Answers a request for data, or an order.
async fn data(context: RequestContext, name: &str, body: ProxyBody) -> Response<ProxyBody> {
    let Some((kind, handler)) = api::handler(&context.method, name) else {
        return context.refuse(StatusCode::NOT_FOUND, "there is no such data");
    };
    let CollectedBody::Whole(body) = collect(body, LARGEST_ORDER).await else {
        return context.refuse(StatusCode::PAYLOAD_TOO_LARGE, "the order is too long");
    };
    let request = ApiRequest::new(&context, body);
    let work =
        move || handler(&request).map_err(|ApiProblem { status, message }| (status, message));
    let screens = &context.shared.screens;
    let found = match kind {
        WorkKind::News => deadline::run_in_turn(&screens.news, api::TIME, work).await,
        WorkKind::Long => screens.long.run(&context.path, api::TIME, work).await,
        WorkKind::Order => deadline::run_within(api::TIME, work).await,
    };
    match found {
        Ok(Ok(json)) => context.reply_text("application/json", json),
        Ok(Err((status, message))) => context.refuse(status, &message),
        Err(why) => {
            let text = json!({"error": {"message": format!("that took too long or failed: {}", why.reason())}});
            context.reply(StatusCode::SERVICE_UNAVAILABLE, &text)
        }
    }
}
