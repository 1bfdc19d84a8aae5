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

pub(super) fn copilot(at: usize, happened: &Happened) -> Vec<Value> {
    let line = |type_name: &str, id: String, data: Value| json!({"type": type_name, "data": data, "id": id, "timestamp": "t", "parentId": null});
    match happened {
        Happened::Asked(text) => vec![line(
            "user.message",
            format!("e{at}"),
            json!({"content": text, "k": at}),
        )],
        Happened::Answered {
            thought,
            text,
            calls: made,
        } => {
            let made = calls(at, made);
            let requests: Vec<Value> = made.iter().map(|(id, _)| {
                json!({"toolCallId": id, "name": "f", "arguments": {"a": 1}, "type": "function"})
            }).collect();
            let mut data = json!({"messageId": at, "content": text.clone().unwrap_or_default(), "toolRequests": requests});
            if let Some(thought) = thought {
                data["reasoningText"] = json!(thought);
            }
            let mut all = vec![line("assistant.message", format!("e{at}"), data)];
            for (number, (id, output)) in made.iter().enumerate() {
                all.extend(output.map(|(text, failed)| {
                    let data = json!({"toolCallId": id, "success": !failed, "result": {"content": text}, "k": 1});
                    line("tool.execution_complete", format!("e{at}-{number}"), data)
                }));
            }
            all
        }
    }
}

/// With outputs in the answers only (`apart` false), or on a line of their own as well.
pub(super) fn gemini_as(at: usize, happened: &Happened, apart: bool) -> Vec<Value> {
    match happened {
        Happened::Asked(text) => {
            vec![
                json!({"id": format!("g{at}"), "timestamp": "t", "type": "user", "content": [{"text": text}]}),
            ]
        }
        Happened::Answered {
            thought,
            text,
            calls: made,
        } => {
            let made = calls(at, made);
            let response = |id: &str, text: &str, failed: bool| {
                let name = if failed { "error" } else { "output" };
                json!({"functionResponse": {"id": id, "name": "f", "response": {name: text}}})
            };
            let requests: Vec<Value> = made
                .iter()
                .map(|(id, output)| {
                    let mut call = json!({"id": id, "name": "f", "args": {"a": 1}, "status": "s"});
                    if let Some((text, failed)) = output {
                        call["result"] = json!([response(id, text, *failed)]);
                    }
                    call
                })
                .collect();
            let thoughts: Vec<Value> = thought
                .iter()
                .map(|text| json!({"subject": "s", "description": text}))
                .collect();
            let first = json!({"id": format!("g{at}"), "type": "gemini", "content": text.clone().unwrap_or_default(),
                "thoughts": thoughts, "model": "g"});
            let mut whole = first.clone();
            whole["toolCalls"] = json!(requests);
            let mut all = vec![first, whole];
            let outputs: Vec<Value> = made
                .iter()
                .filter_map(|(id, output)| output.map(|(text, failed)| response(id, text, *failed)))
                .collect();
            if apart && !outputs.is_empty() {
                all.push(json!({"id": format!("o{at}"), "type": "user", "content": outputs}));
            }
            all
        }
    }
}

pub(super) fn gemini(at: usize, happened: &Happened) -> Vec<Value> {
    gemini_as(at, happened, true)
}

pub(super) fn gemini_inside(at: usize, happened: &Happened) -> Vec<Value> {
    gemini_as(at, happened, false)
}

pub(super) fn atif(at: usize, happened: &Happened) -> Vec<Value> {
    match happened {
        Happened::Asked(text) => {
            vec![json!({"step_id": at, "source": "user", "message": text, "extra": {"x": 1.50}})]
        }
        Happened::Answered {
            thought,
            text,
            calls: made,
        } => {
            let (mut called, mut results) = (Vec::new(), Vec::new());
            for (id, output) in calls(at, made) {
                called
                    .push(json!({"tool_call_id": id, "function_name": "f", "arguments": {"a": 1}}));
                let output = output.as_ref();
                results
                    .extend(output.map(|(text, _)| json!({"source_call_id": id, "content": text})));
            }
            vec![json!({
                "step_id": at, "source": "agent", "message": text.as_deref().unwrap_or("so far"),
                "reasoning_content": thought, "tool_calls": called, "model_name": "o",
                "observation": {"results": results},
            })]
        }
    }
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
