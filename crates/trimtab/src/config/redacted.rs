//! Values as they may be shown.

use toml::Value;

use crate::redact::{redact_address, redact_urls};

/// Names of fields that hold what nobody may see.
const SECRETS: [&str; 5] = ["key", "token", "tokens", "secret", "password"];

/// Names of fields that hold an address, perhaps one without a scheme.
const ADDRESSES: [&str; 2] = ["proxy", "url"];

/// A value as it may be shown: without keys, tokens and the passwords of addresses.
pub(super) fn redact_value(name: &str, value: &Value) -> Value {
    let last = name.rsplit('.').next().unwrap_or_default();
    match value {
        // Numbers are counts of tokens.
        Value::String(_) if SECRETS.contains(&last) => Value::from("***"),
        Value::String(text) if ADDRESSES.contains(&last) => Value::from(redact_address(text)),
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
