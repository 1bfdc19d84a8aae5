//! The events of a chat as lines of JSON.

use serde_json::{Value, json};
use trimtab_agent::{AgentEvent, TurnEnd, TurnResult};
use trimtab_model::{Output, Usage};

use super::open_chat::OpenChat;

/// The first line: model, preset and session.
pub(super) fn start(chat: &OpenChat) -> Value {
    let settings = chat.agent.settings();
    json!({
        "type": "start",
        "session": chat.id().as_str(),
        "model": settings.model.name,
        "preset": settings.policy.preset,
        "window": settings.limits.window,
    })
}

/// The line of an event, unless other lines already cover it.
pub(super) fn event(event: &AgentEvent) -> Option<Value> {
    Some(match event {
        AgentEvent::Text(text) => json!({"type": "text", "text": text}),
        AgentEvent::Reasoning(text) => json!({"type": "reasoning", "text": text}),
        AgentEvent::Call(call) => json!({
            "type": "call", "id": call.id, "tool": call.name, "arguments": call.arguments,
        }),
        AgentEvent::Output { tool, output } => of_output(tool, output),
        AgentEvent::Usage(usage) => typed("usage", &of_usage(usage)),
        AgentEvent::Retry { attempt, wait, why } => json!({
            "type": "retry", "attempt": attempt, "wait_seconds": wait.as_secs_f64(), "why": why,
        }),
        AgentEvent::BrokeOff { why } => json!({"type": "broke_off", "why": why}),
        AgentEvent::Summarising {
            background,
            tokens,
            messages,
        } => json!({
            "type": "summarising", "background": background,
            "tokens_before": tokens, "messages_before": messages,
        }),
        AgentEvent::Session(event) => typed("session", &json!(event)),
        _ => return None,
    })
}

/// The last line of a completed turn.
pub(super) fn end(turn: &TurnResult) -> Value {
    json!({
        "type": "end",
        "end": name(turn.end),
        "text": turn.text,
        "rounds": turn.rounds,
        "usage": of_usage(&turn.usage),
    })
}

/// The last line of a failed turn.
pub(super) fn error(message: &str, hint: Option<&str>) -> Value {
    json!({"type": "error", "message": message, "hint": hint})
}

fn of_output(tool: &str, output: &Output) -> Value {
    let stored = output.stored.as_ref();
    json!({
        "type": "output",
        "id": output.call_id,
        "tool": tool,
        "is_error": output.is_error,
        "view": output.text(),
        "trimmed": output.trimmed,
        "ref": stored.map(trimtab_model::Ref::id),
        "byte_size": stored.and_then(trimtab_model::Ref::byte_size),
        "line_count": stored.and_then(trimtab_model::Ref::line_count),
    })
}

fn of_usage(usage: &Usage) -> Value {
    json!(usage)
}

/// An object with its `type`.
fn typed(name: &str, fields: &Value) -> Value {
    let mut line = serde_json::Map::from_iter([("type".to_owned(), json!(name))]);
    if let Value::Object(fields) = fields {
        line.extend(fields.clone());
    }
    Value::Object(line)
}

fn name(end: TurnEnd) -> &'static str {
    match end {
        TurnEnd::Answered => "answered",
        TurnEnd::CutOff => "cut_off",
        TurnEnd::Interrupted => "interrupted",
        TurnEnd::OutOfRounds => "out_of_rounds",
    }
}
