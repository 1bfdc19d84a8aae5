use serde_json::{Value, json};
use trimtab_model::{Call, Message, RawJson, Role};

use super::*;

fn read(values: &[Value]) -> Vec<Message> {
    values
        .iter()
        .flat_map(|value| read_message(&value.to_string()).unwrap())
        .collect()
}

fn written(messages: &[Message]) -> Vec<Value> {
    let request = write_request(messages);
    request.messages.iter().map(RawJson::to_value).collect()
}

#[test]
fn every_spelling_comes_back() {
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}});
    let values = [
        json!({"role": "user", "content": "hello"}),
        json!({"role": "user", "content": [{"type": "text", "text": "hello"}]}),
        json!({"role": "user", "content": []}),
        json!({"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}, image.clone(), {"type": "document", "source": {"type": "file", "file_id": "f"}}]}),
        json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "redacted_thinking", "data": "xyz"},
            {"type": "text", "text": "on it", "citations": null},
            {"type": "tool_use", "id": "c1", "name": "ls", "input": {"path": "."}, "caller": {"type": "direct"}},
            {"type": "tool_use", "id": "c2", "name": "ls", "input": {}},
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
            {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
        ]}),
        json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": "ok", "is_error": false, "cache_control": {"type": "ephemeral"}},
            {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "ok"}], "is_error": true},
            {"type": "tool_result", "tool_use_id": "c3", "content": [{"type": "text", "text": "ok"}, image]},
            {"type": "tool_result", "tool_use_id": "c4"},
            {"type": "tool_result", "tool_use_id": "c5", "content": []},
            {"type": "text", "text": "go on"},
        ], "id": 7}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "d", "content": "its own message"}]}),
        json!({"role": "user", "content": [{"type": "text", "text": "before"}, {"type": "tool_result", "tool_use_id": "e", "content": "mixed"}]}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": 5}, {"type": "tool_use"}, "bare", {"no": "type"}]}),
        json!({"role": "assistant", "content": "plain", "stop_reason": "end_turn"}),
        json!({"role": "system", "content": "in between"}),
    ];
    for value in values.chunks(1) {
        let log = [vec![Message::user("x")], read(value)].concat();
        assert_eq!(&written(&log)[1..], value);
    }
    assert_eq!(written(&read(&values)), values);
}

#[test]
fn outputs_are_tool_messages() {
    let read = read(&[json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "c1", "content": "one"},
        {"type": "tool_result", "tool_use_id": "c2", "content": "two", "is_error": true},
        {"type": "text", "text": "go on"},
    ]})]);
    assert_eq!(
        read.iter().map(|m| m.role).collect::<Vec<_>>(),
        [Role::Tool, Role::User]
    );
    let outputs: Vec<_> = read[0]
        .outputs()
        .map(|o| (o.text().into_owned(), o.is_error))
        .collect();
    assert_eq!(outputs, [("one".into(), false), ("two".into(), true)]);
}

#[test]
fn thoughts_keep_their_seal() {
    let read = read(&[json!({"role": "assistant", "content": [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "xyz"},
    ]})]);
    let seals: Vec<_> = read[0]
        .parts
        .iter()
        .map(|part| match part {
            trimtab_model::Part::Reasoning(r) => (r.text.as_str(), r.seal.as_deref()),
            _ => panic!("not a thought"),
        })
        .collect();
    assert_eq!(seals, [("hm", Some("sig")), ("", Some("xyz"))]);
}

#[test]
fn the_system_field_comes_back() {
    for system in [
        json!("be brief"),
        json!([{"type": "text", "text": "be brief"}]),
        json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}}]),
        json!([]),
    ] {
        let message = read_system(&system.to_string()).unwrap();
        assert_eq!(write_request(&[message]).system.unwrap().to_value(), system);
    }
    assert_eq!(write_request(&[]).system, None);
}

#[test]
fn outputs_of_another_dialect_go_into_one_message() {
    let log = [
        Message::user("go"),
        Message::assistant("")
            .with_call(Call::new("a", "ls", ""))
            .with_call(Call::new("b", "ls", "oops")),
        Message::output("a", "1"),
        Message::output("b", "2"),
        Message::user("next"),
    ];
    let expected = [
        json!({"role": "user", "content": "go"}),
        json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": "a", "name": "ls", "input": {}},
            {"type": "tool_use", "id": "b", "name": "ls", "input": {"arguments": "oops"}},
        ]}),
        json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "1"},
            {"type": "tool_result", "tool_use_id": "b", "content": "2"},
        ]}),
        json!({"role": "user", "content": "next"}),
    ];
    assert_eq!(written(&log), expected);
}
