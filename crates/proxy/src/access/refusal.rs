//! Why a request is refused by access control, and the answer that says so in the form of the
//! client's dialect.

use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};
use trimtab_model::Dialect;

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AccessRefusal {
    /// The status of the answer.
    pub(crate) status: StatusCode,
    /// The reason in one word, for records.
    pub(crate) reason: &'static str,
    /// The message of the answer.
    pub(crate) message: String,
    /// The delay after which a retry is useful.
    pub(crate) retry_after: Option<Duration>,
}

impl AccessRefusal {
    fn new(status: StatusCode, reason: &'static str, message: String) -> Self {
        Self {
            status,
            reason,
            message,
            retry_after: None,
        }
    }

    /// The request names a host that is not ours.
    pub(super) fn host(message: String) -> Self {
        Self::new(StatusCode::FORBIDDEN, "host", message)
    }

    /// The request comes from a foreign page.
    pub(super) fn origin(message: String) -> Self {
        Self::new(StatusCode::FORBIDDEN, "origin", message)
    }

    /// The request has no valid token.
    pub(super) fn token() -> Self {
        // The same text for a missing and a wrong token.
        let why = "the request carries no valid token of this proxy\n\
            hint: send it in the header x-trimtab-token";
        Self::new(StatusCode::UNAUTHORIZED, "token", why.to_owned())
    }

    /// The role of its token does not allow the request.
    pub(super) fn role() -> Self {
        let why = "the token does not allow this\nhint: use a token with the role admin";
        Self::new(StatusCode::FORBIDDEN, "role", why.to_owned())
    }

    /// The request asks for conversations, but does not come from our own user.
    pub(super) fn other_user() -> Self {
        let why = "the dashboard shows conversations, and this request is not from the user that \
            runs the proxy\nhint: set proxy.token, and give it as the password";
        Self::new(StatusCode::FORBIDDEN, "user", why.to_owned())
    }

    /// One of our request headers has an impossible value.
    pub(crate) fn header(message: String) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "header", message)
    }

    /// The tenant has reached a limit of its quota.
    pub(super) fn rate(limit: &'static str, retry_after: Duration) -> Self {
        let why = format!(
            "the limit {limit} of this proxy is reached\n\
             hint: try again later; proxy.quotas in the settings sets the limit"
        );
        Self {
            retry_after: Some(retry_after),
            ..Self::new(StatusCode::TOO_MANY_REQUESTS, "rate", why)
        }
    }

    /// The body of the answer, in the error format of `dialect`.
    pub(crate) fn body(&self, dialect: Dialect) -> Value {
        let message = &self.message;
        let (kind, code) = match self.status {
            StatusCode::UNAUTHORIZED => ("authentication_error", "invalid_api_key"),
            StatusCode::BAD_REQUEST => ("invalid_request_error", "invalid_header"),
            StatusCode::TOO_MANY_REQUESTS => ("rate_limit_error", "rate_limit_exceeded"),
            _ => ("permission_error", "permission_denied"),
        };
        match dialect {
            Dialect::Messages => {
                json!({"type": "error", "error": {"type": kind, "message": message}})
            }
            Dialect::Chat | Dialect::Responses => json!({"error": {
                "message": message, "type": kind, "param": null, "code": code,
            }}),
        }
    }

    /// The delay in whole seconds.
    pub(crate) fn retry_after_seconds(&self) -> Option<u64> {
        let wait = self.retry_after?;
        // The header holds whole seconds. They are rounded up: a client that comes back a moment
        // too early is refused again.
        Some(wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).map(|seconds| seconds.max(1))
    }
}
