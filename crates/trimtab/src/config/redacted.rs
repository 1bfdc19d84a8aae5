//! Hides secrets in values that are shown.

use toml::Value;

use crate::redact::{redact_address, redact_urls};

/// Names of fields with secrets.
const SECRETS: [&str; 5] = ["key", "token", "tokens", "secret", "password"];

/// Names of fields with an address, perhaps without a scheme.
const ADDRESSES: [&str; 2] = ["proxy", "url"];

/// A value without keys, tokens and the passwords of addresses.
pub(super) fn redact_value(name: &str, value: &Value) -> Value {
    let last = name.rsplit('.').next().unwrap_or_default();
    match value {
        // A number under `tokens` is a count, not a secret.
        Value::String(_) if SECRETS.contains(&last) => Value::from("***"),
        Value::String(text) if ADDRESSES.contains(&last) => Value::from(redact_address(text)),
        // The query may contain keys.
        Value::String(text) if last == "blobs" => {
            let shown = text.split_once('?').map_or(text.as_str(), |(url, _)| url);
            Value::from(redact_urls(shown).as_ref())
        }
        Value::String(text) => Value::from(redact_urls(text).as_ref()),
        Value::Array(values) => {
            Value::Array(values.iter().map(|one| redact_value(name, one)).collect())
        }
        Value::Table(fields) => {
            let fields = fields.iter();
            Value::Table(
                fields
                    .map(|(field, value)| (field.clone(), redact_value(field, value)))
                    .collect(),
            )
        }
        other => other.clone(),
    }
}
