use serde_json::{Value, json};
use trimtab_model::{Call, Message, Part, RawJson, Role};

use super::*;

fn written(messages: &[Message]) -> Vec<Value> {
    write_input(messages)
        .iter()
        .map(RawJson::to_value)
        .collect()
}

#[track_caller]
fn comes_back(value: &Value) -> Vec<Message> {
    let messages = read_input(&value.to_string()).unwrap();
    assert_eq!(&Value::Array(written(&messages)), value);
    messages
}

#[test]
fn every_spelling_comes_back() {
    comes_back(&json!([
        {"type": "additional_tools", "role": "developer", "tools": [{"type": "custom", "name": "exec"}]},
        {"role": "user", "content": "plain"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "typed"}]},
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "rules"}], "id": "m0"},
        {"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "see"},
            {"type": "input_image", "image_url": "data:image/png;base64,AA", "detail": "auto"},
            {"type": "input_file", "file_id": "f"},
            {"type": "hologram"},
        ]},
        {"type": "message", "role": "user", "content": []},
        {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "gAAA"},
        {"type": "reasoning", "id": "r2", "summary": [], "content": [{"type": "reasoning_text", "text": "x"}]},
        {"type": "reasoning", "summary": [], "encrypted_content": null},
        {"type": "reasoning", "id": "r4", "encrypted_content": "gAAA"},
        {"type": "message", "role": "assistant", "id": "m1", "status": "completed", "phase": "commentary",
         "content": [{"type": "output_text", "text": "a", "annotations": []}, {"type": "output_text", "text": "b"}]},
        {"role": "assistant", "content": "easy"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "c"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "d"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
        {"type": "message", "role": "assistant", "content": []},
        {"type": "function_call", "id": "f1", "call_id": "c1", "name": "ls", "arguments": "{}", "status": "completed"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "*** a"},
        {"type": "local_shell_call", "id": "l1", "call_id": "c3", "action": {"type": "exec", "command": ["ls"]}, "status": "completed"},
        {"type": "web_search_call", "id": "w1", "status": "completed"},
        {"type": "function_call_output", "call_id": "c1", "output": "a.txt"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "ok"}]},
        {"type": "local_shell_call_output", "id": "c3", "output": "b.txt"},
        {"type": "function_call_output", "call_id": "c9", "output": {"content": "x", "success": true}},
        {"type": "compaction", "id": "k", "encrypted_content": "zzz"},
        {"type": "item_reference", "id": "i"},
    ]));
}

#[test]
fn items_of_one_answer_are_one_message() {
    let messages = comes_back(&json!([
        {"role": "user", "content": "go"},
        {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "gAAA"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "on it"}]},
        {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"},
        {"type": "function_call", "call_id": "c2", "name": "ls", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c2", "output": "2"},
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
    ]));
    let roles: Vec<_> = messages.iter().map(|m| m.role).collect();
    assert_eq!(
        roles,
        [
            Role::User,
            Role::Assistant,
            Role::Tool,
            Role::Tool,
            Role::Assistant
        ]
    );
    assert_eq!(messages[1].calls().count(), 2);
    assert!(matches!(&messages[1].parts[0], Part::Reasoning(r) if r.is_sealed()));
    assert_eq!(messages[1].text(), "on it");
}

#[test]
fn a_summary_of_the_provider_starts_no_turn() {
    let messages = read_input(r#"[{"type":"compaction","encrypted_content":"x"}]"#).unwrap();
    assert!(!messages[0].is_real_user());
}

#[test]
fn a_string_is_one_user_message() {
    assert_eq!(read_input("\"hello\"").unwrap(), [Message::user("hello")]);
    assert!(read_input("{}").is_err());
}

#[test]
fn messages_of_another_dialect_are_written() {
    let log = [
        Message::system("rules"),
        Message::assistant("on it").with_call(Call::new("a", "ls", "{}")),
        Message::output("a", "1"),
    ];
    let expected = [
        json!({"type": "message", "role": "system", "content": "rules"}),
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "on it"}]}),
        json!({"type": "function_call", "call_id": "a", "name": "ls", "arguments": "{}"}),
        json!({"type": "function_call_output", "call_id": "a", "output": "1"}),
    ];
    assert_eq!(written(&log), expected);
}
