//! The endpoints that the proxy answers itself. `server::dispatch` calls `answer` for their paths.

mod compress;
mod compress_rows;
mod metrics;
mod retrieve;

use std::sync::atomic::Ordering;

use http::{Method, Response, StatusCode};
use serde_json::json;

use crate::dashboard;
use crate::request::context::RequestContext;
use crate::routing::own_endpoint::{COMPRESS, METRICS, OwnEndpoint, READY, RETRIEVE, STATUS};
use crate::transport::body::{ProxyBody, ReceivedBody, receive};

/// The error if there is no memory for a body.
const NO_MEMORY: &str = "there is no memory for the body now\n\
    hint: try again, or raise limits.memory_bytes";
/// The error if an endpoint needs the store.
const NO_STORE: &str = "the store cannot be used now\nhint: /trimtab/status says why";

/// Answers a request to one of our endpoints.
pub(crate) async fn answer(context: RequestContext, body: ProxyBody) -> Response<ProxyBody> {
    let path = context
        .path
        .split('?')
        .next()
        .unwrap_or_default()
        .to_owned();
    let limit = context.settings.config.limits.body_bytes;
    if OwnEndpoint::of_path(&path) == Some(OwnEndpoint::Dashboard) {
        return dashboard::answer(context).await;
    }
    // These two read a body; all others ignore it.
    if path == COMPRESS {
        return match body_of(&context, &[Method::POST], body, limit).await {
            Ok(body) => compress::answer(context, body).await,
            Err((status, why)) => context.refuse(status, why),
        };
    }
    if let Some(id) = path.strip_prefix(RETRIEVE) {
        let (id, limit) = (id.to_owned(), limit.min(retrieve::LONGEST_BODY));
        return match body_of(
            &context,
            &[Method::GET, Method::HEAD, Method::POST],
            body,
            limit,
        )
        .await
        {
            Ok(body) => retrieve::answer(context, id, body).await,
            Err((status, why)) => context.refuse(status, why),
        };
    }
    if context.method != Method::GET && context.method != Method::HEAD {
        return context.refuse(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered here");
    }
    match path.as_str() {
        METRICS => metrics::answer(context).await,
        READY => ready(context),
        STATUS => {
            let report = json!(context.shared.report());
            context.reply(StatusCode::OK, &report)
        }
        _ => context.reply(StatusCode::OK, &json!({"status": "ok"})),
    }
}

/// Whether requests should be sent here. Without a store they still pass, so that is no reason to
/// send them elsewhere.
fn ready(context: RequestContext) -> Response<ProxyBody> {
    let is_managing = context.shared.store_state.usable().is_some();
    let (status, word) = if context.shared.is_stopping.load(Ordering::Relaxed) {
        (StatusCode::SERVICE_UNAVAILABLE, "stopping")
    } else {
        (StatusCode::OK, "ok")
    };
    context.reply(status, &json!({"status": word, "managing": is_managing}))
}

/// The body of a request with one of these methods.
async fn body_of(
    context: &RequestContext,
    methods: &[Method],
    body: ProxyBody,
    limit: usize,
) -> Result<bytes::Bytes, (StatusCode, &'static str)> {
    if !methods.contains(&context.method) {
        let why = if methods.contains(&Method::GET) {
            "only GET and POST are answered here"
        } else {
            "only POST is answered here"
        };
        return Err((StatusCode::METHOD_NOT_ALLOWED, why));
    }
    match receive(body, limit, (Some(context.reservation()), 0), |_| ()).await {
        ReceivedBody::Whole(body) => Ok(body),
        ReceivedBody::TooLong(..) => Err((StatusCode::PAYLOAD_TOO_LARGE, "the body is too long")),
        ReceivedBody::NoMemory(..) => Err((StatusCode::SERVICE_UNAVAILABLE, NO_MEMORY)),
        ReceivedBody::Broken(..) => Err((StatusCode::BAD_REQUEST, "the body was cut off")),
    }
}
