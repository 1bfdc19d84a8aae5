//! The rules for programs, summaries of the provider and references to tools.

use serde_json::{Value, json};
use trimtab_model::Dialect;
use trimtab_testkit::upstream::StrictProvider;

fn broken(dialect: Dialect, list: &Value) -> Vec<String> {
    let body = match dialect {
        Dialect::Responses => json!({"model": "m", "store": false, "input": list}),
        _ => json!({"model": "m", "max_tokens": 9, "messages": list,
            "tools": [{"name": "read", "input_schema": {"type": "object"}}]}),
    };
    StrictProvider::new(dialect).refuses(body.to_string().as_bytes())
}

fn program() -> Vec<Value> {
    let caller = json!({"type": "program", "caller_id": "p1"});
    vec![
        json!({"role": "user", "content": "go"}),
        json!({"type": "program", "call_id": "p1", "code": "x", "fingerprint": "f"}),
        json!({"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}",
            "caller": caller}),
        json!({"type": "function_call_output", "call_id": "c1", "output": "a", "caller": caller}),
    ]
}

#[test]
fn open_program_is_accepted_and_its_outputs_name_it() {
    assert!(broken(Dialect::Responses, &json!(program())).is_empty());
    let mut list = program();
    list.remove(1);
    let said = broken(Dialect::Responses, &json!(list));
    assert_eq!(
        said,
        [
            "item 1 has no program \"p1\"",
            "item 2 has no program \"p1\""
        ]
    );
    let mut list = program();
    list[3].as_object_mut().unwrap().remove("caller");
    let said = broken(Dialect::Responses, &json!(list));
    assert_eq!(said, ["output \"c1\" has another caller"]);
    let mut list = program();
    list[3]["output"] = json!("a\n[trimtab: 9 lines left out]");
    let said = broken(Dialect::Responses, &json!(list));
    assert_eq!(said, ["output \"c1\" for a program is cut"]);
    let mut list = program();
    list[1] = json!({"type": "program_output", "call_id": "p1", "result": "7"});
    assert!(!broken(Dialect::Responses, &json!(list)).is_empty());
}

fn programmatic(results: &Value) -> Value {
    json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [
            {"type": "server_tool_use", "id": "s1", "name": "code_execution", "input": {}},
            {"type": "tool_use", "id": "c1", "name": "read", "input": {},
                "caller": {"type": "code_execution_20260120", "tool_id": "s1"}}]},
        {"role": "user", "content": results}])
}

#[test]
fn message_for_a_program_has_only_results() {
    let result = json!({"type": "tool_result", "tool_use_id": "c1", "content": "a"});
    assert!(broken(Dialect::Messages, &programmatic(&json!([result]))).is_empty());
    let text = json!({"type": "text", "text": "and hurry"});
    let said = broken(Dialect::Messages, &programmatic(&json!([result, text])));
    assert_eq!(said, ["message 2 answers a program with more"]);
    let mut apart = programmatic(&json!([result]));
    let list = apart.as_array_mut().unwrap();
    list.push(json!({"role": "user", "content": "and hurry"}));
    let said = broken(Dialect::Messages, &apart);
    assert_eq!(said, ["message 3 answers a program with more"]);
}

#[test]
fn signed_summary_stands_first_and_alone() {
    let block = json!({"type": "compaction", "content": "x", "signature": "s"});
    let said = |content: Value| json!({"role": "assistant", "content": content});
    let user = json!({"role": "user", "content": "go"});
    let first = json!([said(json!([block])), user]);
    assert!(broken(Dialect::Messages, &first).is_empty());
    let more = json!([said(json!([block, {"type": "text", "text": "a"}])), user]);
    assert_eq!(
        broken(Dialect::Messages, &more),
        ["the summary at messages.0.content.0 is misplaced"]
    );
    let late = json!([user, said(json!([block])), user]);
    assert_eq!(
        broken(Dialect::Messages, &late),
        ["the summary at messages.1.content.0 is misplaced"]
    );
    let two = json!([said(json!([block])), said(json!([block])), user]);
    assert_eq!(broken(Dialect::Messages, &two).len(), 1);
    let unsigned = json!({"type": "compaction", "content": "x"});
    let opening = json!([
        user,
        said(json!([unsigned, {"type": "text", "text": "a"}])),
        user
    ]);
    assert!(broken(Dialect::Messages, &opening).is_empty());
}

#[test]
fn reference_names_a_tool_of_the_request() {
    let referring = |name: &str| {
        json!([{"role": "user", "content": "go"},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "c1", "name": "read", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1",
                "content": [{"type": "tool_reference", "tool_name": name}]}]}])
    };
    assert!(broken(Dialect::Messages, &referring("read")).is_empty());
    assert_eq!(
        broken(Dialect::Messages, &referring("gone")),
        ["there is no tool \"gone\" to refer to"]
    );
}
