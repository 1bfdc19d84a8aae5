//! Errors in the words of the providers.

use serde_json::{Value, json};
use trimtab_model::Dialect;

/// A request that is not answered.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProviderRefusal {
    pub(super) status: u16,
    pub(super) body: Value,
}

impl ProviderRefusal {
    /// An error of Chat Completions or Responses.
    pub(super) fn openai(
        message: impl Into<String>,
        param: Option<&str>,
        code: Option<&str>,
    ) -> Self {
        let message = message.into();
        let kind = "invalid_request_error";
        let error = json!({"message": message, "type": kind, "param": param, "code": code});
        Self {
            status: 400,
            body: json!({"error": error}),
        }
    }

    /// An error of Messages.
    pub(super) fn anthropic(message: impl Into<String>) -> Self {
        let error = json!({"type": "invalid_request_error", "message": message.into()});
        Self {
            status: 400,
            body: json!({"type": "error", "error": error}),
        }
    }

    /// A field that the model does not take.
    pub(super) fn unsupported(dialect: Dialect, field: &str) -> Self {
        if dialect == Dialect::Messages {
            return Self::anthropic(format!("{field}: Extra inputs are not permitted"));
        }
        let message = format!("Unsupported parameter: '{field}' is not supported with this model.");
        Self::openai(message, Some(field), Some("unsupported_parameter"))
    }

    /// The same error with another status and type.
    pub(super) fn with(mut self, status: u16, kind: &str) -> Self {
        self.status = status;
        if let Some(error) = self.body.get_mut("error") {
            *error.get_mut("type").unwrap_or(&mut Value::Null) = json!(kind);
        }
        self
    }

    /// What the provider says.
    pub(super) fn message(&self) -> String {
        let message = self.body.pointer("/error/message").and_then(Value::as_str);
        message.unwrap_or_default().to_owned()
    }

    /// The inner error object.
    pub(super) fn error(&self) -> Value {
        self.body.get("error").cloned().unwrap_or_default()
    }

    /// The error that a provider gives with `status`.
    pub(super) fn of_status(dialect: Dialect, status: u16) -> Self {
        if dialect == Dialect::Messages {
            let (kind, message) = anthropic_words(status);
            return Self::anthropic(message).with(status, kind);
        }
        let (kind, message, code) = openai_words(status);
        Self::openai(message, None, code).with(status, kind)
    }

    /// A path that the provider does not have.
    pub(super) fn not_found(method: &str, path: &str) -> Self {
        if path.starts_with("/v1/messages") {
            return Self::anthropic("Not Found").with(404, "not_found_error");
        }
        let message = format!("Invalid URL ({method} {path})");
        Self::openai(message, None, None).with(404, "invalid_request_error")
    }

    /// A body that is not JSON.
    pub(super) fn not_json(dialect: Dialect, problem: &str) -> Self {
        if dialect == Dialect::Messages {
            return Self::anthropic(format!("The request body is not valid JSON: {problem}"));
        }
        let message = "We could not parse the JSON body of your request. (HINT: This likely \
                       means you aren't using your HTTP library correctly. The OpenAI API \
                       expects a JSON payload, but what was sent was not valid JSON. If you \
                       have trouble figuring out how to fix this, please contact us through \
                       our help center at help.openai.com.)";
        Self::openai(message, None, None)
    }
}

fn anthropic_words(status: u16) -> (&'static str, &'static str) {
    match status {
        401 => ("authentication_error", "invalid x-api-key"),
        403 => (
            "permission_error",
            "Your API key does not have permission to use the specified resource.",
        ),
        404 => ("not_found_error", "model: scripted"),
        408 | 504 => ("timeout_error", "Request timed out"),
        413 => (
            "request_too_large",
            "Request exceeds the maximum allowed number of bytes.",
        ),
        415 => (
            "invalid_request_error",
            "unsupported content-encoding of the request",
        ),
        429 => (
            "rate_limit_error",
            "Number of request tokens has exceeded your per-minute rate limit.",
        ),
        529 => ("overloaded_error", "Overloaded"),
        _ => ("api_error", "Internal server error"),
    }
}

fn openai_words(status: u16) -> (&'static str, &'static str, Option<&'static str>) {
    match status {
        401 => (
            "invalid_request_error",
            "Incorrect API key provided: sk-abc***def.",
            Some("invalid_api_key"),
        ),
        403 => (
            "insufficient_permissions",
            "You have insufficient permissions for this operation.",
            None,
        ),
        404 => (
            "invalid_request_error",
            "The model `scripted` does not exist or you do not have access to it.",
            Some("model_not_found"),
        ),
        408 | 504 => ("timeout", "Request timed out.", None),
        413 => ("invalid_request_error", "Request entity too large", None),
        415 => (
            "invalid_request_error",
            "unsupported content-encoding of the request",
            None,
        ),
        429 => (
            "tokens",
            "Rate limit reached for scripted in organization org-x on tokens per min (TPM): \
             Limit 30000, Used 29000, Requested 5000. Please try again in 2s.",
            Some("rate_limit_exceeded"),
        ),
        503 | 529 => (
            "server_error",
            "The engine is currently overloaded, please try again later",
            None,
        ),
        _ => (
            "server_error",
            "The server had an error while processing your request. Sorry about that!",
            None,
        ),
    }
}
