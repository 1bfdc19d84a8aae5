//! Extracts the text of an error, whatever it is wrapped in.
//!
//! JSON, JSON within JSON strings, server-sent events, HTML and plain text all become lines: one
//! sentence of a message per line, and `key=value` for codes and figures. The model's own words and
//! echoes of the request are omitted, so that a conversation *about* an overflow is not mistaken
//! for one.

use serde_json::{Map, Value};

use super::clean::{clean, without_tags};

/// Only the start and the end of a longer body are read.
const HEAD: usize = 96 * 1024;
const TAIL: usize = 32 * 1024;
/// The maximum size of searched text.
const MOST_TEXT: usize = 32 * 1024;
/// The maximum depth of JSON within strings.
const DEPTH: usize = 24;

/// Keys of codes.
const CODES: [&str; 14] = [
    "code",
    "type",
    "error_type",
    "status",
    "reason",
    "error_code",
    "__type",
    "param",
    "stop_reason",
    "finish_reason",
    "error_name",
    "statuscode",
    "status_code",
    "event",
];
/// Keys of text from the model or the user.
const CONTENT: [&str; 19] = [
    "content",
    "contents",
    "output",
    "input",
    "inputs",
    "messages",
    "text",
    "arguments",
    "instructions",
    "tools",
    "prompt",
    "system",
    "body",
    "request",
    "parts",
    "data",
    "documents",
    "content_block",
    "output_text",
];
/// Keys of errors, also in a successful answer.
const ERRORS: [&str; 7] = [
    "error",
    "errors",
    "base_resp",
    "error_msg",
    "error_message",
    "errormsg",
    "fault",
];
/// Keys next to a message that is an error, in an answer with a success status.
const SIGNS: [&str; 5] = ["code", "error_code", "status_code", "success", "errno"];
/// Keys of objects whose stop reason alone matters.
const ANSWERS: [&str; 4] = ["choices", "delta", "candidates", "response"];

/// The extracted text.
#[derive(Clone, Debug, Default)]
pub(super) struct ErrorText {
    /// The lines.
    pub(super) lines: String,
    /// True if there was nothing at all.
    pub(super) empty: bool,
    /// The `usage` object of an answer.
    pub(super) usage: Option<Value>,
}

/// Whether the input is an error, or an answer that may contain one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TextScope {
    Error,
    Answer,
}

/// Reads a body.
pub(super) fn read(body: &[u8], scope: TextScope) -> ErrorText {
    let mut text = ErrorText {
        empty: body.iter().all(u8::is_ascii_whitespace),
        ..ErrorText::default()
    };
    // Errors are short. A longer body is a page or an echo of the request, and says what is wrong
    // at its start or its end.
    let body = capped(body);
    let body = body.trim();
    if let Ok(value) = serde_json::from_str::<Value>(body) {
        text.value(&value, scope, 0);
    } else if is_stream(body) {
        text.stream(body, scope);
    } else if scope == TextScope::Error {
        text.plain(body, 0);
    }
    if scope == TextScope::Error && text.lines.is_empty() {
        // Nothing was extracted, so the text as a whole is searched.
        text.line(&clean(clipped(body)));
    }
    text
}

fn capped(body: &[u8]) -> String {
    let tail = body.len().checked_sub(TAIL).filter(|start| *start > HEAD);
    match (body.get(..HEAD), tail.and_then(|start| body.get(start..))) {
        (Some(head), Some(tail)) => {
            format!(
                "{}\n{}",
                String::from_utf8_lossy(head),
                String::from_utf8_lossy(tail)
            )
        }
        _ => String::from_utf8_lossy(body).into_owned(),
    }
}

fn is_stream(body: &str) -> bool {
    ["data:", "event:", ":", "id:", "retry:"]
        .iter()
        .any(|start| body.starts_with(start))
}

impl ErrorText {
    /// Adds a line, if there is room.
    pub(super) fn line(&mut self, line: &str) {
        if self.lines.len().saturating_add(line.len()) < MOST_TEXT {
            self.lines.push_str(line);
            self.lines.push('\n');
        } else {
            let room = MOST_TEXT.saturating_sub(self.lines.len());
            self.lines.extend(line.chars().take(room / 4));
        }
    }

    /// Server-sent events: each `data:` line separately.
    fn stream(&mut self, body: &str, scope: TextScope) {
        let mut event = scope;
        for line in body.lines() {
            if let Some(name) = line.strip_prefix("event:") {
                let failed = matches!(name.trim(), "error" | "response.failed");
                event = if failed { TextScope::Error } else { scope };
            } else if let Some(data) = line.strip_prefix("data:") {
                match serde_json::from_str(data.trim()) {
                    Ok(value) => self.value(&value, event, 0),
                    Err(_) if event == TextScope::Error => self.plain(data, 0),
                    Err(_) => {}
                }
            }
        }
    }

    /// Text that is not JSON as a whole, but may contain JSON.
    fn plain(&mut self, text: &str, depth: usize) {
        let text = if text.trim_start().starts_with('<') {
            without_tags(text)
        } else {
            text.into()
        };
        // Gateways put the provider's JSON behind words of their own, sometimes several times.
        let start = text.find(['{', '[']).filter(|_| depth < DEPTH);
        let (before, json) = start
            .and_then(|at| text.split_at_checked(at))
            .unwrap_or((&text, ""));
        let (before, text) = (clipped(before), clipped(&text));
        match serde_json::Deserializer::from_str(json)
            .into_iter::<Value>()
            .next()
        {
            Some(Ok(value)) if value.is_object() => {
                self.line(&clean(before));
                self.value(&value, TextScope::Error, depth + 1);
            }
            _ => self.line(&clean(text)),
        }
    }

    fn value(&mut self, value: &Value, scope: TextScope, depth: usize) {
        if depth > DEPTH {
            return;
        }
        match value {
            Value::Object(fields) => {
                let scope = if is_error(fields) {
                    TextScope::Error
                } else {
                    scope
                };
                for (key, value) in fields {
                    self.field(&key.to_lowercase(), value, scope, depth + 1);
                }
            }
            Value::Array(values) => {
                for value in values {
                    self.value(value, scope, depth + 1);
                }
            }
            Value::String(text) if scope == TextScope::Error => self.plain(text, depth + 1),
            _ => {}
        }
    }

    fn field(&mut self, key: &str, value: &Value, scope: TextScope, depth: usize) {
        let inner = if ERRORS.contains(&key) || key.ends_with("exception") {
            TextScope::Error
        } else {
            scope
        };
        if key.ends_with("exception") {
            self.line(&format!("type={key}"));
        }
        match value {
            Value::Object(_) if matches!(key, "usage" | "usagemetadata") => {
                self.usage = Some(value.clone());
            }
            // Ollama's own API reports this without a usage object.
            Value::Number(_) if key == "prompt_eval_count" => {
                self.usage = Some(serde_json::json!({"prompt_tokens": value}));
            }
            Value::String(code) if is_stop(key) => self.line(&format!("{key}={}", clean(code))),
            Value::String(code) if CODES.contains(&key) && inner == TextScope::Error => {
                self.line(&format!("{key}={}", clean(code)));
            }
            // Some providers identify errors by number, and figures such as limits are fields too.
            Value::Number(number) if inner == TextScope::Error => {
                self.line(&format!("{key}={number}"));
            }
            // Words of the model are in here, but also the stop reason.
            _ if ANSWERS.contains(&key) => self.value(value, TextScope::Answer, depth),
            _ if CONTENT.contains(&key) => {}
            Value::String(text) if inner == TextScope::Error => self.plain(text, depth),
            _ => self.value(value, inner, depth),
        }
    }
}

/// The part of a text that is searched.
fn clipped(text: &str) -> &str {
    const MOST: usize = MOST_TEXT / 2;
    // A cut inside a character fails; one of the three positions before it succeeds.
    (0..4)
        .find_map(|back| text.get(..MOST - back))
        .unwrap_or(text)
}

fn is_stop(key: &str) -> bool {
    matches!(key, "stop_reason" | "finish_reason" | "finishreason")
}

/// True if the fields of an object mark it as an error.
fn is_error(fields: &Map<String, Value>) -> bool {
    let has = |key: &str| fields.contains_key(key);
    let words = ["message", "msg", "detail"]
        .iter()
        .any(|key| fields.get(*key).is_some_and(Value::is_string));
    let typed = fields.get("type").and_then(Value::as_str) == Some("error");
    typed || (words && SIGNS.iter().any(|key| has(key)) && !ANSWERS.iter().any(|key| has(key)))
}
