//! Hides our calls in a complete answer, and joins the visible parts of several answers into one.
//! `wire::sse::CallFilter` does the same for streams.

use serde_json::{Value, json};
use trimtab_engine::view::tools::ToolNames;
use trimtab_model::Dialect;

/// Removes our calls from an answer; true if there were any.
pub(crate) fn hide(dialect: Dialect, names: ToolNames, answer: &mut Value) -> bool {
    let Some(list) = call_list(dialect, answer) else {
        return false;
    };
    let before = list.len();
    list.retain(|part| !is_ours(dialect, names, part));
    let (left, hid) = (list.len(), list.len() < before);
    // An empty `tool_calls` is invalid for some clients, and a client would wait for calls that it
    // cannot see.
    if hid && dialect == Dialect::Chat && left == 0 {
        if let Some(message) = message(answer).and_then(Value::as_object_mut) {
            message.remove("tool_calls");
        }
        if let Some(stop) = answer.pointer_mut("/choices/0/finish_reason") {
            *stop = json!("stop");
        }
    }
    if hid && dialect == Dialect::Messages && !calls(answer) {
        // A client would wait for a call that it cannot see.
        if let Some(stop) = answer.get_mut("stop_reason") {
            *stop = json!("end_turn");
        }
    }
    hid
}

fn calls(answer: &Value) -> bool {
    let parts = answer.get("content").and_then(Value::as_array);
    let is_call = |part: &Value| part.get("type").is_some_and(|kind| kind == "tool_use");
    parts.into_iter().flatten().any(is_call)
}

/// True if an answer contains text for the client.
pub(crate) fn shows_content(dialect: Dialect, answer: &Value) -> bool {
    let is_text = |text: &Value| text.as_str().is_some_and(|text| !text.trim().is_empty());
    match dialect {
        Dialect::Chat => answer
            .pointer("/choices/0/message/content")
            .is_some_and(is_text),
        Dialect::Messages | Dialect::Responses => {
            let parts = answer.get(list_name(dialect)).and_then(Value::as_array);
            let mut parts = parts.into_iter().flatten();
            parts.any(|part| {
                let inner = part.get("content").and_then(Value::as_array);
                let mut texts = inner.into_iter().flatten().chain([part]);
                texts.any(|part| part.get("text").is_some_and(is_text))
            })
        }
    }
}

/// Prepends the visible parts of earlier answers to this one.
pub(crate) fn prepend_shown(dialect: Dialect, earlier: &[Value], answer: &mut Value) {
    for before in earlier.iter().rev() {
        if dialect == Dialect::Chat {
            put_text_before(before, answer);
            continue;
        }
        let name = list_name(dialect);
        let shown = before.get(name).and_then(Value::as_array);
        let list = answer.get_mut(name).and_then(Value::as_array_mut);
        if let (Some(shown), Some(list)) = (shown, list) {
            list.splice(0..0, shown.iter().cloned());
        }
    }
}

fn put_text_before(before: &Value, answer: &mut Value) {
    for field in ["content", "reasoning_content"] {
        let said = before
            .pointer("/choices/0/message")
            .and_then(|said| said.get(field)?.as_str());
        let Some(said) = said.filter(|said| !said.is_empty()) else {
            continue;
        };
        if let Some(message) = message(answer).and_then(Value::as_object_mut) {
            let text = message
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or_default();
            message.insert(field.to_owned(), json!(format!("{said}{text}")));
        }
    }
}

fn message(answer: &mut Value) -> Option<&mut Value> {
    answer.pointer_mut("/choices/0/message")
}

fn list_name(dialect: Dialect) -> &'static str {
    if dialect == Dialect::Responses {
        "output"
    } else {
        "content"
    }
}

/// The list that contains the calls of an answer.
fn call_list(dialect: Dialect, answer: &mut Value) -> Option<&mut Vec<Value>> {
    let list = match dialect {
        Dialect::Chat => message(answer)?.get_mut("tool_calls"),
        Dialect::Messages | Dialect::Responses => answer.get_mut(list_name(dialect)),
    };
    list?.as_array_mut()
}

fn is_ours(dialect: Dialect, names: ToolNames, part: &Value) -> bool {
    let text = |pointer: &str| part.pointer(pointer).and_then(Value::as_str);
    let name = match dialect {
        Dialect::Chat => text("/function/name"),
        Dialect::Messages => text("/name").filter(|_| text("/type") == Some("tool_use")),
        Dialect::Responses => text("/name").filter(|_| text("/type") == Some("function_call")),
    };
    name.is_some_and(|name| names.serves(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_ours_are_hidden_and_texts_joined() {
        let chat = |text: &str, calls: Value| {
            json!({"choices": [{"finish_reason": "tool_calls",
                "message": {"content": text, "tool_calls": calls}}]})
        };
        let call = |name: &str| json!({"id": "c", "function": {"name": name}});
        let mut first = chat("Let me see. ", json!([call("tool_output_cache")]));
        let names = ToolNames::default();
        assert!(hide(Dialect::Chat, names, &mut first));
        assert_eq!(first["choices"][0]["finish_reason"], "stop");
        let mut last = chat("Done.", json!([call("read")]));
        assert!(!hide(Dialect::Chat, names, &mut last));
        prepend_shown(Dialect::Chat, &[first], &mut last);
        assert_eq!(
            last["choices"][0]["message"]["content"],
            "Let me see. Done."
        );

        let mut mixed = json!({"content": [{"type": "text", "text": "a"},
            {"type": "tool_use", "name": "tool_output_cache_grep"},
            {"type": "tool_use", "name": "read"}]});
        assert!(hide(Dialect::Messages, names, &mut mixed));
        assert_eq!(mixed["content"].as_array().unwrap().len(), 2);
        let earlier = json!({"content": [{"type": "text", "text": "b"}]});
        prepend_shown(Dialect::Messages, &[earlier], &mut mixed);
        assert_eq!(mixed["content"][0]["text"], "b");
    }
}
