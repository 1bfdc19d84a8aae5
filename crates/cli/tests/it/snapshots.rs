//! Complete outputs as text files that can be reviewed.

use crate::run::{golden, trimtab, with_input};

const EXAMPLE: &str = "examples/fix-failing-test.json";

#[test]
fn one_conversation_is_shown_in_full() {
    golden("one.txt", &trimtab(&["inspect", EXAMPLE]));
}

#[test]
fn one_conversation_is_shown_in_colour() {
    let args = ["inspect", EXAMPLE, "--window", "20k", "--color", "always"];
    golden("colour.txt", &trimtab(&args));
}

#[test]
fn overfull_window_is_marked() {
    golden(
        "over.txt",
        &trimtab(&["inspect", EXAMPLE, "--window", "8k"]),
    );
}

#[test]
fn one_conversation_is_printed_as_json() {
    let outcome = trimtab(&["inspect", EXAMPLE, "--json"]);
    let value: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    let pretty = serde_json::to_string_pretty(&value).unwrap();
    let shown = crate::run::Outcome {
        stdout: pretty + "\n",
        ..outcome
    };
    golden("json.txt", &shown);
}

#[test]
fn every_form_is_inspected() {
    let forms = [
        "chat.jsonl",
        "chat-messages.jsonl",
        "messages.json",
        "responses.json",
        "claude-code.jsonl",
        "codex.jsonl",
        "opencode.json",
    ];
    let paths: Vec<String> = forms
        .iter()
        .map(|form| format!("examples/forms/{form}"))
        .collect();
    let args = ["inspect"]
        .into_iter()
        .chain(paths.iter().map(String::as_str));
    golden("forms.txt", &trimtab(&args.collect::<Vec<_>>()));
}

#[test]
fn all_flag_shows_every_conversation_in_full() {
    let args = [
        "inspect",
        "--all",
        "examples/forms/codex.jsonl",
        "examples/forms/messages.json",
    ];
    golden("all.txt", &trimtab(&args));
}

#[test]
fn standard_input_is_inspected() {
    let input = br#"[{"role":"user","content":"hello"},{"role":"assistant","content":"hi"}]"#;
    golden("stdin.txt", &with_input(&["inspect", "-"], input));
}

#[test]
fn help() {
    golden("help.txt", &trimtab(&["inspect", "--help"]));
}

#[test]
fn model_flag_sets_the_window() {
    let outcome = trimtab(&["inspect", EXAMPLE, "--model", "gpt-4o"]);
    assert!(
        outcome.stdout.contains(" of 128,000 tokens"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn version_flag_prints_the_version() {
    let outcome = trimtab(&["--version"]);
    let expected = concat!("trimtab ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!((outcome.stdout.as_str(), outcome.code), (expected, 0));
}
