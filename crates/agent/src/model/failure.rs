//! Turns a failed response into an error that explains the problem.

use std::sync::Arc;

use http::HeaderMap;
use serde_json::Value;
use trimtab_model::{Dialect, Message};
use trimtab_wire::overflow::{self, Certainty, OverflowAction, OverflowVerdict, classify};

use super::error::wants_another_window;
use super::{ApiKey, ModelError, ModelRequest};

/// The longest excerpt of a provider's message.
const LONGEST_MESSAGE: usize = 600;

/// The destination of a request.
pub(super) struct RequestTarget<'a> {
    pub(super) url: String,
    pub(super) dialect: Dialect,
    pub(super) key: Option<&'a ApiKey>,
    pub(super) request: &'a ModelRequest,
}

impl RequestTarget<'_> {
    /// The error for an error event in a stream.
    pub(super) fn stream_error(&self, verdict: Box<OverflowVerdict>, message: &str) -> ModelError {
        self.error(200, verdict, self.shown_message(message))
    }

    fn error(&self, status: u16, verdict: Box<OverflowVerdict>, message: String) -> ModelError {
        let url = self.url.clone();
        // Only a stated overflow justifies rewriting the window. A guessed one could be a rate
        // limit.
        if wants_another_window(&verdict) && verdict.certainty == Certainty::Stated {
            return ModelError::Overflow { verdict, message };
        }
        match status {
            401 | 403 => ModelError::Key {
                url,
                status,
                message,
                variable: match self.dialect {
                    Dialect::Messages => "ANTHROPIC_API_KEY",
                    Dialect::Chat | Dialect::Responses => "OPENAI_API_KEY",
                },
            },
            404 => ModelError::NoModel {
                url,
                model: self.request.model.clone(),
                status,
                message,
            },
            _ if verdict.action == OverflowAction::BackOff => ModelError::Busy {
                url,
                status,
                message,
                retry_after: verdict.retry_after,
            },
            _ => ModelError::Refused {
                url,
                status,
                message,
            },
        }
    }

    /// The provider's message, shortened and without the key.
    fn shown_message(&self, message: &str) -> String {
        let message = match self.key {
            Some(key) => key.redact(message),
            None => message.to_owned(),
        };
        let mut shown: String = message.trim().chars().take(LONGEST_MESSAGE).collect();
        if shown.len() < message.trim().len() {
            shown.push_str(" ...");
        }
        shown
    }
}

/// A failed response.
pub(super) struct FailedResponse<'a> {
    status: u16,
    headers: Vec<(&'a str, &'a str)>,
    body: &'a [u8],
}

impl<'a> FailedResponse<'a> {
    pub(super) fn new(status: u16, headers: &'a HeaderMap, body: &'a [u8]) -> Self {
        let pairs = headers
            .iter()
            .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        Self {
            status,
            headers: pairs.collect(),
            body,
        }
    }

    /// The error for a request to `target`.
    pub(super) fn to_error(&self, target: &RequestTarget<'_>) -> ModelError {
        let verdict = Box::new(self.verdict(target.request));
        let message = self.message();
        // A failing gateway answers with a page. That is temporary, so it counts as an API error.
        let telling =
            verdict.action != OverflowAction::None && (!self.is_page() || self.status >= 500);
        if message.is_none() && !telling && !matches!(self.status, 401 | 403) {
            return ModelError::NotAnApi {
                url: target.url.clone(),
                status: self.status,
                what: target.shown_message(&self.describe_body()),
            };
        }
        let message = message.unwrap_or_else(|| self.describe_body());
        target.error(self.status, verdict, target.shown_message(&message))
    }

    fn verdict(&self, request: &ModelRequest) -> OverflowVerdict {
        let messages: Vec<&Message> = request.messages.iter().map(Arc::as_ref).collect();
        let messages = serde_json::to_vec(&messages).unwrap_or_default();
        let response = overflow::ProviderResponse {
            request: &messages,
            headers: &self.headers,
            window: request.window,
            estimate: request.estimate,
            ..overflow::ProviderResponse::new(self.status, self.body)
        };
        classify(&response)
    }

    /// The provider's message, from any of the usual fields.
    fn message(&self) -> Option<String> {
        let value: Value = serde_json::from_slice(self.body).ok()?;
        let places = [
            "/error/message",
            "/message",
            "/error",
            "/detail",
            "/0/error/message",
        ];
        let found = places
            .iter()
            .find_map(|place| value.pointer(place)?.as_str());
        // Some servers have an object without a message there, which is still better than nothing.
        let whole = || {
            value
                .get("error")
                .or_else(|| value.get("detail"))
                .map(Value::to_string)
        };
        found.map(str::to_owned).or_else(whole)
    }

    fn is_page(&self) -> bool {
        self.body.trim_ascii_start().first() == Some(&b'<')
    }

    /// A description of what was received instead of an answer.
    fn describe_body(&self) -> String {
        let header = |wanted: &str| self.headers.iter().find(|(name, _)| *name == wanted);
        if let Some((_, to)) = header("location").filter(|_| self.status / 100 == 3) {
            return format!("a redirect to {to}");
        }
        if self.is_page() {
            return "an HTML page".to_owned();
        }
        let text = String::from_utf8_lossy(self.body);
        match text.trim() {
            "" => "nothing".to_owned(),
            text => format!("`{}`", text.chars().take(80).collect::<String>()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(status: u16, body: &str) -> ModelError {
        let request = ModelRequest::new("m", Vec::new());
        let target = RequestTarget {
            url: "http://h/v1/chat/completions".to_owned(),
            dialect: Dialect::Chat,
            key: Some(&ApiKey::new("sk-1")),
            request: &request,
        };
        FailedResponse::new(status, &HeaderMap::new(), body.as_bytes()).to_error(&target)
    }

    #[test]
    fn failures_map_to_specific_errors() {
        let cases: [(u16, &str, &str); 9] = [
            (
                401,
                r#"{"error":{"message":"Incorrect API key provided: sk-1"}}"#,
                "provided: [key]\nhint: set the right key in the environment variable OPENAI_API_KEY",
            ),
            (401, "", "refused the key"),
            (
                404,
                r#"{"error":{"message":"The model `m` does not exist"}}"#,
                "has no model `m`",
            ),
            (404, "<html>", "answered HTTP 404 with an HTML page"),
            (
                200,
                "<!doctype html>",
                "answered HTTP 200 with an HTML page",
            ),
            (200, "OK", "with `OK`"),
            (
                502,
                "<html>bad gateway</html>",
                "cannot answer now (HTTP 502): an HTML page",
            ),
            (
                503,
                r#"{"error":{"message":"overloaded"}}"#,
                "cannot answer now (HTTP 503): overloaded",
            ),
            (
                400,
                r#"{"error":{"message":"temperature: must be at most 2"}}"#,
                "refused the request (HTTP 400): temperature",
            ),
        ];
        for (status, body, expected) in cases {
            let said = error(status, body).to_string();
            assert!(said.contains(expected), "{said}");
            assert!(!said.contains("sk-1"), "{said}");
        }
    }

    #[test]
    fn overflow_is_distinguished_from_other_errors() {
        let said = error(
            400,
            r#"{"error":{"code":400,"message":"request (2031 tokens) exceeds the available context size (1024 tokens), try increasing it","type":"exceed_context_size_error"}}"#,
        );
        let ModelError::Overflow { verdict, .. } = said else {
            panic!("{said}");
        };
        assert_eq!(
            (verdict.sizes.actual, verdict.sizes.limit),
            (Some(2031), Some(1024))
        );
    }
}
