use std::sync::Arc;

use proptest::prelude::*;
use trimtab_model::{Call, Message, Output, Part, Role};
use trimtab_testkit::cases;
use trimtab_testkit::history::any_history;

use super::*;

fn bytes(text: &str) -> u64 {
    text.len() as u64
}

fn made(messages: &[Message], tokens: u64) -> String {
    let messages = messages.iter().cloned().map(Arc::new).collect();
    digest(&HiddenMessages::of_messages(messages), None, tokens, bytes).text
}

fn output(id: &str, text: &str, is_error: bool) -> Message {
    let stored = trimtab_testkit::made_ref(&format!("ref-{id}"), None, None);
    let output = Output {
        stored: Some(stored),
        is_error,
        ..Output::new(id, text)
    };
    Message::new(Role::Tool, vec![Part::Output(output)])
}

fn call(id: &str, tool: &str, arguments: &str) -> Message {
    Message::assistant("").with_call(Call::new(id, tool, arguments))
}

fn log() -> Vec<Message> {
    vec![
        Message::user("Build the importer. It must read CSV."),
        call("1", "read_file", r#"{"path":"src/import.rs"}"#),
        output("1", &"fn import() {} // error: never\n".repeat(80), false),
        call("2", "edit_file", r#"{"new":"x","path":"src/import.rs"}"#),
        output("2", "edited; error: is part of the file", false),
        call("3", "bash", r#"{"command":"cargo test"}"#),
        output("3", "error[E0308]: mismatched types at 10\n", true),
        call("4", "bash", r#"{"command":"cargo test"}"#),
        output("4", "ok\nerror[E0308]: mismatched types at 12\n", true),
        call("5", "bash", r#"{"command":"rg -n importer src"}"#),
        output("5", "src/a.rs:1: error: importer\nexit code: 1\n", false),
        Message::user("Also support TSV.\nWith quotes."),
        Message::assistant("Next I fix the types in src/import.rs."),
    ]
}

#[test]
fn reader_learns_what_was_said_done_and_broken() {
    let text = made(&log(), 4_000);
    for line in [
        "The user said:\n- Build the importer. It must read CSV.\n- Also support TSV.\n  With quotes.\n",
        "The assistant said:\n- Next I fix the types in src/import.rs.\n",
        "- bash(cargo test): 40 B, ref ref-4:\n> error[E0308]: mismatched types at 12\nFiles",
        "- src/import.rs: read and changed, ref ref-1\n",
        "- bash(rg -n importer src): 41 B, ref ref-5",
    ] {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
    // Of equal errors the newest is current, and only runs have errors.
    for other in ["types at 10", "never", "part of the file", "a.rs:1"] {
        assert!(!text.contains(other), "{other}: {text}");
    }
}

#[test]
fn same_errors_of_files_and_searches_are_no_failures() {
    for (tool, arguments) in [
        ("read_file", r#"{"path":"log.txt"}"#),
        ("bash", r#"{"command":"cat log.txt"}"#),
        ("bash", r#"{"command":"grep -r error ."}"#),
        ("edit_file", r#"{"path":"log.txt"}"#),
    ] {
        let log = [
            call("1", tool, arguments),
            output("1", "error: disk full\n", false),
        ];
        let text = made(&log, 4_000);
        assert!(
            !text.contains("disk full") && text.contains("ref-1"),
            "{text}"
        );
    }
    let log = [
        call("1", "bash", r#"{"command":"make"}"#),
        output("1", "error: disk full\n", false),
    ];
    assert!(made(&log, 4_000).contains("> error: disk full"));
}

#[test]
fn line_that_stands_out_in_a_listing_is_quoted() {
    let row = |at: usize| format!("2026-01-01T00:00:{at} INFO request {at} served\n");
    let mut text: String = (0..200).map(row).collect();
    text.insert_str(
        900,
        "\n2026-01-01T00:01:00 WARN disk quota of tenant-7 exceeded\n",
    );
    let log = [
        call("1", "read", r#"{"path":"big.log"}"#),
        output("1", &text, false),
    ];
    let told = made(&log, 4_000);
    assert!(
        told.contains("\n> 2026-01-01T00:01:00 WARN disk quota of tenant-7 exceeded"),
        "{told}"
    );
    let source = "fn a() {}\nlet b = c;\n".repeat(9) + "struct D {\n e: F,\n}\nimpl G for H {}\n";
    let log = [
        call("1", "read", r#"{"path":"a.rs"}"#),
        output("1", &source, false),
    ];
    assert!(!made(&log, 4_000).contains("unlike"));
}

#[test]
fn error_outlives_later_runs_that_passed() {
    let run = |id: &str, text: &str| [call(id, "run_tests", "{}"), output(id, text, false)];
    let first = run(
        "1",
        "    raise ValueError(items)\nerror: worker stopped with code 9831\n",
    );
    let log = [first, run("2", "all passed"), run("3", "all passed")].concat();
    let told = made(&log, 4_000);
    assert!(
        told.contains("> error: worker stopped") && !told.contains("raise"),
        "{told}"
    );
    assert!(
        told.contains("run_tests(): 10 B, ref ref-3") && !told.contains("ref-2"),
        "{told}"
    );
}

#[test]
fn long_session_is_told_in_the_room_that_there_is() {
    let mut log = Vec::new();
    for at in 0..500 {
        log.push(call(
            &at.to_string(),
            "bash",
            &format!(r#"{{"command":"sh step{at}.sh"}}"#),
        ));
        log.push(output(&at.to_string(), &"done\n".repeat(100), false));
    }
    let text = made(&log, 4_000);
    assert!(
        bytes(&text) > 3_500 && bytes(&text) <= 4_000,
        "{}",
        bytes(&text)
    );
    assert!(
        text.contains("step499.sh") && text.contains("- older: "),
        "{text}"
    );
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn any_history_has_a_digest_within_its_room(log in any_history(30), tokens in 0..3_000u64) {
        let once = made(&log, tokens);
        prop_assert!(bytes(&once) <= tokens.max(OPENING.len() as u64));
        prop_assert!(!once.contains("</"));
        prop_assert_eq!(&once, &made(&log, tokens));
    }
}
