//! The data of the dashboard: which handler answers what.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::Value;
use trimtab::session::SessionError;

use super::{actions, film_data, message_data, overview, replay_data};
use crate::request::context::RequestContext;
use crate::request::shared::{LiveSettings, SharedState};
use crate::routing::query;

/// How long a handler may take. A replay of a long session takes longest.
pub(super) const TIME: Duration = Duration::from_secs(30);

/// Answers a request with JSON. It may wait.
pub(super) type ApiHandler = fn(&ApiRequest) -> Result<Bytes, ApiProblem>;

/// What is told instead of data.
#[derive(Debug)]
pub(super) struct ApiProblem {
    pub(super) status: StatusCode,
    pub(super) message: String,
}

impl ApiProblem {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }

    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }
}

impl From<SessionError> for ApiProblem {
    fn from(error: SessionError) -> Self {
        Self::new(StatusCode::CONFLICT, error.to_string())
    }
}

impl From<trimtab_store::Error> for ApiProblem {
    fn from(error: trimtab_store::Error) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
    }
}

/// A request for data, or an order.
pub(super) struct ApiRequest {
    pub(super) shared: Arc<SharedState>,
    pub(super) settings: Arc<LiveSettings>,
    /// Path and query.
    path: String,
    body: Bytes,
}

impl ApiRequest {
    pub(super) fn new(context: &RequestContext, body: Bytes) -> Self {
        Self {
            shared: Arc::clone(&context.shared),
            settings: Arc::clone(&context.settings),
            path: context.path.clone(),
            body,
        }
    }

    /// A field of the query.
    pub(super) fn field(&self, name: &str) -> Option<String> {
        query::field(&self.path, name)
    }

    /// A number of the query, or a default.
    pub(super) fn number<T: FromStr>(&self, name: &str, default: T) -> T {
        let field = self.field(name).and_then(|text| text.parse().ok());
        field.unwrap_or(default)
    }

    /// The body of an order.
    pub(super) fn order(&self) -> Result<Value, ApiProblem> {
        let order = serde_json::from_slice(&self.body);
        order.map_err(|error| ApiProblem::bad(format!("the order is no JSON: {error}")))
    }
}

/// How much work a request is.
#[derive(Clone, Copy)]
pub(super) enum WorkKind {
    /// It costs what is new since the last time. One at a time.
    News,
    /// It goes through a whole session or store. One at a time, and many who ask for the same share
    /// it.
    Long,
    /// What a person orders.
    Order,
}

/// The handler of a request.
pub(super) fn handler(method: &Method, name: &str) -> Option<(WorkKind, ApiHandler)> {
    use WorkKind::{Long, News, Order};
    let handler: (WorkKind, ApiHandler) = match (method.as_str(), name) {
        ("GET", "sessions") => (News, overview::sessions),
        ("GET", "session") => (News, film_data::film),
        ("GET", "messages") => (News, message_data::messages),
        ("GET", "message") => (News, message_data::message),
        ("GET", "store") => (Long, overview::store),
        ("GET", "doctor") => (Long, overview::doctor),
        ("GET", "search") => (Long, message_data::search),
        ("GET", "replay") => (Long, replay_data::replay),
        ("POST", "preview") => (Order, actions::preview),
        ("POST", "compact") => (Order, actions::compact),
        ("POST", "undo") => (Order, actions::undo),
        ("POST", "preset") => (Order, actions::preset),
        ("POST", "pin") => (Order, actions::pin),
        ("POST", "collect") => (Order, overview::collect),
        _ => return None,
    };
    Some(handler)
}

/// JSON as bytes.
pub(super) fn json(value: &impl serde::Serialize) -> Result<Bytes, ApiProblem> {
    let bytes = serde_json::to_vec(value);
    bytes
        .map(Bytes::from)
        .map_err(|error| ApiProblem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}
