//! Sessions are saved and resumed.

use serde_json::Value;

use crate::run::{Place, READS};

#[test]
fn resumed_session_continues_where_it_stopped() {
    let place = Place::new();
    let model = place.script(READS);
    let first = place.chat(&[
        "--model",
        &model,
        "--preset",
        "refs",
        "--print",
        "what is 42?",
    ]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    // The model, its place in the script, the preset and the workspace are remembered.
    let second = place.chat(&["--resume", "--print", "thank you", "--json"]);
    let start: Value = serde_json::from_str(second.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(start["preset"], "refs");
    let end: Value = serde_json::from_str(second.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(end["text"], "You are welcome.");
    let list = place.chat(&["--list"]);
    assert_eq!(list.stdout.lines().count(), 2, "{}", list.stdout);
    assert!(list.stdout.contains("what is 42?"), "{}", list.stdout);
    let json: Value =
        serde_json::from_str(place.chat(&["--list", "--json"]).stdout.trim()).unwrap();
    assert_eq!(json["session"], start["session"]);
    // System, two questions, three answers and an output.
    assert_eq!(json["messages"], 7);
}

#[test]
fn empty_session_is_not_kept() {
    let place = Place::new();
    let model = place.script(READS);
    let outcome = place.chat_with(&["--model", &model], "/context\n");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let list = place.chat(&["--list"]);
    assert_eq!((list.stdout.as_str(), list.code), ("", 0));
    assert!(list.stderr.contains("no sessions yet"), "{}", list.stderr);
}

#[test]
fn sessions_do_not_share_messages() {
    let place = Place::new();
    let model = place.script(READS);
    for said in ["one", "two"] {
        place.chat(&["--model", &model, "--print", said]);
    }
    let list = place.chat(&["--list", "--json"]);
    let ids: Vec<String> = list
        .stdout
        .lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            line["session"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(ids.len(), 2);
    let given = ids[1].strip_prefix("chat-").unwrap();
    let outcome = place.chat(&["--resume", given, "--print", "again", "--json"]);
    assert!(outcome.stdout.contains(&ids[1]), "{}", outcome.stdout);
}
