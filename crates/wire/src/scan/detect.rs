//! Detects the dialect of a request.

use std::borrow::Cow;

use trimtab_model::Dialect;

use crate::json::{elements, pick, unquoted};

/// Detects the dialect of a request from its path, else from its body.
///
/// ```
/// use trimtab_model::Dialect;
/// use trimtab_wire::scan::detect;
///
/// assert_eq!(detect(b"{}", "/v1/messages?beta=true"), Some(Dialect::Messages));
/// assert_eq!(detect(br#"{"input": "hi"}"#, "/"), Some(Dialect::Responses));
/// assert_eq!(detect(b"{}", "/v1/models"), None);
/// // Another interface, which only ends alike.
/// assert_eq!(detect(b"{}", "/v1/threads/t1/messages"), None);
/// ```
pub fn detect(body: &[u8], path: &str) -> Option<Dialect> {
    by_path(path).or_else(|| by_body(std::str::from_utf8(body).ok()?))
}

/// The dialect of messages without the other fields of a request, as gateways send them.
///
/// ```
/// use trimtab_model::Dialect;
/// use trimtab_wire::scan::detect_messages;
///
/// let output = r#"{"type": "tool_result", "tool_use_id": "t1", "content": "done"}"#;
/// let body = format!(r#"{{"messages": [{{"role": "user", "content": [{output}]}}]}}"#);
/// assert_eq!(detect_messages(body.as_bytes()), Some(Dialect::Messages));
///
/// // Some call the items of Responses messages too.
/// let output = r#"{"type": "function_call_output", "call_id": "c1", "output": "done"}"#;
/// let body = format!(r#"{{"messages": [{output}]}}"#);
/// assert_eq!(detect_messages(body.as_bytes()), Some(Dialect::Responses));
/// ```
pub fn detect_messages(body: &[u8]) -> Option<Dialect> {
    let body = std::str::from_utf8(body).ok()?;
    let dialect = by_body(body)?;
    let [messages] = pick(body, ["messages"])?;
    let messages = messages.unwrap_or_default();
    Some(if has_native_parts(messages) {
        Dialect::Messages
    } else if has_response_items(messages) {
        Dialect::Responses
    } else {
        dialect
    })
}

fn by_path(path: &str) -> Option<Dialect> {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let path = path.trim_end_matches('/');
    // Another interface of OpenAI, whose paths end in `/messages` as well.
    if path.contains("/threads/") {
        None
    } else if path.ends_with("/chat/completions") {
        Some(Dialect::Chat)
    } else if path.ends_with("/messages") || path.ends_with("/messages/count_tokens") {
        Some(Dialect::Messages)
    } else if path.ends_with("/responses") {
        Some(Dialect::Responses)
    } else {
        None
    }
}

fn by_body(body: &str) -> Option<Dialect> {
    let names = [
        "input",
        "messages",
        "system",
        "max_tokens",
        "anthropic_version",
    ];
    let [input, messages, system, max_tokens, version] = pick(body, names)?;
    if messages.is_none() {
        return input.map(|_| Dialect::Responses);
    }
    // Chat Completions has no such fields. Without them, only the parts can tell the dialects
    // apart.
    let native = system.is_some() || version.is_some();
    let parts = messages.is_some_and(has_native_parts) && max_tokens.is_some();
    Some(if native || parts {
        Dialect::Messages
    } else {
        Dialect::Chat
    })
}

/// True if a part has a type that only Messages has.
fn has_native_parts(messages: &str) -> bool {
    // The elements are not collected: a list of them can be many times as large as the body.
    elements(messages).any(|message| {
        let content = pick(message, ["content"]).and_then(|[content]| content);
        elements(content.unwrap_or_default()).any(|part| {
            matches!(
                type_name(part).as_deref(),
                Some("tool_use" | "tool_result" | "thinking" | "redacted_thinking")
            )
        })
    })
}

/// True if an entry is an item that only Responses has.
fn has_response_items(messages: &str) -> bool {
    elements(messages).any(|item| {
        matches!(
            type_name(item).as_deref(),
            Some(
                "function_call"
                    | "function_call_output"
                    | "custom_tool_call"
                    | "custom_tool_call_output"
                    | "reasoning"
            )
        )
    })
}

/// The field `type` of an object.
fn type_name(object: &str) -> Option<Cow<'_, str>> {
    let [json] = pick(object, ["type"])?;
    json.and_then(unquoted)
}
