use serde_json::{Value, json};
use trimtab_model::{Call, Message, MessageKind, Output, Part, Role};

use super::*;

fn read(value: &Value) -> Message {
    read_message(&value.to_string()).unwrap()
}

fn written(message: &Message) -> Vec<Value> {
    write_message(message)
        .iter()
        .map(trimtab_model::RawJson::to_value)
        .collect()
}

#[track_caller]
fn comes_back(value: Value) {
    assert_eq!(written(&read(&value)), [value]);
}

#[test]
fn every_spelling_comes_back() {
    for value in [
        json!({"role": "system", "content": "be brief"}),
        json!({"role": "assistant", "tool_calls": [{"call_id": null}, {"type": "function_call", "call_id": "c"}]}),
        json!({"role": "developer", "content": "be brief"}),
        json!({"role": "user", "content": ""}),
        json!({"role": "user", "content": [], "name": "ada"}),
        json!({"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]}),
        json!({"role": "user", "content": [
            {"type": "text", "text": "see"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}},
            {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
            {"type": "file", "file": {"file_id": "f1"}},
            {"type": "hologram", "depth": 3},
        ]}),
        json!({"role": "critic", "content": "unknown role"}),
        json!({"role": "assistant", "content": null}),
        json!({"role": "assistant", "content": "", "tool_calls": []}),
        json!({"role": "assistant", "content": []}),
        json!({"role": "assistant", "tool_calls": [call("c1")]}),
        json!({"role": "assistant", "content": "x", "reasoning_content": "hm", "refusal": null}),
        json!({"role": "assistant", "content": "x", "reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm", "signature": "s"}]}),
        json!({"role": "assistant", "content": "x", "reasoning_content": ""}),
        json!({"role": "assistant", "content": null, "tool_calls": [call("c1"), {"id": "c2", "type": "custom", "custom": {"name": "patch", "input": "*** a"}}]}),
        json!({"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}),
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "index": 0, "function": {"name": "f", "arguments": "not json"}}]}),
        json!({"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}}),
        json!({"role": "function", "name": "f", "content": "done"}),
        json!({"role": "tool", "tool_call_id": "c1", "content": "done", "name": "ls", "is_error": true}),
        json!({"role": "tool", "tool_call_id": "c1", "content": "done", "is_error": false, "trimmed": true}),
        json!({"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
        json!({"role": "tool", "tool_call_id": "c1", "content": null}),
        json!({"role": "tool", "tool_call_id": "c1", "content": {"rows": 3}}),
        json!({"role": "tool", "tool_call_id": "c1", "content": "", "output_ref": {"id": "ref_1"}}),
        json!({"role": "tool", "tool_call_id": "c1", "content": "", "output_ref": {"id": "ref_1", "x": 1}}),
        json!({"role": "tool", "tool_call_id": "c1", "content": "", "metadata": {"agent_visible": false, "kind": "tool_result_archived"}}),
        json!({"role": "user", "content": "x", "metadata": {"kind": "unheard_of", "user_visible": true, "tag": 1}}),
        json!({"role": "user", "content": "x", "metadata": {}}),
        json!({"role": "user", "content": "x", "metadata": {}, "images": 2}),
        json!({"role": "assistant", "content": "x", "stop_reason": "end_turn", "usage": {"input": 5, "output": 2, "cache_read": 1, "cache_write": 0, "total": 8}}),
        json!({"role": "assistant", "content": "x", "stop_reason": null, "usage": {"prompt_tokens": 5}}),
    ] {
        comes_back(value);
    }
}

fn call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "ls", "arguments": "{\"a\": 1}"}})
}

#[test]
fn the_model_sees_what_was_meant() {
    let message = read(
        &json!({"role": "assistant", "content": "", "reasoning": "hm", "tool_calls": [call("c1")]}),
    );
    assert!(matches!(
        message.parts.as_slice(),
        [Part::Reasoning(_), Part::Call(_)]
    ));
    assert_eq!(message.calls().next().unwrap().arguments, "{\"a\": 1}");

    let archived = read(
        &json!({"role": "tool", "tool_call_id": "c1", "content": "x", "metadata": {"agent_visible": false, "kind": "tool_result_archived"}}),
    );
    assert_eq!(archived.meta.kind, Some(MessageKind::ToolResultArchived));
    assert!(!archived.agent_visible());

    let usage = read(
        &json!({"role": "assistant", "content": "x", "usage": {"input": 5, "output": 2, "cache_read": 1, "cache_write": 3, "total": 11}}),
    );
    assert_eq!(usage.meta.usage.unwrap().total(), 11);

    let failed = read(
        &json!({"role": "tool", "tool_call_id": "c1", "name": "sh", "content": "x", "is_error": true, "output_ref": {"id": "r"}}),
    );
    let output = failed.outputs().next().unwrap();
    assert!(output.is_error && output.tool.as_deref() == Some("sh"));
    assert_eq!(output.stored.as_ref().unwrap().id(), "r");
}

#[test]
fn several_outputs_become_several_messages() {
    let parts = vec![
        Part::Output(Output::new("a", "1")),
        Part::Output(Output::new("b", "2")),
    ];
    let expected = [
        json!({"role": "tool", "tool_call_id": "a", "content": "1"}),
        json!({"role": "tool", "tool_call_id": "b", "content": "2"}),
    ];
    assert_eq!(written(&Message::new(Role::Tool, parts)), expected);
}

#[test]
fn an_edited_call_is_not_written_as_it_came() {
    let odd = json!({"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]});
    let mut message = read(&odd);
    if let Some(Part::Call(call)) = message.parts.first_mut() {
        call.arguments = "{}".into();
    }
    let arguments = &written(&message)[0]["tool_calls"][0]["function"]["arguments"];
    assert_eq!(arguments, "{}");
}

#[test]
fn a_message_of_ours_is_written_plainly() {
    let message = Message::assistant("on it").with_call(Call::new("c1", "ls", "{}"));
    let expected = json!({"role": "assistant", "content": "on it", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]});
    assert_eq!(written(&message), [expected]);
}

#[test]
fn number_spelling_and_order_of_unknown_fields_survive() {
    let json = r#"{"role":"user","content":"a","z":1.50,"b":{"y" : 1e3}}"#;
    assert_eq!(
        write_message(&read_message(json).unwrap())[0].as_str(),
        json
    );
}

#[test]
fn only_objects_are_messages() {
    for json in ["", "1", "[]", "{", "\"user\""] {
        assert!(read_message(json).is_err(), "{json}");
    }
}
