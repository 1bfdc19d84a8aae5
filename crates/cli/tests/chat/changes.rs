//! File changes need a confirmation that shows the change.

use crate::run::Place;
use crate::tmux::Pane;

/// Changes a line of the notes, and writes a new file.
const WRITES: &str = r#"[
  {"calls": [{"name": "write_file", "arguments": {"path": "plan.txt", "content": "one\nTWO\nthree\n"}}]},
  {"text": "first done"},
  {"calls": [{"name": "write_file", "arguments": {"path": "new.txt", "content": "fresh\n"}}]},
  {"text": "second done"},
  {"calls": [{"name": "write_file", "arguments": {"path": "plan.txt", "content": "four\n"}}]},
  {"text": "third done"}
]"#;

/// A place with a file to change; the arguments that start the script in it.
fn place() -> (Place, String) {
    let place = Place::new();
    std::fs::write(place.workspace().join("plan.txt"), "one\ntwo\nthree\n").unwrap();
    let model = place.script(WRITES);
    (place, model)
}

fn text(place: &Place, name: &str) -> Option<String> {
    std::fs::read_to_string(place.workspace().join(name)).ok()
}

#[test]
fn file_change_is_shown_and_confirmed_before_writing() {
    let (place, model) = place();
    let Some(pane) = Pane::start(place, (100, 40), &["--model", &model]) else {
        return;
    };
    pane.wait_for_prompt();
    pane.line("change the plan");
    let screen = pane.wait_for("allow it? [y]es, [n]o, [a]lways:");
    assert!(
        screen.contains("write_file wants to write 14 bytes to plan.txt"),
        "{screen}"
    );
    assert!(
        screen.contains("- two") && screen.contains("+ TWO"),
        "{screen}"
    );
    assert_eq!(
        text(pane.place(), "plan.txt").as_deref(),
        Some("one\ntwo\nthree\n")
    );
    pane.line("n");
    pane.wait_for("did not allow to write");
    pane.wait_for("first done");
    pane.wait_for_prompt();
    assert_eq!(
        text(pane.place(), "plan.txt").as_deref(),
        Some("one\ntwo\nthree\n")
    );

    pane.line("again");
    let screen = pane.wait_for("to new.txt, a new file");
    assert!(screen.contains("+ fresh"), "{screen}");
    pane.line("a");
    pane.wait_for("second done");
    pane.wait_for_prompt();
    assert_eq!(text(pane.place(), "new.txt").as_deref(), Some("fresh\n"));

    // Always means that nobody is asked any more.
    pane.line("and again");
    pane.wait_for("third done");
    assert_eq!(text(pane.place(), "plan.txt").as_deref(), Some("four\n"));
}

#[test]
fn without_a_terminal_writes_need_a_flag_or_setting() {
    let (place, model) = place();
    let print = ["--model", &model, "--print", "change the plan"];
    let refused = place.chat(&print);
    assert_eq!(refused.code, 0, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("--allow-writes allows it"),
        "{}",
        refused.stderr
    );
    assert_eq!(
        text(&place, "plan.txt").as_deref(),
        Some("one\ntwo\nthree\n")
    );
    let piped = place.chat_with(&["--model", &model], "change the plan\ny\n");
    assert!(
        piped.stdout.contains("--allow-writes allows it"),
        "{}",
        piped.stdout
    );
    assert_eq!(
        text(&place, "plan.txt").as_deref(),
        Some("one\ntwo\nthree\n")
    );
    for flag in [
        ["--allow-writes"].as_slice(),
        &["--yes"],
        &["--set", "tools.allow_writes=true"],
    ] {
        std::fs::write(place.workspace().join("plan.txt"), "old").unwrap();
        let allowed = place.chat(&[&print, flag].concat());
        assert_eq!(allowed.code, 0, "{flag:?}: {}", allowed.stderr);
        let written = text(&place, "plan.txt");
        assert_eq!(written.as_deref(), Some("one\nTWO\nthree\n"), "{flag:?}");
    }
}

#[test]
fn project_file_cannot_allow_writes() {
    let (place, model) = place();
    let file = place.workspace().join("trimtab.toml");
    std::fs::write(file, "[tools]\nallow_writes = true\n").unwrap();
    let refused = place.chat(&["--model", &model, "--print", "change the plan"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("may not set tools.allow_writes"),
        "{}",
        refused.stderr
    );
}

#[test]
fn long_change_is_abbreviated_until_requested() {
    let place = Place::new();
    let lines: Vec<String> = (1..=90).map(|n| format!("line {n}")).collect();
    let content = lines.join("\\n");
    let model = place.script(&format!(
        r#"[{{"calls": [{{"name": "write_file",
              "arguments": {{"path": "long.txt", "content": "{content}"}}}}]}},
            {{"text": "done"}}]"#
    ));
    let Some(pane) = Pane::start(place, (100, 30), &["--model", &model]) else {
        return;
    };
    pane.wait_for_prompt();
    pane.line("write it");
    let screen = pane.wait_for("[d]iff in full:");
    assert!(
        screen.contains("and 50 lines more") && !screen.contains("+ line 90"),
        "{screen}"
    );
    pane.line("d");
    pane.wait_for("+ line 90");
    pane.wait_for("allow it? [y]es, [n]o, [a]lways:");
    pane.line("y");
    pane.wait_for("wrote 710 bytes");
}
