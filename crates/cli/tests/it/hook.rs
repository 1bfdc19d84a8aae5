//! `trimtab hook`: the answers to a client's events, and the edits of its settings.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::run::Home;

/// An event of Claude Code after a tool has run.
fn event(tool: &str, input: &Value, response: &Value) -> Vec<u8> {
    let event = json!({
        "session_id": "11111111-2222", "transcript_path": "/t.jsonl", "cwd": "/",
        "hook_event_name": "PostToolUse", "tool_name": tool, "tool_use_id": "toolu_1",
        "tool_input": input, "tool_response": response,
    });
    event.to_string().into_bytes()
}

/// An output of 30 KB, which would fit the usual window many times.
fn usual_text() -> String {
    long_text().chars().take(30_000).collect()
}

fn long_text() -> String {
    (0..40_000).fold(String::new(), |text, at| {
        text + &format!("line {at} of the log\n")
    })
}

#[test]
fn long_output_is_replaced_in_its_shape_and_read_back_by_the_named_command() {
    let home = Home::new();
    let response = json!({"stdout": long_text(), "stderr": "", "interrupted": false});
    let event = event("Bash", &json!({"command": "make"}), &response);
    let done = home.run_with(&["hook", "claude"], &event);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let answer: Value = serde_json::from_str(&done.stdout).unwrap();
    let answer = &answer["hookSpecificOutput"];
    assert_eq!(answer["hookEventName"], "PostToolUse");
    let output = &answer["updatedToolOutput"];
    assert_eq!(output["interrupted"], false);
    let shown = output["stdout"].as_str().unwrap();
    assert!(shown.len() < long_text().len() / 4, "{}", shown.len());
    let command = shown.split("the rest: trimtab ").nth(1).unwrap();
    let words: Vec<&str> = command.split_whitespace().collect();
    let words: Vec<&str> = words
        .iter()
        .map(|word| word.trim_matches(&['\'', ']'][..]))
        .collect();
    let offset = words.iter().position(|word| *word == "--offset").unwrap();
    let read = [&words[..offset], &["--raw"]].concat();
    assert_eq!(home.run(&read).stdout, long_text());
}

#[test]
fn output_of_the_usual_size_is_shortened_without_any_settings() {
    let home = Home::new();
    let response = json!({"stdout": usual_text(), "stderr": ""});
    let event = event("Bash", &json!({"command": "make"}), &response);
    let done = home.run_with(&["hook", "claude"], &event);
    let answer: Value = serde_json::from_str(&done.stdout).unwrap();
    let output = &answer["hookSpecificOutput"]["updatedToolOutput"]["stdout"];
    let shown = output.as_str().unwrap();
    let most = usual_text().len() * 3 / 4;
    assert!(shown.len() < most, "{} bytes are shown", shown.len());
}

#[test]
fn output_stays_as_it_came_where_nothing_is_to_be_replaced() {
    let home = Home::new();
    let long = long_text();
    let stdout = json!({"stdout": long});
    let events = [
        event(
            "Bash",
            &json!({"command": "ls"}),
            &json!({"stdout": "a.txt"}),
        ),
        event(
            "Bash",
            &json!({"command": "trimtab output read --session s abc"}),
            &stdout,
        ),
        event("Edit", &json!({}), &json!({"originalFile": long})),
        event("mcp__trimtab__tool_output_cache", &json!({}), &stdout),
        event(
            "Read",
            &json!({}),
            &json!({"type": "image", "file": {"base64": long}}),
        ),
        b"{}".to_vec(),
        b"no event".to_vec(),
    ];
    for event in events {
        let done = home.run_with(&["hook", "claude"], &event);
        assert_eq!(
            (done.code, done.stdout.as_str()),
            (0, ""),
            "{}",
            done.stderr
        );
    }
}

#[test]
fn store_that_cannot_be_opened_leaves_the_output_as_it_came() {
    let home = Home::new();
    let event = event("Bash", &json!({}), &json!({"stdout": long_text()}));
    let done = home.run_with(&["hook", "claude", "--store", "/proc/nowhere"], &event);
    assert_eq!((done.code, done.stdout.as_str()), (0, ""));
    assert!(
        done.stderr.contains("the output is not shortened"),
        "{}",
        done.stderr
    );
}

#[test]
fn install_shows_the_difference_keeps_a_copy_and_is_undone_by_uninstall() {
    let home = Home::new();
    let before = "{\n  \"model\": \"opus\",\n  \"hooks\": {\n    \"Stop\": [ {\"hooks\": []} ]\n  },\n  \"a\": 1.50\n}\n";
    let file = home.file("settings.json", before.as_bytes());
    let install = ["hook", "install", "claude", "--file", &file];
    let shown = home.run(&install);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(
        shown.stdout.contains("+ ") && shown.stdout.contains("hook claude"),
        "{}",
        shown.stdout
    );
    // Only the line before the new ones changes, which gets a comma.
    let removed = shown.stdout.lines().filter(|line| line.starts_with('-'));
    assert_eq!(removed.count(), 1, "{}", shown.stdout);
    assert!(shown.stderr.contains("hint: --yes"), "{}", shown.stderr);
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    let in_json = home.run(&[&install[..], &["--json"]].concat());
    let report: Value = serde_json::from_str(&in_json.stdout).unwrap();
    assert_eq!(report["changes"], true);

    let yes = [&install[..], &["--yes"]].concat();
    assert_eq!(home.run(&yes).code, 0);
    let written: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let hook = &written["hooks"]["PostToolUse"][0]["hooks"][0];
    assert!(
        hook["command"]
            .as_str()
            .unwrap()
            .ends_with("trimtab hook claude"),
        "{hook}"
    );
    assert_eq!(
        fs::read_to_string(format!("{file}.backup-1")).unwrap(),
        before
    );
    // A second time there is nothing to do.
    assert!(home.run(&yes).stderr.contains("needs no change"));

    let uninstall = ["hook", "uninstall", "claude", "--yes", "--file", &file];
    assert_eq!(home.run(&uninstall).code, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
}

#[cfg(unix)]
#[test]
fn install_follows_no_planted_link_and_waits_for_no_pipe() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let home = Home::new();
    let before = "{\"model\": \"opus\"}\n";
    let file = home.file("settings.json", before.as_bytes());
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let victim = home.file("victim", b"mine");
    let nowhere = home.path().join("nowhere");
    symlink(&victim, format!("{file}.trimtab-new")).unwrap();
    symlink(&nowhere, format!("{file}.backup-1")).unwrap();
    let install = ["hook", "install", "claude", "--yes", "--file"];
    let done = home.run(&[&install[..], &[&file]].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(fs::read(&victim).unwrap(), b"mine");
    assert!(!nowhere.exists());
    let backup = format!("{file}.backup-2");
    assert_eq!(fs::read_to_string(&backup).unwrap(), before);
    let mode = |path: &str| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(&backup)), (0o640, 0o600));
    assert!(fs::read_to_string(&file).unwrap().contains("hook claude"));

    let pipe = home.path().join("pipe").display().to_string();
    let piped = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(piped.unwrap().success());
    let done = home.run(&[&install[..], &[&pipe]].concat());
    assert_eq!(done.code, 1);
    assert!(
        done.stderr.contains("not a regular file"),
        "{}",
        done.stderr
    );
}

#[test]
fn installations_at_once_lose_no_settings() {
    for round in 0..10 {
        let home = Home::new();
        let before = format!("{{\"round\": {round}, \"model\": \"opus\"}}\n");
        let file = home.file("settings.json", before.as_bytes());
        let verbs = [
            "install",
            "uninstall",
            "install",
            "uninstall",
            "install",
            "install",
        ];
        let running = verbs.map(|verb| {
            let mut command = home.command();
            command.args(["hook", verb, "claude", "--yes", "--file", &file]);
            command.stdout(Stdio::null()).stderr(Stdio::piped());
            command.spawn().unwrap()
        });
        for one in running {
            let done = one.wait_with_output().unwrap();
            let told = String::from_utf8_lossy(&done.stderr).into_owned();
            assert!(done.status.success(), "{told}");
        }
        let written: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(
            (&written["round"], &written["model"]),
            (&json!(round), &json!("opus"))
        );
        let hooks = written["hooks"]["PostToolUse"].as_array();
        assert!(hooks.is_none_or(|hooks| hooks.len() == 1), "{written}");
    }
}

#[test]
fn clients_whose_hooks_cannot_replace_outputs_are_refused_with_the_way_out() {
    let home = Home::new();
    for client in ["codex", "qwen"] {
        let done = home.run(&["hook", "install", client]);
        assert_eq!(done.code, 2);
        let hint = format!("hint: run it through a private proxy: trimtab wrap {client}");
        assert!(done.stderr.contains(&hint), "{}", done.stderr);
    }
    let file = home.file("broken.json", b"{\"hooks\": 1");
    let done = home.run(&["hook", "install", "claude", "--file", &file]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("broken.json"), "{}", done.stderr);
}
