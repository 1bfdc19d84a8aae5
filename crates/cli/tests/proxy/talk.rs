//! Conversations in three dialects, and a client to send them with.

use std::fmt::Write as _;

use http::Method;
use serde_json::{Value, json};
use trimtab_cli::proxy::http::{HttpAnswer, HttpClient};
use trimtab_model::Dialect;

use crate::run::PATIENCE;

/// What the user asks for first.
pub(crate) const TASK: &str = "THE-TASK: find out why the nightly import stops, and mend it";

/// Sends a body to a path of `url`.
pub(crate) async fn post(
    url: &str,
    path: &str,
    body: &Value,
    headers: &[(&str, &str)],
) -> HttpAnswer {
    let mut all = vec![
        ("content-type", "application/json"),
        ("anthropic-version", "2023-06-01"),
        ("x-api-key", "k"),
    ];
    all.extend(headers);
    let url = format!("{url}{path}");
    let body = body.to_string().into_bytes();
    HttpClient::default()
        .send(Method::POST, &url, &all, body, PATIENCE)
        .await
        .unwrap()
}

/// The path of a dialect.
pub(crate) fn path(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat => "/v1/chat/completions",
        Dialect::Responses => "/v1/responses",
        Dialect::Messages => "/v1/messages",
    }
}

/// A conversation with a call whose output has so many lines.
pub(crate) fn with_output(dialect: Dialect, lines: usize) -> Value {
    let output = log(lines);
    match dialect {
        Dialect::Chat => json!({
            "model": "gpt-4o", "max_completion_tokens": 500,
            "tools": [{"type": "function", "function": {"name": "read_log", "parameters": {"type": "object", "properties": {}}}}],
            "messages": [
                {"role": "user", "content": "read the log"},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "read_log", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "c1", "content": output},
            ],
        }),
        Dialect::Responses => json!({
            "model": "gpt-4o", "max_output_tokens": 500, "store": false,
            "tools": [{"type": "function", "name": "read_log", "parameters": {"type": "object", "properties": {}}}],
            "input": [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "read the log"}]},
                {"type": "function_call", "call_id": "c1", "name": "read_log", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c1", "output": output},
            ],
        }),
        Dialect::Messages => json!({
            "model": "claude-sonnet-4-5", "max_tokens": 500,
            "tools": [{"name": "read_log", "input_schema": {"type": "object", "properties": {}}}],
            "messages": [
                {"role": "user", "content": "read the log"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "read_log", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": output}]},
            ],
        }),
    }
}

/// Adds a call of the tool, by its id, and its output.
pub(crate) fn with_call(dialect: Dialect, body: &mut Value, id: &str, output: &str) {
    let (list, entries) = match dialect {
        Dialect::Chat => (
            "messages",
            [
                json!({"role": "assistant", "content": null, "tool_calls": [
                    {"id": id, "type": "function", "function": {"name": "read_log", "arguments": "{}"}}]}),
                json!({"role": "tool", "tool_call_id": id, "content": output}),
            ],
        ),
        Dialect::Responses => (
            "input",
            [
                json!({"type": "function_call", "call_id": id, "name": "read_log", "arguments": "{}"}),
                json!({"type": "function_call_output", "call_id": id, "output": output}),
            ],
        ),
        Dialect::Messages => (
            "messages",
            [
                json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "read_log", "input": {}}]}),
                json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": output}]}),
            ],
        ),
    };
    body[list].as_array_mut().unwrap().extend(entries);
}

/// A body that the client sends as its first, with a tool or without.
pub(crate) fn begun(dialect: Dialect, tool: bool) -> Value {
    let schema = json!({"type": "object", "properties": {"part": {"type": "string"}}});
    let (mut body, tools) = match dialect {
        Dialect::Chat => (
            json!({"model": "gpt-4o", "max_completion_tokens": 500, "messages": [
                {"role": "system", "content": "be brief"}, {"role": "user", "content": TASK}]}),
            json!([{"type": "function", "function": {"name": "read_log", "parameters": schema}}]),
        ),
        Dialect::Responses => (
            json!({"model": "gpt-4o", "max_output_tokens": 500, "store": false, "input": [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": TASK}]}]}),
            json!([{"type": "function", "name": "read_log", "parameters": schema}]),
        ),
        Dialect::Messages => (
            json!({"model": "claude-sonnet-4-5", "max_tokens": 500, "messages": [
                {"role": "user", "content": TASK}]}),
            json!([{"name": "read_log", "input_schema": schema}]),
        ),
    };
    if tool {
        body["tools"] = tools;
    }
    body
}

fn add(body: &mut Value, entries: Vec<Value>) {
    let list = if body.get("input").is_some() {
        "input"
    } else {
        "messages"
    };
    body[list].as_array_mut().unwrap().extend(entries);
}

/// Adds what the model said with a call for each output, and the outputs.
pub(crate) fn add_round(
    dialect: Dialect,
    body: &mut Value,
    number: usize,
    words: &str,
    outputs: &[String],
) {
    let id = |at: usize| format!("call_{number}_{at}");
    let arguments = |at: usize| json!({ "part": format!("part-{number:04}-{at}") });
    let each = || outputs.iter().enumerate();
    let mut entries = Vec::new();
    match dialect {
        Dialect::Chat => {
            let call = |at| {
                json!({"id": id(at), "type": "function", "function": {
                "name": "read_log", "arguments": arguments(at).to_string()}})
            };
            let calls: Vec<Value> = each().map(|(at, _)| call(at)).collect();
            entries.push(json!({"role": "assistant", "content": words, "tool_calls": calls}));
            let output =
                |(at, output)| json!({"role": "tool", "tool_call_id": id(at), "content": output});
            entries.extend(each().map(output));
        }
        Dialect::Responses => {
            entries.push(json!({"type": "message", "role": "assistant",
                "content": [{"type": "output_text", "text": words, "annotations": []}]}));
            let call = |at| {
                json!({"type": "function_call", "call_id": id(at), "name": "read_log",
                "arguments": arguments(at).to_string()})
            };
            entries.extend(each().map(|(at, _)| call(at)));
            let output = |(at, output)| {
                json!({"type": "function_call_output", "call_id": id(at),
                "output": output})
            };
            entries.extend(each().map(output));
        }
        Dialect::Messages => {
            let call = |at| {
                json!({"type": "tool_use", "id": id(at), "name": "read_log",
                "input": arguments(at)})
            };
            let mut said = vec![json!({"type": "text", "text": words})];
            said.extend(each().map(|(at, _)| call(at)));
            entries.push(json!({"role": "assistant", "content": said}));
            let output = |(at, output)| {
                json!({"type": "tool_result", "tool_use_id": id(at),
                "content": output})
            };
            let outputs: Vec<Value> = each().map(output).collect();
            entries.push(json!({"role": "user", "content": outputs}));
        }
    }
    add(body, entries);
}

/// Adds what the model said, and a reply in the user's name.
pub(crate) fn add_reply(dialect: Dialect, body: &mut Value, words: &str, reply: &str) {
    let message = |role: &str, kind: &str, text: &str| match dialect {
        Dialect::Responses => json!({"type": "message", "role": role,
            "content": [{"type": kind, "text": text}]}),
        _ => json!({"role": role, "content": text}),
    };
    let said = message("assistant", "output_text", words);
    add(body, vec![said, message("user", "input_text", reply)]);
}

/// A log of so many lines, none like another.
pub(crate) fn log(lines: usize) -> String {
    let mut text = String::new();
    for line in 0..lines {
        let _ = writeln!(
            text,
            "2026-03-14 02:{:02}:{:02} worker {} took {} ms",
            line / 60 % 60,
            line % 60,
            line * 7919 % 97,
            line * 31 % 1009
        );
    }
    text
}
