//! Scripts as files.

use serde_json::json;
use trimtab_wire::script::{
    ContentCoding, Script, ScriptPlayer, ScriptedArguments, ScriptedFault, ScriptedReply,
    ScriptedStop,
};

fn problem(json: &str) -> String {
    Script::parse(json).unwrap_err().to_string()
}

#[test]
fn a_list_and_an_object_are_the_same_script() {
    let list = Script::parse(r#"[{"text": "hi"}]"#).unwrap();
    let object = Script::parse(r#"{"replies": [{"text": "hi"}]}"#).unwrap();
    assert_eq!(list, object);
    assert_eq!(list.replies(), [ScriptedReply::text("hi")]);
}

#[test]
fn all_reply_fields_are_parsed() {
    let script = Script::parse(
        r#"[{"text": "t", "reasoning": "r", "stop": "length", "delay_ms": 5,
             "usage": {"input": 3, "output": 4},
             "fault": {"kind": "stall", "after": 2, "ms": 10},
             "calls": [{"name": "f", "arguments": {"a": 1}, "id": "c1"},
                       {"name": "g", "arguments": "{broken"}, {"name": "h"}]},
            {"text": "t", "fault": {"kind": "encoding", "coding": "deflate"}},
            {"text": "t", "fault": {"kind": "status", "code": 429, "retry_after": 1}}]"#,
    )
    .unwrap();
    let reply = &script.replies()[0];
    assert_eq!(
        (reply.stop, reply.delay_ms),
        (ScriptedStop::Length, Some(5))
    );
    assert_eq!(reply.usage.unwrap().total(), 7);
    assert_eq!(reply.fault, Some(ScriptedFault::Stall { after: 2, ms: 10 }));
    assert_eq!(reply.calls[0].arguments.to_text(), r#"{"a":1}"#);
    assert_eq!(
        reply.calls[1].arguments,
        ScriptedArguments::Raw("{broken".into())
    );
    assert_eq!(reply.calls[2].arguments.to_text(), "{}");
    let coding = ContentCoding::Deflate;
    assert_eq!(
        script.replies()[1].fault,
        Some(ScriptedFault::Encoding { coding })
    );
}

#[test]
fn faults_round_trip() {
    let faults = ScriptedFault::catalogue();
    assert!(faults.len() >= 40, "{}", faults.len());
    for fault in faults {
        let reply = ScriptedReply::text("t").with_fault(fault);
        let json = json!([reply]).to_string();
        assert_eq!(Script::parse(&json).unwrap().replies(), [reply], "{json}");
    }
}

#[test]
fn errors_name_the_reply() {
    assert!(problem("[").starts_with("the script is not JSON: EOF"));
    assert!(problem("{}").contains("missing field `replies`"));
    assert!(problem("7").contains("neither a list of replies"));
    let text = problem(r#"[{"text": "a"}, {"txt": "b"}]"#);
    assert!(
        text.starts_with("reply 2 of the script: unknown field `txt`"),
        "{text}"
    );
    assert_eq!(
        problem(r#"[{"reasoning": "hm"}]"#),
        "reply 1 of the script: neither `text` nor `calls` is given"
    );
    assert_eq!(
        problem(r#"[{"calls": [{"name": "f"}, {"name": ""}]}]"#),
        "reply 1 of the script: call 2 has an empty `name`"
    );
    let text = problem(r#"[{"calls": [{"name": "f", "arguments": [1]}]}]"#);
    assert!(text.contains("arguments are an object"), "{text}");
    let text = problem(r#"[{"text": "a", "fault": {"kind": "earthquake"}}]"#);
    assert!(text.contains("earthquake"), "{text}");
}

#[test]
fn player_ends_with_done_and_can_seek() {
    let mut player = ScriptPlayer::new(Script::new([
        ScriptedReply::text("one"),
        ScriptedReply::text("two"),
    ]));
    let said: Vec<String> = (0..4).map(|_| player.next_reply().text).collect();
    assert_eq!(said, ["one", "two", "done", "done"]);
    player.seek(1);
    assert_eq!(player.next_reply().text, "two");
    assert_eq!(player.position(), 2);
}

#[test]
fn example_script_parses() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/script.json");
    #[expect(clippy::disallowed_methods, reason = "the example is a file")]
    let text = std::fs::read_to_string(file).unwrap();
    let script = Script::parse(&text).unwrap();
    assert!(script.replies().iter().any(|reply| !reply.calls.is_empty()));
}
