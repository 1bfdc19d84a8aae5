//! What an answer says about an error, whatever it is wrapped in.
//!
//! JSON, JSON within strings of JSON, server-sent events, HTML and plain text all become lines:
//! one sentence of a message a line, and `key=value` for codes and figures. The model's own words
//! and echoes of the request are left out, so that a conversation *about* an overflow is none.

use serde_json::{Map, Value};

use super::clean::{clean, without_tags};

/// A longer body is read at its beginning and its end only.
const HEAD: usize = 96 * 1024;
const TAIL: usize = 32 * 1024;
/// More text than this is not searched.
const MOST_TEXT: usize = 32 * 1024;
/// JSON within strings is followed this deep.
const DEPTH: usize = 24;

/// Keys whose values are a code.
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
/// Keys under which stands what the model or the user said.
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
/// Keys under which stands an error, also in an answer that is none otherwise.
const ERRORS: [&str; 7] = [
    "error",
    "errors",
    "base_resp",
    "error_msg",
    "error_message",
    "errormsg",
    "fault",
];
/// Keys that stand beside a message which is an error, in an answer that says it is a success.
const SIGNS: [&str; 5] = ["code", "error_code", "status_code", "success", "errno"];
/// Keys of which only why the answer ended is of interest.
const ANSWERS: [&str; 4] = ["choices", "delta", "candidates", "response"];

/// What was found.
#[derive(Clone, Debug, Default)]
pub(super) struct Text {
    /// The lines.
    pub(super) lines: String,
    /// Whether there was anything at all.
    pub(super) empty: bool,
    /// The `usage` object of an answer.
    pub(super) usage: Option<Value>,
}

/// Whether what is read is an error or an answer that may hold one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Error,
    Answer,
}

/// Reads a body.
pub(super) fn read(body: &[u8], scope: Scope) -> Text {
    let mut text = Text {
        empty: body.iter().all(u8::is_ascii_whitespace),
        ..Text::default()
    };
    let body = capped(body);
    let body = body.trim();
    if let Ok(value) = serde_json::from_str::<Value>(body) {
        text.value(&value, scope, 0);
    } else if is_stream(body) {
        text.stream(body, scope);
    } else if scope == Scope::Error {
        text.plain(body, 0);
    }
    if scope == Scope::Error && text.lines.is_empty() {
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

impl Text {
    /// Adds a line, as long as there is room.
    pub(super) fn line(&mut self, line: &str) {
        if self.lines.len().saturating_add(line.len()) < MOST_TEXT {
            self.lines.push_str(line);
            self.lines.push('\n');
        } else {
            let room = MOST_TEXT.saturating_sub(self.lines.len());
            self.lines.extend(line.chars().take(room / 4));
        }
    }

    /// Server-sent events: each `data:` line by itself.
    fn stream(&mut self, body: &str, scope: Scope) {
        let mut event = scope;
        for line in body.lines() {
            if let Some(name) = line.strip_prefix("event:") {
                let failed = matches!(name.trim(), "error" | "response.failed");
                event = if failed { Scope::Error } else { scope };
            } else if let Some(data) = line.strip_prefix("data:") {
                match serde_json::from_str(data.trim()) {
                    Ok(value) => self.value(&value, event, 0),
                    Err(_) if event == Scope::Error => self.plain(data, 0),
                    Err(_) => {}
                }
            }
        }
    }

    /// Text that is not JSON as a whole, but may have JSON in it.
    fn plain(&mut self, text: &str, depth: usize) {
        let text = if text.trim_start().starts_with('<') {
            without_tags(text)
        } else {
            text.into()
        };
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
                self.value(&value, Scope::Error, depth + 1);
            }
            _ => self.line(&clean(text)),
        }
    }

    fn value(&mut self, value: &Value, scope: Scope, depth: usize) {
        if depth > DEPTH {
            return;
        }
        match value {
            Value::Object(fields) => {
                let scope = if is_error(fields) {
                    Scope::Error
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
            Value::String(text) if scope == Scope::Error => self.plain(text, depth + 1),
            _ => {}
        }
    }

    fn field(&mut self, key: &str, value: &Value, scope: Scope, depth: usize) {
        let inner = if ERRORS.contains(&key) || key.ends_with("exception") {
            Scope::Error
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
            // Ollama's own interface has no object for it.
            Value::Number(_) if key == "prompt_eval_count" => {
                self.usage = Some(serde_json::json!({"prompt_tokens": value}));
            }
            Value::String(code) if is_stop(key) => self.line(&format!("{key}={}", clean(code))),
            Value::String(code) if CODES.contains(&key) && inner == Scope::Error => {
                self.line(&format!("{key}={}", clean(code)));
            }
            Value::Number(number) if inner == Scope::Error => self.line(&format!("{key}={number}")),
            _ if ANSWERS.contains(&key) => self.value(value, Scope::Answer, depth),
            _ if CONTENT.contains(&key) => {}
            Value::String(text) if inner == Scope::Error => self.plain(text, depth),
            _ => self.value(value, inner, depth),
        }
    }
}

/// As much of a text as is searched.
fn clipped(text: &str) -> &str {
    const MOST: usize = MOST_TEXT / 2;
    // A cut within a character gives nothing: one of the three places before it does.
    (0..4)
        .find_map(|back| text.get(..MOST - back))
        .unwrap_or(text)
}

fn is_stop(key: &str) -> bool {
    matches!(key, "stop_reason" | "finish_reason" | "finishreason")
}

/// Whether an object is an error by what stands in it.
fn is_error(fields: &Map<String, Value>) -> bool {
    let has = |key: &str| fields.contains_key(key);
    let words = ["message", "msg", "detail"]
        .iter()
        .any(|key| fields.get(*key).is_some_and(Value::is_string));
    let typed = fields.get("type").and_then(Value::as_str) == Some("error");
    typed || (words && SIGNS.iter().any(|key| has(key)) && !ANSWERS.iter().any(|key| has(key)))
}
