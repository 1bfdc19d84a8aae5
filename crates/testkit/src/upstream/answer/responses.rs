//! Answers of Responses.

use serde_json::{Value, json};

use super::{AnswerEvent, CREATED, OutgoingReply, pieces};
use crate::script::{ScriptedCall, ScriptedStop};

pub(super) fn whole(answer: &OutgoingReply) -> Value {
    let output: Vec<Value> = items(answer).into_iter().map(|item| item.done).collect();
    response(answer, ItemState::Ended, &output)
}

/// An item of the output: as it begins, as it ends, and the events between.
struct OutputItem {
    begun: Value,
    done: Value,
    /// Names and data, without the places that all of them have.
    between: Vec<(&'static str, Value)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemState {
    Begun,
    Ended,
}

pub(super) fn events(answer: &OutgoingReply) -> Vec<AnswerEvent> {
    let mut writer = ResponsesEventWriter { events: Vec::new() };
    let begun = response(answer, ItemState::Begun, &[]);
    writer.event("response.created", json!({"response": begun}));
    writer.event("response.in_progress", json!({"response": begun}));
    let mut output = Vec::new();
    for (at, item) in items(answer).into_iter().enumerate() {
        let id = item.done.get("id").cloned().unwrap_or_default();
        writer.event(
            "response.output_item.added",
            json!({"output_index": at, "item": item.begun}),
        );
        for (name, mut data) in item.between {
            if let Some(fields) = data.as_object_mut() {
                fields.insert("item_id".to_owned(), id.clone());
                fields.insert("output_index".to_owned(), json!(at));
            }
            writer.event(name, data);
        }
        writer.event(
            "response.output_item.done",
            json!({"output_index": at, "item": item.done}),
        );
        output.push(item.done);
    }
    let name = match answer.reply.stop {
        ScriptedStop::End => "response.completed",
        ScriptedStop::Length => "response.incomplete",
    };
    let ended = response(answer, ItemState::Ended, &output);
    writer.event(name, json!({"response": ended}));
    writer.events
}

struct ResponsesEventWriter {
    events: Vec<AnswerEvent>,
}

impl ResponsesEventWriter {
    fn event(&mut self, name: &'static str, mut data: Value) {
        let sequence = self.events.len();
        if let Some(fields) = data.as_object_mut() {
            fields.insert("type".to_owned(), json!(name));
            fields.insert("sequence_number".to_owned(), json!(sequence));
        }
        self.events.push(AnswerEvent::new(Some(name), data));
    }
}

fn items(answer: &OutgoingReply) -> Vec<OutputItem> {
    let mut items = Vec::new();
    if !answer.reply.reasoning.is_empty() {
        items.push(thought(answer));
    }
    items.extend(answer.reply.items.iter().map(|item| OutputItem {
        begun: item.clone(),
        done: item.clone(),
        between: Vec::new(),
    }));
    if !answer.reply.text.is_empty() {
        let id = answer.item_id("msg", items.len());
        items.push(said(&id, &answer.reply.text));
    }
    for (call_id, call) in answer.calls() {
        let prefix = if call.custom { "ctc" } else { "fc" };
        let id = answer.item_id(prefix, items.len());
        items.push(called(&id, &call_id, call));
    }
    items
}

/// The ids of all items but the thought.
pub(super) fn ids(answer: &OutgoingReply) -> Vec<String> {
    let items = items(answer).into_iter().map(|item| item.done);
    let items = items.filter(|item| item.get("type").is_some_and(|kind| kind != "reasoning"));
    let ids = items.filter_map(|item| item.get("id")?.as_str().map(str::to_owned));
    ids.collect()
}

fn thought(answer: &OutgoingReply) -> OutputItem {
    let id = answer.thought_id();
    let text = &answer.reply.reasoning;
    let part = |text: &str| json!({"type": "summary_text", "text": text});
    let item = |summary: Value, seal: Option<&String>| {
        let mut item = json!({"id": id, "type": "reasoning", "summary": summary});
        if let (Some(seal), Some(fields)) = (seal, item.as_object_mut()) {
            fields.insert("encrypted_content".to_owned(), json!(seal));
        }
        item
    };
    let mut between = vec![(
        "response.reasoning_summary_part.added",
        json!({"summary_index": 0, "part": part("")}),
    )];
    between.extend(pieces(text).into_iter().map(|piece| {
        let data = json!({"summary_index": 0, "delta": piece});
        ("response.reasoning_summary_text.delta", data)
    }));
    between.push((
        "response.reasoning_summary_text.done",
        json!({"summary_index": 0, "text": text}),
    ));
    between.push((
        "response.reasoning_summary_part.done",
        json!({"summary_index": 0, "part": part(text)}),
    ));
    OutputItem {
        begun: item(json!([]), None),
        done: item(json!([part(text)]), answer.seal.as_ref()),
        between,
    }
}

fn said(id: &str, text: &str) -> OutputItem {
    let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []});
    let item = |status: &str, content: Value| {
        json!({
            "id": id, "type": "message", "status": status, "role": "assistant",
            "content": content,
        })
    };
    let mut between = vec![(
        "response.content_part.added",
        json!({"content_index": 0, "part": part("")}),
    )];
    between.extend(pieces(text).into_iter().map(|piece| {
        let data = json!({"content_index": 0, "delta": piece, "logprobs": []});
        ("response.output_text.delta", data)
    }));
    between.push((
        "response.output_text.done",
        json!({"content_index": 0, "text": text, "logprobs": []}),
    ));
    between.push((
        "response.content_part.done",
        json!({"content_index": 0, "part": part(text)}),
    ));
    OutputItem {
        begun: item("in_progress", json!([])),
        done: item("completed", json!([part(text)])),
        between,
    }
}

fn called(id: &str, call_id: &str, call: &ScriptedCall) -> OutputItem {
    let text = call.arguments.to_text();
    let (kind, field, delta, done) = if call.custom {
        (
            "custom_tool_call",
            "input",
            "response.custom_tool_call_input.delta",
            "response.custom_tool_call_input.done",
        )
    } else {
        (
            "function_call",
            "arguments",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
        )
    };
    let item = |status: &str, text: &str| {
        let mut item = json!({
            "id": id, "type": kind, "status": status, "call_id": call_id,
            "name": call.name, field: text,
        });
        if let (Some(caller), Some(fields)) = (&call.caller, item.as_object_mut()) {
            fields.insert("caller".to_owned(), caller.clone());
        }
        item
    };
    let deltas = pieces(&text).into_iter();
    let mut between: Vec<(&str, Value)> = deltas
        .map(|piece| (delta, json!({"delta": piece})))
        .collect();
    between.push((done, json!({field: text})));
    OutputItem {
        begun: item("in_progress", ""),
        done: item("completed", &text),
        between,
    }
}

fn response(answer: &OutgoingReply, state: ItemState, output: &[Value]) -> Value {
    let ended = state == ItemState::Ended;
    let cut = answer.reply.stop == ScriptedStop::Length;
    let status = match (ended, cut) {
        (false, _) => "in_progress",
        (true, false) => "completed",
        (true, true) => "incomplete",
    };
    let details = (ended && cut).then(|| json!({"reason": "max_output_tokens"}));
    json!({
        "id": format!("resp_{}", answer.id), "object": "response", "created_at": CREATED,
        "status": status, "background": false, "error": null,
        "incomplete_details": details, "instructions": null, "max_output_tokens": null,
        "model": answer.model, "output": output, "parallel_tool_calls": true,
        "previous_response_id": null, "reasoning": {"effort": null, "summary": null},
        "store": false, "temperature": 1.0, "text": {"format": {"type": "text"}},
        "tool_choice": "auto", "tools": [], "top_p": 1.0, "truncation": "disabled",
        "usage": ended.then(|| usage(answer)), "user": null, "metadata": {},
    })
}

fn usage(answer: &OutgoingReply) -> Value {
    let usage = &answer.usage;
    json!({
        "input_tokens": usage.prompt(),
        "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.total(),
    })
}
