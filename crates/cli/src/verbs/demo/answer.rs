//! Answers of the demo's provider in the Messages dialect.

use std::fmt::Write as _;

use serde_json::{Value, json};
use trimtab_model::Usage;
use trimtab_model::estimate::Measure;
use trimtab_wire::script::{ScriptedArguments, ScriptedReply};

/// The tokens of a reply.
pub(super) fn tokens(reply: &ScriptedReply) -> u64 {
    let mut measure = Measure::of_text(&reply.text);
    for call in &reply.calls {
        measure += Measure::of_text(&call.name);
        measure += Measure::of_text(&call.arguments.to_text());
    }
    measure.tokens().max(1)
}

/// A reply as one JSON document. `number` makes its ids unique.
pub(super) fn message(reply: &ScriptedReply, number: usize, model: &str, usage: &Usage) -> Value {
    let mut content = Vec::new();
    if !reply.text.is_empty() {
        content.push(json!({"type": "text", "text": reply.text}));
    }
    content.extend(reply.calls.iter().enumerate().map(|(at, call)| {
        let id = call.id.clone();
        let id = id.unwrap_or_else(|| format!("toolu_demo_{number}_{at}"));
        let input = match &call.arguments {
            ScriptedArguments::Object(input) => json!(input),
            ScriptedArguments::Raw(text) => json!({"text": text}),
        };
        json!({"type": "tool_use", "id": id, "name": call.name, "input": input})
    }));
    let stop = if reply.calls.is_empty() {
        "end_turn"
    } else {
        "tool_use"
    };
    json!({
        "id": format!("msg_demo_{number}"), "type": "message", "role": "assistant",
        "model": model, "content": content, "stop_reason": stop, "stop_sequence": null,
        "usage": {
            "input_tokens": usage.input,
            "cache_creation_input_tokens": usage.cache_creation,
            "cache_read_input_tokens": usage.cache_read,
            "output_tokens": usage.output,
        },
    })
}

/// The same reply as a stream of events.
pub(super) fn events(message: &Value) -> String {
    let mut text = String::new();
    let mut event = |name: &str, mut data: Value| {
        if let Some(fields) = data.as_object_mut() {
            fields.insert("type".to_owned(), json!(name));
        }
        // Writing into a String cannot fail.
        let _ = write!(text, "event: {name}\ndata: {data}\n\n");
    };
    let mut start = message.clone();
    if let Some(fields) = start.as_object_mut() {
        fields.insert("content".to_owned(), json!([]));
        fields.insert("stop_reason".to_owned(), Value::Null);
    }
    event("message_start", json!({"message": start}));
    let content = message.get("content").and_then(Value::as_array);
    for (index, part) in content.into_iter().flatten().enumerate() {
        let (block, delta) = opened(part);
        event(
            "content_block_start",
            json!({"index": index, "content_block": block}),
        );
        event(
            "content_block_delta",
            json!({"index": index, "delta": delta}),
        );
        event("content_block_stop", json!({"index": index}));
    }
    let delta = json!({"stop_reason": message["stop_reason"], "stop_sequence": null});
    event(
        "message_delta",
        json!({"delta": delta, "usage": message["usage"]}),
    );
    event("message_stop", json!({}));
    text
}

/// A part at its start, and its complete delta.
fn opened(part: &Value) -> (Value, Value) {
    let (field, empty, delta) = if let Some(input) = part.get("input") {
        let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
        ("input", json!({}), delta)
    } else {
        let delta = json!({"type": "text_delta", "text": part.get("text")});
        ("text", json!(""), delta)
    };
    let mut block = part.clone();
    if let Some(fields) = block.as_object_mut() {
        fields.insert(field.to_owned(), empty);
    }
    (block, delta)
}
