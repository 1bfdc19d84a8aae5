//! Sessions as agents write them down.

use serde_json::{Value, json};

use super::dialects::{messages, responses};
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
