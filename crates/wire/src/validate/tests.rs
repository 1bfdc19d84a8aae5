use trimtab_model::Dialect;

use super::*;

fn faults(dialect: Dialect, entries: &str) -> Vec<String> {
    let name = if dialect == Dialect::Responses {
        "input"
    } else {
        "messages"
    };
    let body = format!("{{\"{name}\": [{entries}]}}");
    let scan = Scan::new(body.as_bytes(), dialect).unwrap();
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
    assert_eq!(
        check(&[USER, r#"{"role": "assistant", "content": ""}"#]),
        ["entry 1: the message is empty"]
    );
    assert_eq!(check(&[]), ["entry 0: there is no message"]);
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
fn messages_outputs_are_first_and_all_in_the_next_entry() {
    let check = |entries: &[&str]| faults(Dialect::Messages, &entries.join(","));
    let (a, b) = (result("a"), result("b"));
    let text = r#"{"type": "text", "text": "t"}"#;
    assert!(check(&[USER, ASK, &user(&[&b, &a, text])]).is_empty());
    assert_eq!(
        check(&[USER, ASK, &user(&[text, &a, &b])]).first().unwrap(),
        "entry 2: call \"a\" has no output directly behind it"
    );
    assert_eq!(
        check(&[USER, ASK, &user(&[&a]), &user(&[&b])]),
        [
            "entry 3: call \"b\" has no output directly behind it",
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
        ["entry 1: a cache marker on a thought or blank text"]
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
        ["entry 1: a thought without what it led to"]
    );
    assert_eq!(
        check(&[USER, thought, call]),
        ["entry 3: call \"a\" has no output directly behind it"]
    );
    assert_eq!(
        check(&[USER, output]),
        ["entry 1: output \"a\" answers no call before it"]
    );
}
