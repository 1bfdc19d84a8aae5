//! Logs of sessions in which the user went back and wrote another message.

use serde_json::{Value, json};

use crate::run::Home;

/// What is said. The user takes the mistaken task and its answer back.
const SAID: [(&str, &str); 6] = [
    ("user", "first task"),
    ("assistant", "first answer"),
    ("user", "mistaken task"),
    ("assistant", "mistaken answer"),
    ("user", "better task"),
    ("assistant", "better answer"),
];

fn lines(lines: &[Value]) -> Vec<u8> {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    (lines.join("\n") + "\n").into_bytes()
}

/// The better task follows the first answer, not the mistaken one.
fn claude_code() -> Vec<u8> {
    let parents = [None, Some(0), Some(1), Some(2), Some(1), Some(4)];
    let line = |(at, parent): (usize, Option<usize>)| {
        let (role, text) = SAID[at];
        let content = json!([{"type": "text", "text": text}]);
        let message = json!({"role": role, "id": format!("m{at}"), "content": content});
        json!({"type": role, "uuid": format!("u{at}"), "sessionId": "s", "isSidechain": false,
            "parentUuid": parent.map(|parent| format!("u{parent}")), "message": message})
    };
    let mut all: Vec<Value> = parents.into_iter().enumerate().map(line).collect();
    // A command of the mistaken answer ended late.
    let output = json!([{"type": "tool_result", "tool_use_id": "t", "content": "mistaken"}]);
    all.push(
        json!({"type": "user", "uuid": "late", "parentUuid": "u3", "sessionId": "s",
        "message": {"role": "user", "content": output}}),
    );
    lines(&all)
}

fn codex() -> Vec<u8> {
    let mut all = vec![json!({"type": "session_meta", "payload": {"id": "s"}})];
    for (at, (role, text)) in SAID.into_iter().enumerate() {
        if at == 4 {
            let back = json!({"type": "thread_rolled_back", "num_turns": 1});
            all.push(json!({"type": "event_msg", "payload": back}));
        }
        let kind = if role == "user" {
            "input_text"
        } else {
            "output_text"
        };
        let content = json!([{"type": kind, "text": text}]);
        let item = json!({"type": "message", "role": role, "content": content});
        all.push(json!({"type": "response_item", "payload": item}));
    }
    lines(&all)
}

fn logs() -> [(&'static str, Vec<u8>); 2] {
    [("claude_code", claude_code()), ("codex", codex())]
}

#[test]
fn inspect_leaves_out_turns_that_the_user_took_back() {
    let home = Home::new();
    for (form, log) in logs() {
        let file = home.file(form, &log);
        let done = home.run(&["inspect", &file, "--json"]);
        let report: Value = serde_json::from_str(&done.stdout).unwrap();
        assert_eq!(report["form"], form);
        assert_eq!(report["counts"]["turns"], 2, "{form}: {report}");
        let shown = home.run(&["inspect", &file, "--message", "2"]);
        assert!(
            shown.stdout.contains("better task"),
            "{form}: {}",
            shown.stdout
        );
    }
}

#[test]
fn compact_drops_turns_that_the_user_took_back() {
    let home = Home::new();
    for (form, log) in logs() {
        let file = home.file(form, &log);
        let out = home.path().join("out").display().to_string();
        let done = home.run(&["compact", &file, "-o", &out, "-k", "1"]);
        assert_eq!(done.code, 0, "{form}: {}", done.stderr);
        let written = std::fs::read_to_string(&out).unwrap();
        for kept in ["first task", "better task", "better answer"] {
            assert!(written.contains(kept), "{form}: {kept} in {written}");
        }
        // A mark that stays would take back other turns.
        for gone in ["mistaken", "thread_rolled_back"] {
            assert!(!written.contains(gone), "{form}: {gone} in {written}");
        }
    }
}
