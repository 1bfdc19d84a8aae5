//! Sessions as the dialects spell them.

use serde_json::{Value, json};

use super::made::Happened;

/// How a form spells a session; each gives the lines or elements of one thing that happened.
pub(super) type Spelled = fn(usize, &Happened) -> Vec<Value>;

/// The calls of an answer: id and output.
fn calls(at: usize, calls: &[Option<(String, bool)>]) -> Vec<(String, Option<&(String, bool)>)> {
    let calls = calls.iter().enumerate();
    calls
        .map(|(number, output)| (format!("c{at}-{number}"), output.as_ref()))
        .collect()
}

pub(super) fn chat(at: usize, happened: &Happened) -> Vec<Value> {
    match happened {
        Happened::Asked(text) => vec![json!({"role": "user", "content": text, "x": at})],
        Happened::Answered {
            thought,
            text,
            calls: made,
        } => {
            let made = calls(at, made);
            let asks = made.iter().map(|(id, _)| {
                json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}})
            });
            let mut answer = json!({"role": "assistant", "content": text, "y": at});
            if let Some(thought) = thought {
                answer["reasoning_content"] = json!(thought);
            }
            if !made.is_empty() {
                answer["tool_calls"] = asks.collect();
            }
            let mut all = vec![answer];
            for (id, output) in made {
                all.extend(output.map(|(text, _)| {
                    json!({"role": "tool", "tool_call_id": id, "content": text, "z": at})
                }));
            }
            all
        }
    }
}

fn parts(thought: Option<&String>, text: Option<&String>) -> Vec<Value> {
    let thought =
        thought.map(|text| json!({"type": "thinking", "thinking": text, "signature": "sealed"}));
    let text = text.map(|text| json!({"type": "text", "text": text}));
    thought.into_iter().chain(text).collect()
}

pub(super) fn messages(at: usize, happened: &Happened) -> Vec<Value> {
    match happened {
        Happened::Asked(text) => vec![json!({"role": "user", "content": text})],
        Happened::Answered {
            thought,
            text,
            calls: made,
        } => {
            let made = calls(at, made);
            let mut said = parts(thought.as_ref(), text.as_ref());
            said.extend(made.iter().map(
                |(id, _)| json!({"type": "tool_use", "id": id, "name": "f", "input": {"a": 1}}),
            ));
            let outputs: Vec<Value> = made
                .iter()
                .filter_map(|(id, output)| {
                    let (text, failed) = output.as_ref()?;
                    Some(json!({"type": "tool_result", "tool_use_id": id, "content": text, "is_error": failed}))
                })
                .collect();
            let mut all = vec![json!({"role": "assistant", "content": said})];
            if !outputs.is_empty() {
                all.push(json!({"role": "user", "content": outputs}));
            }
            all
        }
    }
}

pub(super) fn responses(at: usize, happened: &Happened) -> Vec<Value> {
    match happened {
        Happened::Asked(text) => {
            let content = json!([{"type": "input_text", "text": text}]);
            vec![json!({"type": "message", "role": "user", "content": content})]
        }
        Happened::Answered {
            thought,
            text,
            calls: made,
        } => {
            let made = calls(at, made);
            let mut all = Vec::new();
            all.extend(thought.as_ref().map(|text| {
                let summary = json!([{"type": "summary_text", "text": text}]);
                json!({"type": "reasoning", "id": format!("rs{at}"), "summary": summary, "encrypted_content": "e"})
            }));
            all.extend(text.as_ref().map(|text| {
                let content = json!([{"type": "output_text", "text": text}]);
                json!({"type": "message", "role": "assistant", "content": content})
            }));
            all.extend(made.iter().map(|(id, _)| {
                json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"})
            }));
            for (id, output) in &made {
                all.extend(output.map(|(text, _)| {
                    json!({"type": "function_call_output", "call_id": id, "output": text})
                }));
            }
            all
        }
    }
}
