//! What `inspect` costs beside parsing the same lines once into a tree.
//!
//! The file is made here: conversations with code, logs, tables and JSON in their outputs.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;

use serde_json::{Value, json};
use trimtab_cli::ui::visible::visible_json;
use trimtab_cli::verbs::inspect::report::InspectReport;
use trimtab_testkit::bench::BenchComparison;
use trimtab_wire::transcript::TranscriptReader;

/// Conversations in the file, and rounds in each.
const CONVERSATIONS: usize = 60;
const ROUNDS: usize = 120;

fn main() {
    let folder = tempfile::tempdir().unwrap_or_else(|error| unreachable!("{error}"));
    let chat = folder.path().join("chat.jsonl");
    let messages = folder.path().join("messages.jsonl");
    write(&chat, chat_conversation);
    write(&messages, messages_conversation);
    for path in [chat, messages] {
        let megabytes = fs::metadata(&path).map_or(0, |data| data.len()) / 1_000_000;
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let (tree, ours) = (path.clone(), path.clone());
        BenchComparison::new(format!("{name}, {megabytes} MB"), 7)
            .candidate("serde_json::Value, line by line", move || parse(&tree))
            .candidate("inspect --json", move || inspect(&ours))
            .run();
    }
}

fn open(path: &Path) -> BufReader<File> {
    let file = File::open(path).unwrap_or_else(|error| unreachable!("{error}"));
    BufReader::with_capacity(256 * 1024, file)
}

fn parse(path: &Path) -> usize {
    let mut input = open(path);
    let mut line = Vec::new();
    let mut seen = 0;
    while input
        .read_until(b'\n', &mut line)
        .is_ok_and(|read| read > 0)
    {
        let value: Option<Value> = serde_json::from_slice(&line).ok();
        seen += usize::from(value.is_some());
        line.clear();
    }
    seen
}

fn inspect(path: &Path) -> usize {
    TranscriptReader::new(open(path))
        .filter_map(Result::ok)
        .map(|conversation| visible_json(&InspectReport::new("bench", &conversation, None)).len())
        .sum()
}

fn write(path: &Path, conversation: fn(usize) -> Value) {
    let mut file = File::create(path).unwrap_or_else(|error| unreachable!("{error}"));
    for number in 0..CONVERSATIONS {
        let line = conversation(number).to_string();
        writeln!(file, "{line}").unwrap_or_else(|error| unreachable!("{error}"));
    }
}

fn chat_conversation(number: usize) -> Value {
    let mut messages = vec![json!({"role": "system", "content": text(number, 40)})];
    for round in 0..ROUNDS {
        let seed = number * ROUNDS + round;
        let id = format!("call_{seed}");
        if round % 12 == 0 {
            messages.push(json!({"role": "user", "content": text(seed, 3)}));
        }
        let call = json!({"id": id, "type": "function", "function": {"name": "read_file", "arguments": json!({"path": format!("src/file_{seed}.rs")}).to_string()}});
        messages.push(json!({"role": "assistant", "content": null, "reasoning_content": text(seed, 2), "tool_calls": [call]}));
        messages
            .push(json!({"role": "tool", "tool_call_id": id, "content": text(seed, seed % 200)}));
    }
    json!({"id": format!("c{number}"), "messages": messages})
}

fn messages_conversation(number: usize) -> Value {
    let mut messages = Vec::new();
    for round in 0..ROUNDS {
        let seed = number * ROUNDS + round;
        let id = format!("toolu_{seed}");
        if round % 12 == 0 {
            messages.push(json!({"role": "user", "content": text(seed, 3)}));
        }
        messages.push(json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": text(seed, 2), "signature": "c2lnbmF0dXJl"},
            {"type": "tool_use", "id": id, "name": "read_file", "input": {"path": format!("src/file_{seed}.rs")}},
        ]}));
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": text(seed, seed % 200)},
        ]}));
    }
    json!({"id": format!("m{number}"), "system": text(number, 40), "messages": messages})
}

/// Some lines such as tools give back; different for every seed.
fn text(seed: usize, lines: usize) -> String {
    let mut text = String::new();
    for line in 0..lines {
        let number = seed * 31 + line * 7;
        let _ = match number % 4 {
            0 => writeln!(
                text,
                "    let value_{number} = parse(\"{number}\").map_err(|e| e.to_string())?;"
            ),
            1 => writeln!(
                text,
                "2025-03-01T12:{:02}:07Z INFO worker-{number} finished job in {number} ms",
                number % 60
            ),
            2 => writeln!(
                text,
                "{{\"id\": {number}, \"name\": \"item \u{e9}{number}\", \"tags\": [\"a\", \"b\"]}}"
            ),
            _ => writeln!(
                text,
                "src/module_{number}.rs:{line}:\tpub fn handler(&self) -> Result<(), Error> {{"
            ),
        };
    }
    text
}
