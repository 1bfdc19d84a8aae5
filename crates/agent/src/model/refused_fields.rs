//! Optional fields that a server rejects, learned from its errors.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// The two names of the output limit in Chat Completions.
const LIMITS: [&str; 2] = ["max_tokens", "max_completion_tokens"];

/// Fields that a request can do without.
const DISPENSABLE: [&str; 7] = [
    "include",
    "prompt_cache_key",
    "reasoning",
    "reasoning_effort",
    "store",
    "stream_options",
    "max_output_tokens",
];

/// Phrases with which providers reject a field.
const NOT_TAKEN: [&str; 8] = [
    "unsupported",
    "not support",
    "unknown",
    "unrecognized",
    "unexpected",
    "not permitted",
    "not allowed",
    "extra_forbidden",
];

/// The rejected fields of each model.
#[derive(Debug, Default)]
pub(super) struct RefusedFields(Mutex<BTreeSet<(String, &'static str)>>);

impl RefusedFields {
    /// True if `model` has not rejected `field`.
    pub(super) fn takes(&self, model: &str, field: &str) -> bool {
        let refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        !refused
            .iter()
            .any(|(by, what)| by == model && *what == field)
    }

    /// The name of the output limit that `model` accepts; tries `usual` first.
    pub(super) fn limit(&self, model: &str, usual: &'static str) -> Option<&'static str> {
        let mut names = [usual].into_iter().chain(LIMITS);
        names.find(|name| self.takes(model, name))
    }

    /// Records that `model` rejects `field`; false if that was known, so that a request is not
    /// repeated forever.
    pub(super) fn learn(&self, model: &str, field: &'static str) -> bool {
        let mut refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        refused.insert((model.to_owned(), field))
    }
}

/// The rejected field, if the request can do without it.
pub(super) fn refused_field(status: u16, body: &[u8]) -> Option<&'static str> {
    // The statuses with which servers reject the content of a request.
    if !matches!(status, 400 | 422) {
        return None;
    }
    let body: Value = serde_json::from_slice(body).ok()?;
    let said = body.to_string().to_lowercase();
    if !NOT_TAKEN.iter().any(|words| said.contains(words)) {
        return None;
    }
    // A dedicated field is trusted. Without one, the name must stand in quotes, because words such
    // as `store` also occur in ordinary sentences.
    let named = named(&body);
    let known = DISPENSABLE.into_iter().chain(LIMITS);
    known.into_iter().find(|field| match &named {
        Some(named) => named == field,
        None => is_quoted(&said, field),
    })
}

/// The field named in a dedicated part of the error.
fn named(body: &Value) -> Option<String> {
    let param = body.pointer("/error/param").or(body.get("param"));
    let place = body.pointer("/detail/0/loc/1");
    let name = param.or(place)?.as_str()?;
    // `stream_options.include_usage` is a part of the field `stream_options`.
    let end = name.find(['.', '[']).unwrap_or(name.len());
    name.get(..end).map(str::to_owned)
}

/// True if `said` contains `field` in quotes, or at the start of a message.
fn is_quoted(said: &str, field: &str) -> bool {
    let quotes = ["'", "`", "\\\""];
    quotes
        .iter()
        .any(|quote| said.contains(&format!("{quote}{field}{quote}")))
        || said.contains(&format!("\"{field}: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejected_field_is_found_in_the_error() {
        for (status, body, expected) in [
            (
                400,
                r#"{"error":{"message":"Encrypted content is not supported with this model.","type":"invalid_request_error","param":"include","code":null}}"#,
                Some("include"),
            ),
            (
                400,
                r#"{"error":{"message":"Unsupported parameter: 'reasoning.effort' is not supported with this model.","param":"reasoning.effort","code":"unsupported_parameter"}}"#,
                Some("reasoning"),
            ),
            (
                400,
                r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","param":"max_tokens","code":"unsupported_parameter"}}"#,
                Some("max_tokens"),
            ),
            (
                422,
                r#"{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}"#,
                Some("stream_options"),
            ),
            (
                400,
                r#"{"error":{"message":"Unknown parameter: \"prompt_cache_key\""}}"#,
                Some("prompt_cache_key"),
            ),
            // Too large a value is another matter, and so is a field that must stay.
            (
                400,
                r#"{"error":{"message":"max_tokens is too large: 99999.","param":"max_tokens","code":"invalid_value"}}"#,
                None,
            ),
            (
                400,
                r#"{"error":{"message":"Unsupported parameter: 'tools' is not supported with this model.","param":"tools"}}"#,
                None,
            ),
            (
                500,
                r#"{"error":{"message":"unsupported 'include'"}}"#,
                None,
            ),
            (400, "<html>", None),
        ] {
            assert_eq!(refused_field(status, body.as_bytes()), expected, "{body}");
        }
    }

    #[test]
    fn rejected_fields_are_remembered_per_model() {
        let quirks = RefusedFields::default();
        assert_eq!(quirks.limit("m", "max_tokens"), Some("max_tokens"));
        assert!(quirks.learn("m", "max_tokens"));
        assert!(!quirks.learn("m", "max_tokens"));
        assert_eq!(
            quirks.limit("m", "max_tokens"),
            Some("max_completion_tokens")
        );
        assert_eq!(quirks.limit("other", "max_tokens"), Some("max_tokens"));
        quirks.learn("m", "max_completion_tokens");
        assert_eq!(quirks.limit("m", "max_tokens"), None);
    }
}
