//! Answers of Chat Completions.

use serde_json::{Value, json};

use super::{AnswerEvent, CREATED, OutgoingReply, pieces};
use crate::script::ScriptedStop;

pub(super) fn whole(answer: &OutgoingReply) -> Value {
    let calls: Vec<Value> = answer
        .calls()
        .map(|(id, call)| {
            let function = json!({"name": call.name, "arguments": call.arguments.to_text()});
            json!({"id": id, "type": "function", "function": function})
        })
        .collect();
    let text = &answer.reply.text;
    let content = (!text.is_empty()).then_some(text);
    let mut message = json!({"role": "assistant", "content": content, "refusal": null});
    if let Some(fields) = message.as_object_mut() {
        if !answer.reply.reasoning.is_empty() {
            fields.insert(
                "reasoning_content".to_owned(),
                json!(answer.reply.reasoning),
            );
        }
        if !calls.is_empty() {
            fields.insert("tool_calls".to_owned(), json!(calls));
        }
    }
    let choice = json!({
        "index": 0, "message": message, "logprobs": null, "finish_reason": finish(answer),
    });
    json!({
        "id": format!("chatcmpl-{}", answer.id), "object": "chat.completion",
        "created": CREATED, "model": answer.model, "choices": [choice],
        "usage": usage(answer), "service_tier": "default", "system_fingerprint": "fp_scripted",
    })
}

pub(super) fn events(answer: &OutgoingReply) -> Vec<AnswerEvent> {
    let mut deltas = vec![json!({"role": "assistant", "content": "", "refusal": null})];
    let thoughts = pieces(&answer.reply.reasoning).into_iter();
    deltas.extend(thoughts.map(|piece| json!({"reasoning_content": piece})));
    let texts = pieces(&answer.reply.text).into_iter();
    deltas.extend(texts.map(|piece| json!({"content": piece})));
    for (at, (id, call)) in answer.calls().enumerate() {
        let function = json!({"name": call.name, "arguments": ""});
        let begin = json!({"index": at, "id": id, "type": "function", "function": function});
        deltas.push(json!({"tool_calls": [begin]}));
        for piece in pieces(&call.arguments.to_text()) {
            let more = json!({"index": at, "function": {"arguments": piece}});
            deltas.push(json!({"tool_calls": [more]}));
        }
    }
    let mut events: Vec<AnswerEvent> = deltas
        .into_iter()
        .map(|delta| chunk(answer, &[choice(&delta, None)], None))
        .collect();
    events.push(chunk(
        answer,
        &[choice(&json!({}), Some(finish(answer)))],
        None,
    ));
    if answer.include_usage {
        events.push(chunk(answer, &[], Some(usage(answer))));
    }
    events.push(AnswerEvent::done());
    events
}

fn choice(delta: &Value, finish: Option<&str>) -> Value {
    json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish})
}

fn chunk(answer: &OutgoingReply, choices: &[Value], usage: Option<Value>) -> AnswerEvent {
    let mut data = json!({
        "id": format!("chatcmpl-{}", answer.id), "object": "chat.completion.chunk",
        "created": CREATED, "model": answer.model, "service_tier": "default",
        "system_fingerprint": "fp_scripted", "choices": choices,
    });
    if let Some(fields) = data.as_object_mut().filter(|_| answer.include_usage) {
        fields.insert("usage".to_owned(), usage.unwrap_or(Value::Null));
    }
    AnswerEvent::new(None, data)
}

fn finish(answer: &OutgoingReply) -> &'static str {
    match answer.reply.stop {
        ScriptedStop::Length => "length",
        ScriptedStop::End if answer.reply.calls.is_empty() => "stop",
        ScriptedStop::End => "tool_calls",
    }
}

fn usage(answer: &OutgoingReply) -> Value {
    let usage = &answer.usage;
    json!({
        "prompt_tokens": usage.prompt(), "completion_tokens": usage.output,
        "total_tokens": usage.total(),
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0, "audio_tokens": 0,
            "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
        },
    })
}
