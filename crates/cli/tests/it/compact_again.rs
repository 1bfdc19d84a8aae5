//! `trimtab compact` on its own result.

use std::fs;

use serde_json::{Value, json};

use crate::compact::PRESETS;
use crate::run::Home;

/// A way to write a conversation as a file.
type WriteLog = fn(&[Value]) -> String;

const FORMS: [(&str, WriteLog); 4] = [
    ("claude_code", claude_code),
    ("codex", codex),
    ("chat", chat),
    ("one message per line", message_per_line),
];

/// A task and `rounds` rounds of work on it, as messages of Chat Completions.
fn conversation(rounds: usize) -> Vec<Value> {
    let mut messages =
        vec![json!({"role": "user", "content": "Find the function that loses a row."})];
    for number in 0..rounds {
        messages.extend(round(number));
    }
    messages.push(json!({"role": "assistant", "content": "It is in src/part_7.rs."}));
    messages
}

fn round(number: usize) -> [Value; 2] {
    let path = format!("src/part_{number}.rs");
    let lines = (0..40).map(|line| format!("let row_{number}_{line} = table.read({line})?;\n"));
    let arguments = json!({"path": path}).to_string();
    [
        json!({"role": "assistant", "content": format!("I read {path} next."), "tool_calls": [
            {"id": format!("call_{number}"), "type": "function",
             "function": {"name": "read_file", "arguments": arguments}}]}),
        json!({"role": "tool", "tool_call_id": format!("call_{number}"),
               "content": lines.collect::<String>()}),
    ]
}

fn chat(messages: &[Value]) -> String {
    json!({"model": "gpt-4o", "messages": messages}).to_string()
}

fn message_per_line(messages: &[Value]) -> String {
    lines(messages.iter().cloned())
}

fn lines(values: impl Iterator<Item = Value>) -> String {
    let lines: Vec<String> = values.map(|value| value.to_string()).collect();
    lines.join("\n") + "\n"
}

fn claude_code(messages: &[Value]) -> String {
    let line = |(at, message): (usize, &Value)| claude_code_line(at, message);
    lines(messages.iter().enumerate().map(line))
}

fn claude_code_line(at: usize, message: &Value) -> Value {
    let text = json!({"type": "text", "text": message["content"]});
    let (role, content) = match message["role"].as_str().unwrap() {
        "tool" => (
            "user",
            json!([{"type": "tool_result", "tool_use_id": message["tool_call_id"],
                    "content": message["content"]}]),
        ),
        "assistant" => match &message["tool_calls"][0] {
            Value::Null => ("assistant", json!([text])),
            call => (
                "assistant",
                json!([text, {"type": "tool_use", "id": call["id"], "name": "read_file",
                              "input": {"path": call["id"]}}]),
            ),
        },
        role => (role, message["content"].clone()),
    };
    let parent = at.checked_sub(1).map(|before| format!("line-{before}"));
    json!({"type": role, "uuid": format!("line-{at}"), "parentUuid": parent, "sessionId": "s",
           "message": {"id": format!("m-{at}"), "role": role, "content": content}})
}

fn codex(messages: &[Value]) -> String {
    let meta = json!({"type": "session_meta", "payload": {"id": "s", "cwd": "/w"}});
    let items = messages.iter().flat_map(codex_items);
    let items = items.map(|item| json!({"type": "response_item", "payload": item}));
    lines(std::iter::once(meta).chain(items))
}

fn codex_items(message: &Value) -> Vec<Value> {
    let role = message["role"].as_str().unwrap();
    if role == "tool" {
        return vec![
            json!({"type": "function_call_output", "call_id": message["tool_call_id"],
                           "output": message["content"]}),
        ];
    }
    let kind = if role == "user" {
        "input_text"
    } else {
        "output_text"
    };
    let content = json!([{"type": kind, "text": message["content"]}]);
    let mut items = vec![json!({"type": "message", "role": role, "content": content})];
    if let Some(call) = message["tool_calls"].get(0) {
        items.push(
            json!({"type": "function_call", "call_id": call["id"], "name": "read_file",
                          "arguments": call["function"]["arguments"]}),
        );
    }
    items
}

/// Compacts a file; gives the report and the result.
fn compact(home: &Home, log: &str, preset: &str) -> (Value, String) {
    let file = home.file("log", log.as_bytes());
    let out = home.path().join("out").display().to_string();
    let done = home.run(&["compact", &file, "-o", &out, "--preset", preset, "--json"]);
    assert_eq!(done.code, 0, "{preset}: {}", done.stderr);
    let report = serde_json::from_str(&done.stdout).unwrap();
    (report, fs::read_to_string(out).unwrap())
}

#[test]
fn second_compaction_changes_nothing_under_every_preset_and_form() {
    for (form, write) in FORMS {
        for rounds in [6, 60] {
            let log = write(&conversation(rounds));
            for preset in PRESETS {
                let home = Home::new();
                let (first, once) = compact(&home, &log, preset);
                let (second, twice) = compact(&home, &once, preset);
                let case = format!("{form}, {rounds} rounds, {preset}: {first}");
                assert_eq!(second["summary"], Value::Null, "{case}");
                assert_eq!(second["messages_replaced"], 0, "{case}");
                assert!(once == twice, "{case}");
            }
        }
    }
}

#[test]
fn first_compaction_of_a_long_log_replaces_messages() {
    for (form, write) in FORMS {
        let (report, _) = compact(&Home::new(), &write(&conversation(60)), "steady");
        let replaced = report["messages_replaced"].as_u64().unwrap();
        assert!(replaced > 20, "{form}: {report}");
    }
}

#[test]
fn second_compaction_says_that_nothing_was_replaced() {
    let home = Home::new();
    let (_, once) = compact(&home, &claude_code(&conversation(60)), "steady");
    let file = home.file("once", once.as_bytes());
    let out = home.path().join("twice").display().to_string();
    let done = home.run(&["compact", &file, "-o", &out]);
    assert_eq!(done.code, 0);
    assert!(
        done.stdout.contains("none: no round was replaced") && done.stdout.contains("(unchanged)"),
        "{}",
        done.stdout
    );
}

/// The compacted log of a session that then continued for some rounds.
fn continued(home: &Home, preset: &str, rounds: usize) -> String {
    let (_, log) = compact(home, &claude_code(&conversation(30)), preset);
    let new = (100..100 + rounds).flat_map(round).enumerate();
    log + &lines(new.map(|(at, message)| claude_code_line(1_000 + at, &message)))
}

#[test]
fn log_is_compacted_again_after_as_much_new_work() {
    // The preset keeps the last turn, and there is only one.
    for (rounds, is_replaced) in [(1, false), (60, true)] {
        let home = Home::new();
        let log = continued(&home, "refs", rounds);
        let (report, _) = compact(&home, &log, "refs");
        let replaced = report["messages_replaced"].as_u64().unwrap();
        assert_eq!(replaced > 0, is_replaced, "{rounds} rounds: {report}");
    }
}
