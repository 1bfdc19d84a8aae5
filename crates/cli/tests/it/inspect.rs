//! `trimtab inspect` on incomplete logs.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::run::{Home, command, finish, trimtab};

const EXAMPLE: &str = "examples/fix-failing-test.json";

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A log of Claude Code, with a usage and without system prompt and tools.
fn claude_code(folder: &Path) -> String {
    let line = |kind: &str, uuid: &str, message: Value| {
        json!({"type": kind, "uuid": uuid, "parentUuid": null, "sessionId": "s", "version": "2.1.0",
            "timestamp": "2026-01-01T00:00:00Z", "message": message})
    };
    let lines = [
        line(
            "user",
            "a",
            json!({"role": "user", "content": "what is in big.log?"}),
        ),
        line(
            "assistant",
            "b",
            json!({"role": "assistant", "model": "claude-sonnet-4-5",
            "content": [{"type": "tool_use", "id": "c1", "name": "Bash",
                "input": {"command": "cat big.log\n| \u{1b}[31mhead"}}],
            "usage": {"input_tokens": 60, "cache_read_input_tokens": 87_008, "output_tokens": 9}}),
        ),
        line(
            "user",
            "c",
            json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": "a line of the log\n".repeat(400)}]}),
        ),
    ];
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    let path = folder.join("session-of-mine.jsonl");
    fs::write(&path, text.join("\n") + "\n").unwrap();
    path.display().to_string()
}

#[test]
fn missing_system_prompt_is_not_reported_as_zero() {
    let file = claude_code(&folder("inspect-left-out"));
    let shown = trimtab(&["inspect", &file]).stdout;
    for line in ["system     not in the log", "tools      not in the log"] {
        assert!(shown.contains(line), "no {line:?} in\n{shown}");
    }
    assert!(
        shown.contains("window: 87,068 of 200,000 tokens (44 %)"),
        "{shown}"
    );
    assert!(
        shown.contains("the provider last reported 87,068"),
        "{shown}"
    );
    let report = trimtab(&["inspect", &file, "--json"]).stdout;
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["window"]["reported"], 87_068);
    assert_eq!(report["regions"]["tools"], Value::Null);
    // A request holds everything, so that nothing is nothing.
    let request = trimtab(&["inspect", "examples/forms/messages.json", "--json"]).stdout;
    let request: Value = serde_json::from_str(&request).unwrap();
    assert_eq!(request["regions"]["tools"], 0);
}

#[test]
fn calls_are_shown_with_their_command_on_one_line() {
    let file = claude_code(&folder("inspect-calls"));
    let shown = trimtab(&["inspect", &file]).stdout;
    assert!(
        shown.contains("Bash cat big.log | \\u{1b}[31mhead\n"),
        "{shown}"
    );
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let file = claude_code(&folder("inspect-narrow"));
    for (width, files) in [
        (60, vec![EXAMPLE]),
        (60, vec![&*file]),
        (60, vec![EXAMPLE, &file]),
    ] {
        let mut args = vec!["inspect"];
        args.extend(&files);
        let mut command = command();
        let shown = finish(command.args(&args).env("COLUMNS", width.to_string()), b"");
        for line in shown.stdout.lines().filter(|line| !line.contains(&*file)) {
            let is_note = line.starts_with("--all") || line.contains(" conversations: ");
            assert!(is_note || line.chars().count() <= width, "{line}");
        }
    }
}

#[test]
fn message_option_shows_one_message_in_full() {
    let file = claude_code(&folder("inspect-message"));
    let shown = trimtab(&["inspect", &file, "--message", "2"]).stdout;
    assert!(shown.starts_with("message 2, "), "{shown}");
    assert_eq!(shown.matches("a line of the log").count(), 400);
    let outcome = trimtab(&["inspect", &file, "--message", "99"]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("from 0 to 2"), "{}", outcome.stderr);
}

#[test]
fn list_names_the_files() {
    let file = claude_code(&folder("inspect-list"));
    let shown = trimtab(&["inspect", &file, EXAMPLE]).stdout;
    assert!(shown.contains("session-of-mine.jsonl"), "{shown}");
    assert!(shown.contains("fix-failing-test.json "), "{shown}");
}

#[test]
fn inspect_and_compact_report_the_same_tokens() {
    let home = Home::new();
    let short = home.path().join("short.json").display().to_string();
    let compacted = home.run(&["compact", EXAMPLE, "-o", &short, "--json"]);
    let compacted: Value = serde_json::from_str(&compacted.stdout).unwrap();
    let inspect = |file: &str| -> Value {
        serde_json::from_str(&trimtab(&["inspect", file, "--json"]).stdout).unwrap()
    };
    assert_eq!(
        inspect(EXAMPLE)["window"]["tokens"],
        compacted["tokens_before"]
    );
    assert_eq!(
        inspect(&short)["window"]["tokens"],
        compacted["tokens_after"]
    );
}

/// A question and its answer in a log of Claude Code, with the usage of the answer.
fn exchange(number: u64, input: u64) -> [Value; 2] {
    let line = |kind: &str, uuid: String, message: Value| json!({"type": kind, "uuid": uuid, "parentUuid": null, "sessionId": "s", "message": message});
    let answer = json!({"role": "assistant", "model": "claude-sonnet-4-5",
        "content": format!("Answer {number}."),
        "usage": {"input_tokens": input, "output_tokens": 3}});
    [
        line(
            "user",
            format!("q{number}"),
            json!({"role": "user", "content": format!("and {number}?")}),
        ),
        line("assistant", format!("a{number}"), answer),
    ]
}

/// Adds lines to a log.
fn append(file: &str, lines: &[Value]) {
    let lines = lines.iter().map(|line| format!("{line}\n"));
    let text = fs::read_to_string(file).unwrap() + &lines.collect::<String>();
    fs::write(file, text).unwrap();
}

#[test]
fn usage_from_before_a_compaction_does_not_fill_the_window() {
    let home = Home::new();
    let log = claude_code(home.path());
    append(&log, &exchange(1, 90_000));
    append(&log, &exchange(2, 90_100));
    let short = home.path().join("short.jsonl").display().to_string();
    let compacted = home.run(&["compact", &log, "-o", &short, "-k", "2", "--json"]);
    let compacted: Value = serde_json::from_str(&compacted.stdout).unwrap();
    assert!(compacted["summary"].is_string(), "{compacted}");
    let inspect = |file: &str| -> Value {
        serde_json::from_str(&trimtab(&["inspect", file, "--json"]).stdout).unwrap()
    };
    assert_eq!(inspect(&log)["window"]["reported"], 90_100);
    // The kept answers still have the usage of their own requests.
    assert_eq!(inspect(&short)["window"]["reported"], Value::Null);
    let shown = trimtab(&["inspect", &short]).stdout;
    let tokens = &compacted["tokens_after"];
    assert!(
        shown.contains(&format!("window: {tokens} of 200,000")),
        "{shown}"
    );
    // The usage of a new answer counts again.
    append(&short, &exchange(3, 4_321));
    assert_eq!(inspect(&short)["window"]["reported"], 4_321);
}

#[test]
fn image_is_the_same_with_and_without_a_page() {
    let folder = folder("picture-both");
    let path = |name: &str| folder.join(name).display().to_string();
    let (page, one, two) = (path("a.html"), path("one.svg"), path("two.svg"));
    let both = ["inspect", EXAMPLE, "--html", &page, "--svg", &one];
    for args in [&both[..], &["inspect", EXAMPLE, "--svg", &two]] {
        let outcome = trimtab(args);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    }
    let image = |path: &str| fs::read_to_string(path).unwrap();
    assert!(image(&one) == image(&two), "{}", image(&one));
}

#[test]
fn picture_is_drawn_even_if_nobody_reads_the_text() {
    let folder = folder("picture-unread");
    let page = folder.join("a.html");
    let _ = fs::remove_file(&page);
    let args = ["inspect", EXAMPLE, "--html", page.to_str().unwrap()];
    let mut command = command();
    let command = command.args(args).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
    assert!(page.exists());
}

#[test]
fn picture_that_cannot_be_written_is_reported_before_the_text() {
    for flag in ["--html", "--svg"] {
        let outcome = trimtab(&["inspect", EXAMPLE, flag, "/no/such/folder/x"]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""));
        let expected = "error: /no/such/folder/x: cannot write: ";
        assert!(outcome.stderr.starts_with(expected), "{}", outcome.stderr);
    }
}

#[test]
fn picture_is_one_file_with_a_headline_in_money() {
    let folder = folder("picture");
    let out = folder.join("out.html").display().to_string();
    let text = fs::read_to_string(crate::run::root().join(EXAMPLE)).unwrap();
    let mut body: Value = serde_json::from_str(&text).unwrap();
    if let Some(body) = body.as_object_mut() {
        body.insert("id".to_owned(), json!("<script>alert(1)</script>"));
    }
    let file = folder.join("<b>name.json");
    fs::write(&file, body.to_string()).unwrap();
    let outcome = trimtab(&["inspect", &file.display().to_string(), "--html", &out]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let page = fs::read_to_string(&out).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("<rect"));
    assert!(page.contains("class=\"headline\">Under steady, "), "{page}");
    assert!(page.contains("everything fits the window") && page.contains('$'));
    assert!(!page.contains("<script") && !page.contains("<b>name") && !page.contains("http"));
    let args = ["inspect", EXAMPLE, "--window", "12k", "--html", &out];
    let outcome = trimtab(&args);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let page = fs::read_to_string(&out).unwrap();
    assert!(page.contains(" tokens instead of "), "{page}");
    assert!(page.contains(" would not fit the window"), "{page}");
    let image = folder.join("out.svg").display().to_string();
    let args = ["inspect", &file.display().to_string(), "--svg", &image];
    let outcome = trimtab(&args);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let image = fs::read_to_string(&image).unwrap();
    assert!(image.starts_with("<svg xmlns=") && image.contains(">Under steady, "));
    assert!(!image.contains("<script") && image.matches("http").count() == 1);
    let outcome = trimtab(&["inspect", EXAMPLE, "--html", "/nowhere/out.html"]);
    assert_eq!(outcome.code, 2, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("hint:"), "{}", outcome.stderr);
}
