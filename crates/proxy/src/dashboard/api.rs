//! The data of the dashboard: which handler answers what.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use trimtab::session::SessionError;

use super::{film_data, message_data, overview};
use crate::request::context::RequestContext;
use crate::request::shared::{LiveSettings, SharedState};
use crate::routing::query;

/// How long a handler may take. A search through a long session takes longest.
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

/// A request for data.
pub(super) struct ApiRequest {
    pub(super) shared: Arc<SharedState>,
    pub(super) settings: Arc<LiveSettings>,
    /// Path and query.
    path: String,
}

impl ApiRequest {
    pub(super) fn new(context: &RequestContext) -> Self {
        Self {
            shared: Arc::clone(&context.shared),
            settings: Arc::clone(&context.settings),
            path: context.path.clone(),
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
}

/// The handler of a request.
pub(super) fn handler(name: &str) -> Option<ApiHandler> {
    Some(match name {
        "sessions" => overview::sessions,
        "older" => overview::older,
        "session" => film_data::film,
        "messages" => message_data::messages,
        "message" => message_data::message,
        "store" => overview::store,
        "doctor" => overview::doctor,
        "search" => message_data::search,
        _ => return None,
    })
}

/// JSON as bytes.
pub(super) fn json(value: &impl serde::Serialize) -> Result<Bytes, ApiProblem> {
    let bytes = serde_json::to_vec(value);
    bytes
        .map(Bytes::from)
        .map_err(|error| ApiProblem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}
