//! Sessions as agents write them down.

use serde_json::{Value, json};

use super::dialects::{calls, messages, responses};
use super::made::Happened;

pub(super) fn claude_code(at: usize, happened: &Happened) -> Vec<Value> {
    let entries = messages(at, happened);
    let mut lines = Vec::new();
    for (number, entry) in entries.into_iter().enumerate() {
        let user = entry["role"] == "user";
        // An answer is written down part by part.
        let pieces: Vec<Value> = match &entry["content"] {
            Value::Array(parts) if !user => parts.iter().map(|part| json!([part])).collect(),
            content => vec![content.clone()],
        };
        for (piece, content) in pieces.into_iter().enumerate() {
            let uuid = format!("u{at}-{number}-{piece}");
            let mut message = json!({"role": entry["role"], "content": content});
            if !user {
                message["id"] = json!(format!("m{at}"));
                message["model"] = json!("claude");
            }
            lines.push(
                json!({"type": entry["role"], "uuid": uuid, "parentUuid": null,
                "isSidechain": false, "sessionId": "s", "cwd": "/w", "message": message}),
            );
        }
    }
    lines.push(json!({"type": "progress", "uuid": format!("p{at}"), "sessionId": "s", "data": at}));
    lines
}

pub(super) fn codex(at: usize, happened: &Happened) -> Vec<Value> {
    let entries = responses(at, happened).into_iter();
    let mut lines: Vec<Value> = entries
        .map(|payload| json!({"timestamp": "t", "type": "response_item", "payload": payload, "n": at}))
        .collect();
    lines.push(json!({"timestamp": "t", "type": "event_msg", "payload": {"type": "task_complete", "n": at}}));
    lines
}

pub(super) fn opencode(at: usize, happened: &Happened) -> Vec<Value> {
    match happened {
        Happened::Asked(text) => vec![
            json!({"info": {"role": "user", "id": format!("m{at}"), "sessionID": "s"},
            "parts": [{"type": "text", "text": text, "id": at}]}),
        ],
        Happened::Answered {
            thought,
            text,
            calls: made,
        } => {
            let mut parts = vec![json!({"type": "step-start"})];
            parts.extend(
                thought
                    .as_ref()
                    .map(|text| json!({"type": "reasoning", "text": text})),
            );
            parts.extend(
                text.as_ref()
                    .map(|text| json!({"type": "text", "text": text})),
            );
            for (id, output) in calls(at, made) {
                let state = match output {
                    Some((text, true)) => {
                        json!({"status": "error", "input": {"a": 1}, "error": text, "time": 1})
                    }
                    Some((text, false)) => {
                        json!({"status": "completed", "input": {"a": 1}, "output": text, "time": 1})
                    }
                    None => json!({"status": "running", "input": {"a": 1}}),
                };
                parts.push(json!({"type": "tool", "callID": id, "tool": "f", "state": state}));
            }
            parts.push(json!({"type": "step-finish"}));
            // What follows stands in the same message.
            parts.push(json!({"type": "step-start"}));
            parts.push(json!({"type": "text", "text": "so far"}));
            vec![
                json!({"info": {"role": "assistant", "id": format!("m{at}"), "sessionID": "s", "modelID": "o"}, "parts": parts}),
            ]
        }
    }
}
