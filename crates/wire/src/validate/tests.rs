use trimtab_model::Dialect;

use super::*;

fn faults(dialect: Dialect, entries: &str) -> Vec<String> {
    let name = if dialect == Dialect::Responses {
        "input"
    } else {
        "messages"
    };
    let body = format!("{{\"{name}\": [{entries}]}}");
    let scan = BodyScan::new(body.as_bytes(), dialect).unwrap();
    let faults = validate(&scan);
    faults.iter().map(ToString::to_string).collect()
}

const USER: &str = r#"{"role": "user", "content": "go"}"#;

fn chat_call(ids: &[&str]) -> String {
    let call = |id: &&str| {
        format!(
            r#"{{"id": "{id}", "type": "function", "function": {{"name": "f", "arguments": "{{}}"}}}}"#
        )
    };
    let calls: Vec<String> = ids.iter().map(call).collect();
    format!(
        r#"{{"role": "assistant", "content": null, "tool_calls": [{}]}}"#,
        calls.join(",")
    )
}

fn chat_output(id: &str) -> String {
    format!(r#"{{"role": "tool", "tool_call_id": "{id}", "content": ""}}"#)
}

#[test]
fn chat_outputs_stand_directly_behind_their_calls() {
    let check = |entries: &[&str]| faults(Dialect::Chat, &entries.join(","));
    let (call, a, b) = (chat_call(&["a", "b"]), chat_output("a"), chat_output("b"));
    assert!(check(&[USER, &call, &b, &a]).is_empty());
    assert_eq!(
        check(&[USER, &call, &b, USER, &a]),
        [
            "entry 3: call \"a\" has no output directly behind it",
            "entry 4: output \"a\" answers no call before it"
        ]
    );
    assert_eq!(
        check(&[USER, &call, &a, &b, &b]),
        ["entry 4: call \"b\" is answered twice"]
    );
    assert_eq!(
        check(&[USER, &chat_call(&["a"])]),
        ["entry 2: call \"a\" has no output directly behind it"]
    );
    assert_eq!(check(&[]), ["entry 0: there is no message"]);
}

#[test]
fn chat_accepts_what_only_messages_refuses() {
    let check = |entries: &[&str]| faults(Dialect::Chat, &entries.join(","));
    let answer = r#"{"role": "assistant", "content": "hello"}"#;
    let empty = r#"{"role": "assistant", "content": ""}"#;
    let thought = r#"{"role": "assistant", "content": null, "reasoning_content": "hm"}"#;
    let system = r#"{"role": "system", "content": "be brief"}"#;
    assert!(check(&[answer, USER, empty, thought, system, answer]).is_empty());
    assert!(check(&[system]).is_empty());
    let legacy = r#"{"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}}"#;
    let output = r#"{"role": "function", "name": "f", "content": "x"}"#;
    assert!(check(&[USER, legacy, output, USER, legacy]).is_empty());
}

const ASK: &str = r#"{"role": "assistant", "content": [
    {"type": "tool_use", "id": "a", "name": "f", "input": {}},
    {"type": "tool_use", "id": "b", "name": "f", "input": {}}]}"#;

fn result(id: &str) -> String {
    format!(r#"{{"type": "tool_result", "tool_use_id": "{id}", "content": "x"}}"#)
}

fn user(parts: &[&str]) -> String {
    format!(r#"{{"role": "user", "content": [{}]}}"#, parts.join(","))
}

#[test]
fn messages_outputs_are_first_behind_their_calls() {
    let check = |entries: &[&str]| faults(Dialect::Messages, &entries.join(","));
    let (a, b) = (result("a"), result("b"));
    let text = r#"{"type": "text", "text": "t"}"#;
    assert!(check(&[USER, ASK, &user(&[&b, &a, text])]).is_empty());
    assert_eq!(
        check(&[USER, ASK, &user(&[text, &a, &b])]).first().unwrap(),
        "entry 2: call \"a\" has no output directly behind it"
    );
    // Messages of one role in a row are one.
    assert!(check(&[USER, ASK, &user(&[&a]), &user(&[&b])]).is_empty());
    let said = r#"{"role": "assistant", "content": "wait"}"#;
    assert!(check(&[USER, ASK, said, &user(&[&a, &b])]).is_empty());
    assert_eq!(
        check(&[USER, ASK, &user(&[&a, text]), &user(&[&b])]),
        [
            "entry 2: call \"b\" has no output directly behind it",
            "entry 3: output \"b\" answers no call before it"
        ]
    );
    assert_eq!(
        check(&[ASK, &user(&[&a, &b])]),
        ["entry 0: the conversation does not begin with the user"]
    );
    assert_eq!(
        check(&[&user(&[text, r#"{"type": "text", "text": " "}"#])]),
        ["entry 0: a text part is blank"]
    );
}

#[test]
fn messages_refuses_nothing_but_at_the_end() {
    let check = |entries: &[&str]| faults(Dialect::Messages, &entries.join(","));
    let empty = r#"{"role": "assistant", "content": ""}"#;
    let system = r#"{"role": "system", "content": []}"#;
    assert!(check(&[USER, system, USER, empty]).is_empty());
    assert_eq!(
        check(&[USER, empty, USER]),
        ["entry 1: the message is empty"]
    );
    let thought = r#"{"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}]}"#;
    assert_eq!(
        check(&[USER, thought, USER]),
        ["entry 1: reasoning without the text or call it led to"]
    );
}

#[test]
fn markers_are_few_and_not_on_thoughts() {
    let mark = r#""cache_control": {"type": "ephemeral"}"#;
    let text = format!(r#"{{"type": "text", "text": "t", {mark}}}"#);
    let thought = format!(
        r#"{{"role": "assistant", "content": [{{"type": "thinking", "thinking": "", "signature": "s", {mark}}},
           {{"type": "text", "text": "t"}}]}}"#
    );
    let five = user(&[&text, &text, &text, &text, &text]);
    assert_eq!(
        faults(Dialect::Messages, &five),
        ["entry 1: 5 cache markers, more than 4"]
    );
    assert_eq!(
        faults(Dialect::Messages, &format!("{USER},{thought}")),
        ["entry 1: a cache marker on reasoning or blank text"]
    );
}

#[test]
fn responses_thoughts_lead_to_something() {
    let thought = r#"{"type": "reasoning", "id": "rs", "summary": []}"#;
    let call = r#"{"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}"#;
    let output = r#"{"type": "function_call_output", "call_id": "a", "output": "x"}"#;
    let check = |entries: &[&str]| faults(Dialect::Responses, &entries.join(","));
    assert!(check(&[USER, thought, call, output]).is_empty());
    assert_eq!(
        check(&[USER, thought, USER]),
        ["entry 1: reasoning without the text or call it led to"]
    );
    assert_eq!(
        check(&[USER, thought, call]),
        ["entry 3: call \"a\" has no output directly behind it"]
    );
    assert_eq!(
        check(&[USER, output]),
        ["entry 1: output \"a\" answers no call before it"]
    );
    let unnamed = r#"{"type": "reasoning", "summary": [], "encrypted_content": "x"}"#;
    assert!(check(&[USER, unnamed, USER]).is_empty());
}

#[test]
fn responses_outputs_stand_anywhere_behind_their_calls() {
    let call = r#"{"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}"#;
    let output = r#"{"type": "function_call_output", "call_id": "a", "output": "x"}"#;
    let check = |entries: &[&str]| faults(Dialect::Responses, &entries.join(","));
    assert!(check(&[call, USER, output]).is_empty());
    assert_eq!(
        check(&[USER, output, call]),
        [
            "entry 1: output \"a\" answers no call before it",
            "entry 3: call \"a\" has no output directly behind it"
        ]
    );
}
