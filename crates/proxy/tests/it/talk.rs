//! Conversations as clients send them, in three dialects.

use serde_json::{Value, json};
use trimtab_engine::view::tools::ToolNames;
use trimtab_model::{Dialect, RawJson};

pub(crate) fn path(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat => "/v1/chat/completions",
        Dialect::Messages => "/v1/messages",
        Dialect::Responses => "/v1/responses",
    }
}

/// A conversation that grows.
#[derive(Clone, Debug)]
pub(crate) struct Talk {
    pub(crate) dialect: Dialect,
    pub(crate) model: String,
    pub(crate) stream: bool,
    pub(crate) max_tokens: u64,
    /// True if the client offers its tool in every request, as an agent does.
    pub(crate) has_tools: bool,
    pub(crate) entries: Vec<Value>,
}

impl Talk {
    pub(crate) fn new(dialect: Dialect, first: &str) -> Self {
        let mut talk = Self {
            dialect,
            model: "house-model".to_owned(),
            stream: false,
            max_tokens: 500,
            has_tools: true,
            entries: Vec::new(),
        };
        if dialect == Dialect::Chat {
            talk.entries
                .push(json!({"role": "system", "content": "be helpful"}));
        }
        talk.user(first);
        talk
    }

    pub(crate) fn user(&mut self, text: &str) -> &mut Self {
        self.entries.push(json!({"role": "user", "content": text}));
        self
    }

    pub(crate) fn says(&mut self, text: &str) -> &mut Self {
        self.entries.push(match self.dialect {
            Dialect::Chat | Dialect::Messages => json!({"role": "assistant", "content": text}),
            Dialect::Responses => json!({"type": "message", "role": "assistant",
                "content": [{"type": "output_text", "text": text}]}),
        });
        self
    }

    /// A call and its output.
    pub(crate) fn round(&mut self, id: &str, output: &str) -> &mut Self {
        self.call(id, "read").output(id, output)
    }

    pub(crate) fn call(&mut self, id: &str, tool: &str) -> &mut Self {
        self.entries.push(match self.dialect {
            Dialect::Chat => json!({"role": "assistant", "content": null, "tool_calls": [
                {"id": id, "type": "function", "function": {"name": tool, "arguments": "{}"}}]}),
            Dialect::Messages => json!({"role": "assistant", "content": [
                {"type": "tool_use", "id": id, "name": tool, "input": {}}]}),
            Dialect::Responses => json!({"type": "function_call", "call_id": id, "name": tool,
                "arguments": "{}"}),
        });
        self
    }

    pub(crate) fn output(&mut self, id: &str, output: &str) -> &mut Self {
        self.entries.push(match self.dialect {
            Dialect::Chat => json!({"role": "tool", "tool_call_id": id, "content": output}),
            Dialect::Messages => json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": id, "content": output}]}),
            Dialect::Responses => json!({"type": "function_call_output", "call_id": id,
                "output": output}),
        });
        self
    }

    pub(crate) fn body(&self) -> String {
        let tool = match self.dialect {
            Dialect::Chat => json!({"type": "function", "function": {"name": "read",
                "parameters": {"type": "object"}}}),
            Dialect::Messages => json!({"name": "read", "input_schema": {"type": "object"}}),
            Dialect::Responses => json!({"type": "function", "name": "read",
                "parameters": {"type": "object"}}),
        };
        let mut body = match self.dialect {
            Dialect::Chat => json!({"model": self.model, "messages": self.entries,
                "max_completion_tokens": self.max_tokens}),
            Dialect::Messages => json!({"model": self.model, "system": "be helpful",
                "messages": self.entries, "max_tokens": self.max_tokens}),
            Dialect::Responses => json!({"model": self.model, "instructions": "be helpful",
                "input": self.entries, "max_output_tokens": self.max_tokens, "store": false}),
        };
        if self.has_tools {
            body["tools"] = json!([tool]);
        }
        if self.stream {
            body["stream"] = json!(true);
        }
        body.to_string()
    }
}

/// A body without our tools, which are behind the client's.
pub(crate) fn without_our_tools(dialect: Dialect, body: &str) -> String {
    let ours = ToolNames::default().definitions();
    let ours = ours.map(|tool| format!(",{}", RawJson::of(&tool.in_dialect(dialect)).as_str()));
    body.replacen(&ours.concat(), "", 1)
}

/// True if the model may call our tools.
pub(crate) fn may_call(asked: &Value) -> bool {
    let choice = &asked["tool_choice"];
    let is_none = choice == "none" || choice["type"] == "none";
    asked["tools"].to_string().contains("tool_output_cache") && !is_none
}

/// Lines that differ.
pub(crate) fn lines(count: usize) -> String {
    let line = |at: usize| format!("line {at}: the value is {}", at * 7919 % 1000);
    let lines: Vec<String> = (0..count).map(line).collect();
    lines.join("\n") + "\n"
}

/// A whole answer that is a text.
pub(crate) fn answer(dialect: Dialect, text: &str, prompt: u64) -> String {
    match dialect {
        Dialect::Chat => json!({"id": "a1", "object": "chat.completion", "choices": [{"index": 0,
            "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
            "usage": {"prompt_tokens": prompt, "completion_tokens": 5}}),
        Dialect::Messages => json!({"id": "m1", "type": "message", "role": "assistant",
            "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
            "usage": {"input_tokens": prompt, "output_tokens": 5}}),
        Dialect::Responses => json!({"id": "r1", "object": "response", "status": "completed",
            "error": null, "output": [{"type": "message", "id": "i1", "role": "assistant",
            "content": [{"type": "output_text", "text": text}]}],
            "usage": {"input_tokens": prompt, "output_tokens": 5}}),
    }
    .to_string()
}

/// An answer that calls a tool.
pub(crate) fn calling(dialect: Dialect, id: &str, tool: &str, arguments: &Value) -> String {
    match dialect {
        Dialect::Chat => json!({"id": "a1", "object": "chat.completion", "choices": [{"index": 0,
            "finish_reason": "tool_calls", "message": {"role": "assistant", "content": null,
            "tool_calls": [{"id": id, "type": "function",
                "function": {"name": tool, "arguments": arguments.to_string()}}]}}],
            "usage": {"prompt_tokens": 50, "completion_tokens": 5}}),
        Dialect::Messages => json!({"id": "m1", "type": "message", "role": "assistant",
            "content": [{"type": "tool_use", "id": id, "name": tool, "input": arguments}],
            "stop_reason": "tool_use", "usage": {"input_tokens": 50, "output_tokens": 5}}),
        Dialect::Responses => json!({"id": "r1", "object": "response", "status": "completed",
            "error": null, "output": [{"type": "function_call", "id": "i1", "call_id": id,
            "name": tool, "arguments": arguments.to_string()}],
            "usage": {"input_tokens": 50, "output_tokens": 5}}),
    }
    .to_string()
}

/// A whole answer as a stream.
#[expect(
    clippy::too_many_lines,
    reason = "the events of three dialects, one after the other"
)]
pub(crate) fn streamed(dialect: Dialect, whole: &str) -> String {
    let whole: Value = serde_json::from_str(whole).unwrap();
    let mut events = Vec::new();
    match dialect {
        Dialect::Chat => {
            let message = &whole["choices"][0]["message"];
            let chunk = |delta: Value, stop: Value| {
                json!({"id": whole["id"], "object": "chat.completion.chunk",
                    "choices": [{"index": 0, "delta": delta, "finish_reason": stop}]})
            };
            events.push((
                None,
                chunk(json!({"role": "assistant", "content": ""}), Value::Null),
            ));
            if let Some(text) = message["content"].as_str() {
                for piece in text.split_inclusive(' ') {
                    events.push((None, chunk(json!({"content": piece}), Value::Null)));
                }
            }
            for (index, call) in message["tool_calls"]
                .as_array()
                .into_iter()
                .flatten()
                .enumerate()
            {
                let mut call = call.clone();
                call["index"] = json!(index);
                events.push((None, chunk(json!({"tool_calls": [call]}), Value::Null)));
            }
            events.push((
                None,
                chunk(json!({}), whole["choices"][0]["finish_reason"].clone()),
            ));
            events.push((
                None,
                json!({"id": whole["id"], "choices": [], "usage": whole["usage"]}),
            ));
        }
        Dialect::Messages => {
            let mut start = whole.clone();
            start["content"] = json!([]);
            start["stop_reason"] = Value::Null;
            events.push((
                Some("message_start"),
                json!({"type": "message_start", "message": start}),
            ));
            for (index, part) in whole["content"].as_array().unwrap().iter().enumerate() {
                let mut begun = part.clone();
                let deltas: Vec<Value> = if part["type"] == "text" {
                    begun["text"] = json!("");
                    let text = part["text"].as_str().unwrap();
                    text.split_inclusive(' ')
                        .map(|piece| json!({"type": "text_delta", "text": piece}))
                        .collect()
                } else {
                    begun["input"] = json!({});
                    vec![
                        json!({"type": "input_json_delta", "partial_json": part["input"].to_string()}),
                    ]
                };
                events.push((
                    Some("content_block_start"),
                    json!({"type": "content_block_start", "index": index, "content_block": begun}),
                ));
                for delta in deltas {
                    events.push((
                        Some("content_block_delta"),
                        json!({"type": "content_block_delta", "index": index, "delta": delta}),
                    ));
                }
                events.push((
                    Some("content_block_stop"),
                    json!({"type": "content_block_stop", "index": index}),
                ));
            }
            events.push((
                Some("message_delta"),
                json!({"type": "message_delta",
                "delta": {"stop_reason": whole["stop_reason"]}, "usage": whole["usage"]}),
            ));
            events.push((Some("message_stop"), json!({"type": "message_stop"})));
        }
        Dialect::Responses => {
            let mut begun = whole.clone();
            begun["output"] = json!([]);
            begun["status"] = json!("in_progress");
            events.push((
                Some("response.created"),
                json!({"type": "response.created", "response": begun}),
            ));
            for (index, item) in whole["output"].as_array().unwrap().iter().enumerate() {
                events.push((Some("response.output_item.added"),
                    json!({"type": "response.output_item.added", "output_index": index, "item": item})));
                if let Some(text) = item["content"][0]["text"].as_str() {
                    for piece in text.split_inclusive(' ') {
                        events.push((Some("response.output_text.delta"),
                            json!({"type": "response.output_text.delta", "output_index": index, "delta": piece})));
                    }
                }
                events.push((Some("response.output_item.done"),
                    json!({"type": "response.output_item.done", "output_index": index, "item": item})));
            }
            events.push((
                Some("response.completed"),
                json!({"type": "response.completed", "response": whole}),
            ));
        }
    }
    let mut stream = String::new();
    for (sequence, (name, mut data)) in events.into_iter().enumerate() {
        if dialect == Dialect::Responses {
            data["sequence_number"] = json!(sequence);
        }
        if let Some(name) = name {
            stream.extend(["event: ", name, "\n"]);
        }
        stream.extend(["data: ", &data.to_string(), "\n\n"]);
    }
    if dialect == Dialect::Chat {
        stream.push_str("data: [DONE]\n\n");
    }
    stream
}

/// The text of a stream or a whole answer.
pub(crate) fn said(dialect: Dialect, got: &str) -> String {
    if got.trim_start().starts_with('{') {
        let whole: Value = serde_json::from_str(got).unwrap();
        return match dialect {
            Dialect::Chat => whole["choices"][0]["message"]["content"]
                .as_str()
                .unwrap_or("")
                .to_owned(),
            Dialect::Messages => texts(&whole["content"], "text"),
            Dialect::Responses => whole["output"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|item| texts(&item["content"], "text"))
                .collect(),
        };
    }
    let mut text = String::new();
    let mut watcher = trimtab_wire::sse::StreamWatcher::new(dialect);
    watcher.push(got.as_bytes(), |event| {
        if let trimtab_wire::sse::StreamEvent::Text(delta) = event {
            text.push_str(&delta.text());
        }
    });
    text
}

fn texts(parts: &Value, name: &str) -> String {
    parts
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|part| part[name].as_str())
        .collect()
}

/// The same, or the answer as it is if it is none.
pub(crate) fn said_or_raw(dialect: Dialect, got: &str) -> String {
    match serde_json::from_str::<Value>(got) {
        Ok(Value::Object(_)) => said(dialect, got),
        _ => got.to_owned(),
    }
}

/// `whole`, in which something is said before the call.
pub(crate) fn with_text(dialect: Dialect, whole: &str, text: &str) -> String {
    let mut whole: Value = serde_json::from_str(whole).unwrap();
    match dialect {
        Dialect::Chat => whole["choices"][0]["message"]["content"] = json!(text),
        Dialect::Messages => {
            let parts = whole["content"].as_array_mut().unwrap();
            parts.insert(0, json!({"type": "text", "text": text}));
        }
        Dialect::Responses => {
            let items = whole["output"].as_array_mut().unwrap();
            items.insert(
                0,
                json!({"type": "message", "id": "i0", "role": "assistant",
                "content": [{"type": "output_text", "text": text}]}),
            );
        }
    }
    whole.to_string()
}
