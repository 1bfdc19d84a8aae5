//! Answers of Messages.

use serde_json::{Value, json};

use super::{AnswerEvent, OutgoingReply, arguments_value, pieces};
use crate::script::ScriptedStop;

pub(super) fn whole(answer: &OutgoingReply) -> Value {
    let mut content = Vec::new();
    if !answer.reply.reasoning.is_empty() {
        content.push(json!({
            "type": "thinking", "thinking": answer.reply.reasoning,
            "signature": answer.seal.as_deref().unwrap_or_default(),
        }));
    }
    if !answer.reply.text.is_empty() {
        content.push(json!({"type": "text", "text": answer.reply.text}));
    }
    content.extend(answer.calls().map(|(id, call)| {
        json!({"type": "tool_use", "id": id, "name": call.name, "input": arguments_value(call)})
    }));
    message(
        answer,
        &content,
        Some(stop(answer)),
        &usage(answer, answer.usage.output),
    )
}

fn message(answer: &OutgoingReply, content: &[Value], stop: Option<&str>, usage: &Value) -> Value {
    json!({
        "id": format!("msg_01{}", answer.id), "type": "message", "role": "assistant",
        "model": answer.model, "content": content, "stop_reason": stop,
        "stop_sequence": null, "usage": usage,
    })
}

pub(super) fn events(answer: &OutgoingReply) -> Vec<AnswerEvent> {
    let start = message(answer, &[], None, &usage(answer, 1));
    let mut writer = MessagesEventWriter::default();
    writer.event("message_start", json!({"message": start}));
    writer.thought(answer);
    if !answer.reply.text.is_empty() {
        let deltas = pieces(&answer.reply.text).into_iter();
        let deltas = deltas.map(|piece| json!({"type": "text_delta", "text": piece}));
        writer.part(&json!({"type": "text", "text": ""}), deltas.collect());
    }
    for (id, call) in answer.calls() {
        let start = json!({"type": "tool_use", "id": id, "name": call.name, "input": {}});
        let arguments = call.arguments.to_text();
        let empty = std::iter::once("");
        let deltas = empty.chain(pieces(&arguments));
        let deltas = deltas.map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
        writer.part(&start, deltas.collect());
    }
    let delta = json!({"stop_reason": stop(answer), "stop_sequence": null});
    let figures = usage(answer, answer.usage.output);
    writer.event("message_delta", json!({"delta": delta, "usage": figures}));
    writer.event("message_stop", json!({}));
    writer.events
}

#[derive(Default)]
struct MessagesEventWriter {
    events: Vec<AnswerEvent>,
    index: usize,
}

impl MessagesEventWriter {
    fn event(&mut self, name: &'static str, mut data: Value) {
        if let Some(fields) = data.as_object_mut() {
            fields.insert("type".to_owned(), json!(name));
        }
        self.events.push(AnswerEvent::new(Some(name), data));
    }

    fn thought(&mut self, answer: &OutgoingReply) {
        if answer.reply.reasoning.is_empty() {
            return;
        }
        let pieces = pieces(&answer.reply.reasoning).into_iter();
        let mut deltas: Vec<Value> = pieces
            .map(|piece| json!({"type": "thinking_delta", "thinking": piece}))
            .collect();
        if let Some(seal) = &answer.seal {
            deltas.push(json!({"type": "signature_delta", "signature": seal}));
        }
        let start = json!({"type": "thinking", "thinking": "", "signature": ""});
        self.part(&start, deltas);
    }

    fn part(&mut self, start: &Value, deltas: Vec<Value>) {
        let index = self.index;
        let begin = json!({"index": index, "content_block": start});
        self.event("content_block_start", begin);
        if index == 0 {
            self.event("ping", json!({}));
        }
        for delta in deltas {
            self.event(
                "content_block_delta",
                json!({"index": index, "delta": delta}),
            );
        }
        self.event("content_block_stop", json!({"index": index}));
        self.index += 1;
    }
}

fn stop(answer: &OutgoingReply) -> &'static str {
    match answer.reply.stop {
        ScriptedStop::Length => "max_tokens",
        ScriptedStop::End if answer.reply.calls.is_empty() => "end_turn",
        ScriptedStop::End => "tool_use",
    }
}

fn usage(answer: &OutgoingReply, output: u64) -> Value {
    let usage = &answer.usage;
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_creation,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens":
                usage.cache_creation.saturating_sub(usage.cache_creation_long),
            "ephemeral_1h_input_tokens": usage.cache_creation_long,
        },
        "output_tokens": output,
    })
}
