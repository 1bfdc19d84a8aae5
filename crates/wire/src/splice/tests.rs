use std::sync::Arc;

use trimtab_model::{Call, Dialect, Message, MessageKind, Output, Part, RawJson};

use super::*;

fn spliced(body: &str, dialect: Dialect, changes: &[BodyChange]) -> String {
    let scan = BodyScan::new(body.as_bytes(), dialect).unwrap();
    let spliced = splice(&scan, changes).unwrap();
    assert_eq!(spliced.skipped, Vec::<usize>::new());
    String::from_utf8(spliced.body.into_owned()).unwrap()
}

fn insert(before: usize, message: Message) -> BodyChange {
    let message = Arc::new(message);
    BodyChange::Insert { before, message }
}

#[test]
fn an_output_keeps_all_but_its_content() {
    let body = r#"{"messages":[{"role":"user","content":[
        {"type":"tool_result","tool_use_id":"c","is_error":true,"content":[{"type":"text","text":"a long text that is cut","cache_control":{"type":"ephemeral","ttl":"1h"}}],"cache_control":{"type":"ephemeral"}}]}]}"#;
    let output = Output::new("c", "cut");
    let change = BodyChange::Show {
        message: 0,
        part: 0,
        output,
    };
    assert_eq!(
        spliced(body, Dialect::Messages, &[change]),
        body.replace("a long text that is cut", "cut"),
    );
}

#[test]
fn a_view_that_is_longer_is_not_shown() {
    let body = r#"{"messages":[{"role":"tool","tool_call_id":"c","content":"ok"}]}"#;
    let scan = BodyScan::new(body.as_bytes(), Dialect::Chat).unwrap();
    let output = Output::new("c", "longer than it was");
    let change = BodyChange::Show {
        message: 0,
        part: 0,
        output,
    };
    let spliced = splice(&scan, &[BodyChange::SetLimit { tokens: 1 }, change]).unwrap();
    assert_eq!(spliced.skipped, [1]);
    assert_eq!(
        spliced.body.as_ref(),
        br#"{"messages":[{"role":"tool","tool_call_id":"c","content":"ok"}],"max_completion_tokens":1}"#
    );
}

#[test]
fn outputs_put_in_join_those_of_their_round() {
    let body = r#"{"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"B"},{"type":"text","text":"t"}]}]}"#;
    let a = r#"{"type":"tool_result","tool_use_id":"a","content":"aborted"}"#;
    let b = r#"{"type":"tool_result","tool_use_id":"b","content":"B"}"#;
    for before in [2, 3] {
        let change = insert(before, Message::output("a", "aborted"));
        let expected = if before == 2 {
            format!("[{a},{b},")
        } else {
            format!("[{b},{a},")
        };
        let found = spliced(body, Dialect::Messages, &[change]);
        assert!(found.contains(&expected), "{found}");
    }
}

#[test]
fn an_answer_is_not_put_between_outputs_and_text_of_one_message() {
    let body = r#"{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"B"},{"type":"text","text":"t"}]}]}"#;
    let scan = BodyScan::new(body.as_bytes(), Dialect::Messages).unwrap();
    assert!(splice(&scan, &[insert(1, Message::assistant("x"))]).is_err());
    assert!(
        splice(
            &scan,
            &[
                BodyChange::Remove { messages: 0..1 },
                insert(1, Message::assistant("x"))
            ]
        )
        .is_ok()
    );
}

#[test]
fn a_system_message_goes_where_the_system_speaks() {
    let note = || Message::system("note").with_kind(MessageKind::Summary);
    let change = |before| insert(before, note());
    let found = spliced(
        r#"{"messages":[{"role":"user","content":"go"}],"system":"be brief"}"#,
        Dialect::Messages,
        &[change(1)],
    );
    assert_eq!(
        found,
        r#"{"messages":[{"role":"user","content":"go"}],"system":"be brief\n\nnote"}"#
    );
    let found = spliced(r#"{"messages":[]}"#, Dialect::Chat, &[change(0)]);
    assert_eq!(
        found,
        r#"{"messages":[{"role":"system","content":"note"}]}"#
    );
}

#[test]
fn own_metadata_is_not_sent() {
    let mut output = Output::new("c", "x");
    output.trimmed = true;
    output.is_error = true;
    let message = Message::new(trimtab_model::Role::Tool, vec![Part::Output(output)]);
    let message = message.with_kind(MessageKind::Repair);
    let found = spliced(r#"{"messages":[]}"#, Dialect::Chat, &[insert(0, message)]);
    assert_eq!(
        found,
        r#"{"messages":[{"role":"tool","tool_call_id":"c","content":"x"}]}"#
    );
}

#[test]
fn stale_reasoning_is_dropped_where_thinking_is_adaptive() {
    let drop = [BodyChange::DropStaleReasoning];
    let body =
        |thinking: &str| format!(r#"{{"messages":[{{"role":"user","content":"go"}}]{thinking}}}"#);
    for (thinking, expected) in [
        ("", ""),
        (
            r#","thinking":{"display":"omitted","type":"adaptive"}"#,
            r#","thinking":{"display":"omitted","type":"adaptive","block_binding":{"prefix_mismatch_behavior":"drop_block"}}"#,
        ),
        (
            r#","thinking":{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"error"}}"#,
            r#","thinking":{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"drop_block"}}"#,
        ),
        (
            r#","thinking":{"type":"enabled","budget_tokens":1024}"#,
            r#","thinking":{"type":"enabled","budget_tokens":1024}"#,
        ),
        (
            r#","thinking":{"type":"between_tools"}"#,
            r#","thinking":{"type":"between_tools"}"#,
        ),
    ] {
        let found = spliced(&body(thinking), Dialect::Messages, &drop);
        assert_eq!(found, body(expected));
    }
    let chat = body("");
    assert_eq!(spliced(&chat, Dialect::Chat, &drop), chat);
}

#[test]
fn thoughts_go_with_the_ids_that_depend_on_them() {
    let body = r#"{"input":[{"role":"user","content":"go"},{"type":"reasoning","id":"rs","summary":[]},{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"x"}]}"#;
    let found = spliced(
        body,
        Dialect::Responses,
        &[BodyChange::StripReasoning { before: 3 }],
    );
    assert_eq!(
        found,
        r#"{"input":[{"role":"user","content":"go"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"x"}]}"#
    );
    let body = r#"{"messages":[{"role":"user","content":"go"},{"role":"assistant","reasoning_details":[1],"content":"x","reasoning_content":"hm"}]}"#;
    let found = spliced(
        body,
        Dialect::Chat,
        &[BodyChange::StripReasoning { before: 2 }],
    );
    assert_eq!(
        found,
        r#"{"messages":[{"role":"user","content":"go"},{"role":"assistant","content":"x"}]}"#
    );
}

#[test]
fn an_input_that_is_a_text_becomes_a_list() {
    let body = r#"{"instructions":"s","input":"h\u00e9"}"#;
    let user = r#"{"role":"user","content":"h\u00e9"}"#;
    let ours = r#"{"type":"message","role":"user","content":"x"}"#;
    let with = |before| {
        spliced(
            body,
            Dialect::Responses,
            &[insert(before, Message::user("x"))],
        )
    };
    assert_eq!(
        with(1),
        format!(r#"{{"instructions":"s","input":[{ours},{user}]}}"#)
    );
    assert_eq!(
        with(2),
        format!(r#"{{"instructions":"s","input":[{user},{ours}]}}"#)
    );
}

#[test]
fn calls_are_taken_out_of_an_answer() {
    let call = |id: &str| {
        format!(r#"{{"id":"{id}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}"#)
    };
    let body = |content: &str, calls: &str| {
        format!(r#"{{"messages":[{{"role":"assistant","content":{content}{calls}}}]}}"#)
    };
    let both = body(
        "\"x\"",
        &format!(r#","tool_calls":[{},{}]"#, call("a"), call("b")),
    );
    let remove = |part| BodyChange::RemovePart { message: 0, part };
    assert_eq!(
        spliced(&both, Dialect::Chat, &[remove(1)]),
        body("\"x\"", &format!(r#","tool_calls":[{}]"#, call("b")))
    );
    assert_eq!(
        spliced(&both, Dialect::Chat, &[remove(1), remove(2)]),
        body("\"x\"", "")
    );
    assert_eq!(
        spliced(&both, Dialect::Chat, &[remove(0), remove(2)]),
        body("null", &format!(r#","tool_calls":[{}]"#, call("a")))
    );
}

#[test]
fn a_message_is_written_anew() {
    let body =
        r#"{"messages":[{"role":"user","content":"go"}, {"role":"assistant","content":"x"}]}"#;
    let with = Arc::new(Message::assistant("").with_call(Call::new("c", "f", "{}")));
    let found = spliced(
        body,
        Dialect::Messages,
        &[BodyChange::Replace { message: 1, with }],
    );
    assert_eq!(
        found,
        r#"{"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]}]}"#
    );
}

#[test]
fn outputs_stay_behind_a_message_that_is_written_anew() {
    let call = |id: &str| {
        format!(
            r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"{id}","name":"f","input":{{}}}}]}}"#
        )
    };
    let output = |id: &str| {
        format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":"x"}}]}}"#
        )
    };
    let body = format!(
        r#"{{"max_tokens":9,"messages":[{{"role":"user","content":"go"}},{},{},{},{}]}}"#,
        call("a"),
        output("a"),
        call("b"),
        output("b")
    );
    let both = Message::assistant("")
        .with_call(Call::new("h", "f", "{}"))
        .with_call(Call::new("b", "f", "{}"));
    let parts = ["h", "b"].map(|id| Part::Output(Output::new(id, "x")));
    let outputs = Message::new(trimtab_model::Role::Tool, parts.to_vec());
    let replace = |message, with| BodyChange::Replace {
        message,
        with: Arc::new(with),
    };
    let changes = [replace(3, both), replace(4, outputs)];
    let found = spliced(&body, Dialect::Messages, &changes);
    let scan = BodyScan::new(found.as_bytes(), Dialect::Messages).unwrap();
    assert_eq!(crate::validate::validate(&scan), [], "{found}");
    assert!(found.contains(&output("a")), "{found}");
}

#[test]
fn tools_are_added_behind_the_others() {
    let tools = vec![RawJson::parse(r#"{"name":"z"}"#).unwrap()];
    let changes = [BodyChange::AddTools { tools }];
    let body = r#"{"tools": [ {"name": "m"} ], "messages": []}"#;
    assert_eq!(
        spliced(body, Dialect::Messages, &changes),
        r#"{"tools": [ {"name": "m"},{"name":"z"} ], "messages": []}"#
    );
    assert_eq!(
        spliced(r#"{"messages": []}"#, Dialect::Messages, &changes),
        r#"{"messages": [],"tools":[{"name":"z"}]}"#
    );
}

#[test]
fn a_model_calls_no_tools_and_keeps_their_list() {
    let no_calls = [BodyChange::CallNoTools];
    let body = r#"{"tools":[{"name":"m"}],"tool_choice":{"type":"auto"},"messages":[]}"#;
    assert_eq!(
        spliced(body, Dialect::Messages, &no_calls),
        r#"{"tools":[{"name":"m"}],"tool_choice":{"type":"none"},"messages":[]}"#
    );
    let body = r#"{"tools":[{"name":"m"}],"input":[]}"#;
    assert_eq!(
        spliced(body, Dialect::Responses, &no_calls),
        r#"{"tools":[{"name":"m"}],"input":[],"tool_choice":"none"}"#
    );
}

#[test]
fn an_input_that_is_one_text_stays_one_when_only_the_system_goes() {
    let body = br#"{"instructions":"be brief","input":"hello"}"#;
    let scan = BodyScan::new(body, Dialect::Responses).unwrap();
    let spliced = splice(&scan, &[BodyChange::Remove { messages: 0..1 }]).unwrap();
    assert_eq!(spliced.body.as_ref(), br#"{"input":"hello"}"#);
}
