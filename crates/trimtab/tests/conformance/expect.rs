//! Holding a result against what a case expects.

use std::sync::Arc;

use serde_json::Value;
use trimtab::engine::normalise::{NormaliseOptions, normalise};
use trimtab::engine::verify::verify;
use trimtab::model::{Dialect, Message};

use crate::ops::messages;

/// Fields that ours may have where the case says nothing of them: what we know beyond what
/// is sent, and the tool's name on an output that we made.
const BEYOND: [&str; 2] = ["metadata", "name"];

/// The first difference that matters; none if the result is as expected.
pub(crate) fn difference(expected: &Value, result: &Value) -> Option<String> {
    let Some(fields) = expected.as_object() else {
        let differs = !same(expected, result);
        return differs.then(|| format!("expected {expected}, got {result}"));
    };
    fields.iter().find_map(|(key, expected)| {
        let agrees = agrees(key, expected, result);
        (!agrees).then(|| format!("{key}: expected {expected}, got {}", result[key_of(key)]))
    })
}

/// What a field with a special name looks at.
fn key_of(key: &str) -> &str {
    let base = key
        .strip_suffix("_prefix")
        .or(key.strip_suffix("_superset"));
    base.or(key.strip_suffix("_contains")).unwrap_or(key)
}

fn agrees(key: &str, expected: &Value, result: &Value) -> bool {
    let text = result["text"]
        .as_str()
        .or(result["content"].as_str())
        .unwrap_or_default();
    match key {
        // A field of this very name wins over the special meaning.
        key if result.get(key).is_some() => same(expected, &result[key]),
        "contains" => strings(expected).all(|wanted| text.contains(wanted)),
        "not_contains" => strings(expected).all(|unwanted| !text.contains(unwanted)),
        "len" => length(result) == expected.as_u64(),
        "max_len" => length(result).is_some_and(|length| Some(length) <= expected.as_u64()),
        "first_line_max_chars" => {
            let first = text.lines().next().unwrap_or_default();
            Some(first.chars().count() as u64) <= expected.as_u64()
        }
        "structure" => has_structure(expected, text),
        "roles" => {
            let messages = result["messages"].as_array();
            let roles = messages
                .or(result["history"].as_array())
                .into_iter()
                .flatten();
            roles
                .map(|message| &message["role"])
                .eq(expected.as_array().into_iter().flatten())
        }
        key if key.ends_with("_prefix") => {
            let text = result[key_of(key)].as_str().unwrap_or_default();
            strings(expected).all(|prefix| text.starts_with(prefix))
        }
        key if key.ends_with("_contains") => {
            let text = result[key_of(key)].as_str().unwrap_or_default();
            strings(expected).all(|wanted| text.contains(wanted))
        }
        key if key.ends_with("_superset") => {
            let ours = result[key_of(key)].as_array().cloned().unwrap_or_default();
            let mut expected = expected.as_array().into_iter().flatten();
            expected.all(|wanted| ours.contains(wanted))
        }
        // The native shape of what is compared as `messages` already.
        "messages_anthropic" => true,
        _ => expected.is_null(),
    }
}

fn strings(value: &Value) -> impl Iterator<Item = &str> {
    let one = value.as_str().into_iter();
    one.chain(
        value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str),
    )
}

fn length(result: &Value) -> Option<u64> {
    let list = ["messages", "history"].map(|key| result[key].as_array().map(Vec::len));
    let text = ["text", "content"].map(|key| result[key].as_str().map(|text| text.chars().count()));
    let length = list.into_iter().chain(text).flatten().next();
    length.map(|length| length as u64)
}

/// The lines of `text` are those expected, `<header…>` standing for any line.
fn has_structure(expected: &Value, text: &str) -> bool {
    let expected: Vec<&str> = strings(expected).collect();
    let lines: Vec<&str> = text.lines().collect();
    let fits = |(wanted, line): (&&str, &&str)| wanted.starts_with("<header") || wanted == line;
    expected.len() == lines.len() && expected.iter().zip(&lines).all(fits)
}

fn same(expected: &Value, ours: &Value) -> bool {
    match (expected, ours) {
        (Value::Array(expected), Value::Array(ours)) => {
            expected.len() == ours.len() && expected.iter().zip(ours).all(|(e, o)| same(e, o))
        }
        (Value::Object(fields), Value::Object(ours)) if fields.contains_key("role") => {
            let missing = Value::Null;
            fields
                .iter()
                .all(|(key, value)| same(value, ours.get(key).unwrap_or(&missing)))
                && ours
                    .keys()
                    .all(|key| fields.contains_key(key) || BEYOND.contains(&key.as_str()))
        }
        (expected, ours) => expected == ours,
    }
}

/// An inverted case must come out valid: at once if its input was, else after normalising.
pub(crate) fn must_be_valid(input: &Value, result: &Value) -> Result<(), String> {
    if !result["messages"].is_array() {
        return Ok(());
    }
    let ours: Vec<Arc<Message>> = messages(&result["messages"])?
        .into_iter()
        .map(Arc::new)
        .collect();
    let was_valid = verify(&messages(&input["messages"])?, Dialect::Chat).is_empty();
    let faults = if was_valid {
        verify(&ours, Dialect::Chat)
    } else {
        verify(
            &normalise(&ours, NormaliseOptions::default()).messages(),
            Dialect::Chat,
        )
    };
    let first = faults.first();
    first.map_or(Ok(()), |fault| {
        Err(format!("differs as it should, but {fault}"))
    })
}
