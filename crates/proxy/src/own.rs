//! Endpoints of our own.

use http::{Method, Response, StatusCode};
use serde_json::json;

use crate::asked::Asked;
use crate::body::Body;

/// Says that we are here.
const HEALTH: [&str; 3] = ["/healthz", "/livez", "/readyz"];
/// What was done so far.
const STATUS: &str = "/trimtab/status";

/// True if `path` is answered by us.
pub(crate) fn is_own(path: &str) -> bool {
    HEALTH.contains(&path) || path == STATUS
}

/// Answers a request to one of our endpoints.
pub(crate) async fn answer(asked: Asked, _body: Body) -> Response<Body> {
    let path = asked.path.split('?').next().unwrap_or_default().to_owned();
    if asked.method != Method::GET && asked.method != Method::HEAD {
        return asked.refuse(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered here");
    }
    let found = if path == STATUS {
        json!(asked.shared.report())
    } else {
        json!({"status": "ok"})
    };
    asked.reply(StatusCode::OK, &found)
}
