//! Broken lines in the logs of clients, as a crash or a power loss leaves them.

use std::fs;

use serde_json::Value;
use trimtab_wire::transcript::TranscriptReader;

use crate::run::{Home, Outcome, root};

/// The logs of all clients that write one JSON object per line.
const LOGS: [&str; 2] = ["claude-code.jsonl", "codex.jsonl"];

/// What a crash leaves of a line: a part of it, a part of it within a character, zeros, and a part
/// of it with the next line behind it.
const DAMAGES: [&[u8]; 4] = [
    br#"{"type":"user","mess"#,
    b"{\"type\":\"user\",\"text\":\"caf\xC3",
    b"\0\0\0\0\0\0\0\0",
    br#"{"type":"us{"type":"user","uuid":"x","message":{"role":"user","content":"hi"}}"#,
];

fn log(name: &str) -> Vec<u8> {
    fs::read(root().join("examples/forms").join(name)).unwrap()
}

/// The log with a damaged line before line `at`, counted from 0.
fn with_damage(log: &[u8], at: usize, damage: &[u8]) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = log.split_inclusive(|byte| *byte == b'\n').collect();
    let damage = [damage, b"\n"].concat();
    lines.insert(at, &damage);
    lines.concat()
}

fn json(done: &Outcome) -> Value {
    assert_eq!(done.code, 0, "{}", done.stderr);
    serde_json::from_str(&done.stdout).unwrap()
}

#[test]
fn inspect_skips_a_broken_line_and_names_it() {
    let home = Home::new();
    for name in LOGS {
        let whole = log(name);
        let good = json(&home.run_with(&["inspect", "-", "--json"], &whole));
        let lines = whole.split(|byte| *byte == b'\n').count() - 1;
        for damage in DAMAGES {
            for at in [0, 1, lines / 2, lines - 1] {
                let broken = with_damage(&whole, at, damage);
                let done = home.run_with(&["inspect", "-", "--json"], &broken);
                assert_eq!(json(&done), good, "{name}, line {}", at + 1);
                let told = format!("warning: standard input:{}: the line is skipped: ", at + 1);
                assert!(done.stderr.starts_with(&told), "{name}: {}", done.stderr);
                assert_eq!(done.stderr.lines().count(), 1, "{name}: {}", done.stderr);
            }
        }
    }
}

#[test]
fn last_line_that_ends_within_a_character_is_cut_off() {
    let mut log = log("codex.jsonl");
    log.extend_from_slice(DAMAGES[1]);
    let done = Home::new().run_with(&["inspect", "-"], &log);
    assert_eq!(done.code, 0);
    assert!(
        done.stderr.contains("the last line is cut off"),
        "{}",
        done.stderr
    );
}

#[test]
fn many_broken_lines_are_counted() {
    let mut log = log("codex.jsonl");
    for _ in 0..1_000 {
        log.extend_from_slice(b"{\"type\":\n");
    }
    let done = Home::new().run_with(&["inspect", "-"], &log);
    assert_eq!(done.code, 0);
    assert_eq!(done.stderr.lines().count(), 6, "{}", done.stderr);
    assert!(
        done.stderr
            .ends_with("standard input: 1,000 lines skipped in all\n")
    );
}

#[test]
fn compacted_log_has_no_broken_line_and_the_store_has_it() {
    for name in LOGS {
        let whole = log(name);
        let lines = whole.split(|byte| *byte == b'\n').count() - 1;
        for damage in DAMAGES {
            let home = Home::new();
            let broken = with_damage(&whole, lines / 2, damage);
            let file = home.file("log.jsonl", &broken);
            let out = home.path().join("out").display().to_string();
            let done = home.run(&["compact", &file, "-o", &out, "--json"]);
            let report = json(&done);
            let note = "left out: 1 broken line, which only the original transcript has";
            let notes = report["notes"].as_array().unwrap();
            assert!(notes.iter().any(|told| told == note), "{name}: {report}");
            let session = report["originals"]["session"].as_str().unwrap();
            let original = report["originals"]["transcript"].as_str().unwrap();
            let args = ["output", "read", "--session", session, original, "--raw"];
            let stored = home.command().args(args).output().unwrap();
            assert_eq!(stored.stdout, broken, "{name}");
            for line in fs::read_to_string(&out).unwrap().lines() {
                let read: Result<Value, _> = serde_json::from_str(line);
                assert!(read.is_ok(), "{name}: {line}");
            }
        }
    }
}

#[test]
fn lines_behind_a_broken_line_keep_their_history() {
    let home = Home::new();
    let log = br#"{"type":"user","uuid":"1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"go"}}
{"type":"assistant","uuid":"2","parentUuid":"1","sessionId":"s","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"gone"}
{"type":"user","uuid":"3","parentUuid":"2","sessionId":"s","message":{"role":"user","content":"more"}}
"#;
    let file = home.file("log.jsonl", log);
    let out = home.path().join("out").display().to_string();
    let done = home.run(&["compact", &file, "-o", &out]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let written = fs::read_to_string(&out).unwrap();
    let last: Value = serde_json::from_str(written.lines().next_back().unwrap()).unwrap();
    // The client walks from the last line to the first by these ids.
    assert_eq!(
        (&last["uuid"], &last["parentUuid"]),
        (&"3".into(), &"1".into())
    );
    let mut reader = TranscriptReader::new(written.as_bytes());
    assert_eq!(reader.next().unwrap().unwrap().messages.len(), 2);
}
