//! `/clear`, `/cost` and `@file`.

use crate::run::{Place, READS};
use crate::tmux::Pane;

/// Two answers that report what they used.
const COSTS: &str = r#"[
  {"text": "first answer", "usage": {"input": 900, "cache_read": 100, "output": 10}},
  {"text": "second answer", "usage": {"input": 50, "cache_read": 1000, "output": 20}}
]"#;

#[test]
fn clear_starts_a_new_session() {
    let place = Place::new();
    let model = place.script(COSTS);
    let said = "remember this\n/clear\nand what now?\n";
    let done = place.chat_with(&["--model", &model], said);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.contains("new session"), "{}", done.stdout);
    assert!(
        done.stdout
            .contains("the previous one: trimtab chat --resume chat-"),
        "{}",
        done.stdout
    );
    let listed = place.chat(&["--list", "--json"]);
    let sessions: Vec<&str> = listed.stdout.lines().collect();
    assert_eq!(sessions.len(), 2, "{}", listed.stdout);
    for session in sessions {
        // System, user, assistant: nothing of one is in the other.
        assert!(session.contains(r#""messages":3"#), "{session}");
    }
}

#[test]
fn cost_reports_calls_tokens_and_tools() {
    let place = Place::new();
    let model = place.script(COSTS);
    let done = place.chat_with(&["--model", &model], "one\ntwo\n/cost\n");
    let told = "2 calls of the model: 2,050 tokens in (1,100 cached), 30 out, price unknown\n\
                0 calls of tools, 0 of them for stored outputs\n";
    assert!(done.stdout.contains(told), "{}", done.stdout);
    let model = place.script(READS);
    let done = place.chat_with(&["--model", &model], "one\n/cost\n");
    assert!(
        done.stdout.contains("1 call of tools, 0 of them"),
        "{}",
        done.stdout
    );
}

#[test]
fn help_lists_every_command() {
    let place = Place::new();
    let model = place.script(READS);
    let done = place.chat_with(&["--model", &model], "/help\n");
    for part in ["/clear", "/cost", "/compact", "@FILE"] {
        assert!(done.stdout.contains(part), "{part}: {}", done.stdout);
    }
}

#[test]
fn only_named_files_are_attached() {
    let place = Place::new();
    std::fs::write(place.path().join("secret.txt"), "the secret").unwrap();
    std::fs::write(place.workspace().join("a.txt"), "needle in a file\n").unwrap();
    let model = place.script(COSTS);
    let said = "look at @a.txt and @../secret.txt, mail ann@example.com\n";
    let done = place.chat_with(&["--model", &model], said);
    assert!(
        done.stdout.contains("with a.txt, 1 line"),
        "{}",
        done.stdout
    );
    assert!(
        done.stdout.contains("is outside the workspace"),
        "{}",
        done.stdout
    );
    let printed = place.chat(&["--model", &model, "--print", "what is in @a.txt?"]);
    assert!(
        printed.stderr.contains("with a.txt, 1 line"),
        "{}",
        printed.stderr
    );
    // What comes from a pipe names no files.
    let piped = place.chat_with(&["--model", &model, "--print", "-"], "what is in @a.txt?");
    assert!(!piped.stderr.contains("a.txt"), "{}", piped.stderr);
}

#[test]
fn tab_completes_the_names_of_files() {
    let place = Place::new();
    let model = place.script(COSTS);
    let Some(pane) = Pane::start(place, (100, 30), &["--model", &model]) else {
        return;
    };
    pane.wait_for_prompt();
    pane.type_in("look at @no");
    pane.wait_for("@no");
    pane.press(&["Tab"]);
    pane.wait_for("look at @notes.txt");
    pane.press(&["Enter"]);
    pane.wait_for("with notes.txt, 300 lines");
    pane.wait_for("first answer");
}
