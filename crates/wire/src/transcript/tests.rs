use trimtab_model::{MessageKind, Role};

use super::*;

fn read(text: &str) -> Vec<Conversation> {
    TranscriptReader::new(text.as_bytes())
        .map(Result::unwrap)
        .collect()
}

fn form(text: &str) -> TranscriptForm {
    read(text)[0].form
}

#[test]
fn documents_are_told_apart() {
    let user = r#"{"role":"user","content":"hi"}"#;
    assert_eq!(form(&format!("[{user}]")), TranscriptForm::Chat);
    assert_eq!(
        form(&format!("{{\"messages\":[{user}]}}")),
        TranscriptForm::Chat
    );
    assert_eq!(
        form(&format!("{{\"system\":\"x\",\"messages\":[{user}]}}")),
        TranscriptForm::Messages
    );
    assert_eq!(
        form(&format!(
            "{{\"tools\":[{{\"name\":\"a\",\"input_schema\":{{}}}}],\"messages\":[{user}]}}"
        )),
        TranscriptForm::Messages
    );
    assert_eq!(form(r#"{"input":"hi"}"#), TranscriptForm::Responses);
    assert_eq!(
        form(r#"[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}]"#),
        TranscriptForm::Responses
    );
    assert_eq!(
        form(
            r#"[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}]"#
        ),
        TranscriptForm::Messages
    );
    assert_eq!(
        form(&format!(
            "{{\"custom_id\":\"q\",\"body\":{{\"messages\":[{user}]}}}}"
        )),
        TranscriptForm::Chat
    );
}

#[test]
fn files_of_other_programs_are_no_transcripts() {
    for text in [
        r#"{"sessionId":"s","projectHash":"h","messages":[{"id":"1","type":"user","content":"hi"}]}"#,
        r#"{"schema_version":"ATIF-v1.4","steps":[{"step_id":1,"source":"user","message":"hi"}]}"#,
        "{\"sessionId\":\"s\",\"projectHash\":\"h\"}\n\
         {\"id\":\"1\",\"type\":\"user\",\"content\":[{\"text\":\"hi\"}]}\n",
        r#"{"type":"user.message","data":{"content":"hi"},"id":"1","parentId":null}"#,
    ] {
        let read = TranscriptReader::new(text.as_bytes()).next();
        assert!(
            matches!(read, Some(Err(ReadError::Form { line: 1 }))),
            "{text}: {read:?}"
        );
    }
}

#[test]
fn opencode_session_is_not_written() {
    let text = r#"{"info":{"id":"s"},"messages":[{"info":{"role":"user"},"parts":[]}]}"#;
    let refused = write(text.as_bytes(), &[Vec::new()]);
    let form = TranscriptForm::OpenCode;
    assert!(matches!(refused, Err(WriteError::Form { form: found }) if found == form));
    let written = TranscriptForm::ALL
        .into_iter()
        .filter(|form| form.is_written());
    assert_eq!(written.count(), TranscriptForm::ALL.len() - 1);
}

#[test]
fn a_document_may_span_lines() {
    let read = read(
        "{\n \"id\": \"a\",\n \"messages\": [\n  {\"role\": \"user\", \"content\": \"hi\"}\n ]\n}\n",
    );
    assert_eq!((read.len(), read[0].id.as_deref()), (1, Some("a")));
}

#[test]
fn an_error_ends_the_reading() {
    let text = "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}\n{\"messages\":\n{\"messages\":[]}\n";
    let results: Vec<bool> = TranscriptReader::new(text.as_bytes())
        .map(|read| read.is_ok())
        .collect();
    assert_eq!(results, [true, false]);
}

const CLAUDE: &str = r#"{"type":"summary","summary":"a title","leafUuid":"z"}
{"type":"user","uuid":"1","parentUuid":null,"isSidechain":false,"sessionId":"s","message":{"role":"user","content":"go"}}
{"type":"assistant","uuid":"2","isSidechain":false,"sessionId":"s","message":{"id":"m1","role":"assistant","model":"c","content":[{"type":"thinking","thinking":"hm","signature":"x"}],"usage":{"input_tokens":1,"output_tokens":1}}}
{"type":"user","uuid":"9","parentUuid":null,"isSidechain":true,"sessionId":"s","message":{"role":"user","content":"side task"}}
{"type":"assistant","uuid":"3","isSidechain":false,"sessionId":"s","message":{"id":"m1","role":"assistant","model":"c","content":[{"type":"tool_use","id":"t1","name":"ls","input":{}}],"usage":{"input_tokens":1,"output_tokens":9}}}
{"type":"assistant","uuid":"10","parentUuid":"9","isSidechain":true,"sessionId":"s","message":{"id":"m8","role":"assistant","model":"c","content":[{"type":"text","text":"side answer"}]}}
{"type":"user","uuid":"4","isSidechain":false,"sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"a"}]}}
{"type":"user","uuid":"4","isSidechain":false,"sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"a"}]}}
{"type":"assistant","uuid":"5","isSidechain":false,"sessionId":"s","isApiErrorMessage":true,"message":{"id":"e","role":"assistant","model":"<synthetic>","content":[{"type":"text","text":"API Error"}]}}
{"type":"system","subtype":"compact_boundary","uuid":"6","isSidechain":false,"sessionId":"s"}
{"type":"user","uuid":"7","isSidechain":false,"sessionId":"s","isCompactSummary":true,"message":{"role":"user","content":"what happened so far"}}
{"type":"user","uuid":"8","isSidechain":false,"sessionId":"s","isMeta":true,"message":{"role":"user","content":"Caveat"}}
"#;

#[test]
fn claude_code_sessions_are_put_together() {
    let read = read(CLAUDE);
    let ids: Vec<_> = read.iter().map(|c| c.id.clone().unwrap()).collect();
    assert_eq!(ids, ["s", "s/side-1"]);
    let main = &read[0];
    let roles: Vec<_> = main.messages.iter().map(|m| m.role).collect();
    assert_eq!(
        roles,
        [
            Role::User,
            Role::Assistant,
            Role::Tool,
            Role::User,
            Role::User
        ]
    );
    assert_eq!(main.messages[1].parts.len(), 2);
    assert_eq!(main.messages[1].meta.usage.unwrap().output, 9);
    assert_eq!(main.messages[3].meta.kind, Some(MessageKind::Summary));
    assert_eq!(main.messages[4].meta.kind, Some(MessageKind::Note));
    assert_eq!(main.compactions, [3]);
    assert_eq!(main.in_window().len(), 2);
    assert_eq!(read[1].messages.len(), 2);
}

#[test]
fn codex_goes_on_with_what_a_compaction_left() {
    let text = r#"{"type":"session_meta","payload":{"id":"r","base_instructions":{"text":"rules"}}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"one"}]}}
{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}}
{"type":"compacted","payload":{"message":"the story","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"one"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"Summary: the story"}]}]}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"two"}]}}
"#;
    let read = read(text);
    let kinds: Vec<_> = read[0].messages.iter().map(|m| m.meta.kind).collect();
    let expected = [
        None,
        None,
        None,
        Some(MessageKind::Retain),
        Some(MessageKind::Summary),
        None,
    ];
    assert_eq!(kinds, expected);
    let texts: Vec<_> = read[0]
        .in_window()
        .iter()
        .map(|m| m.text().into_owned())
        .collect();
    assert_eq!(texts, ["rules", "one", "Summary: the story", "two"]);
}

/// What reading a log with `size` of something costs, in units of counted work.
fn cost(make: impl Fn(usize) -> String, size: usize) -> u64 {
    let text = make(size);
    let (read, units) = trimtab_model::work::counted(|| read(&text));
    assert_eq!(read.len(), 1);
    units
}

/// Twice the log costs at most some more than twice the work; quadratic work costs four times.
#[track_caller]
fn assert_linear(make: impl Fn(usize) -> String) {
    let (once, twice) = (cost(&make, 500), cost(&make, 1_000));
    assert!(twice < 3 * once, "{once} units, {twice} for twice as much");
}

#[test]
fn codex_log_with_token_counts_and_no_answers_is_read_in_linear_work() {
    assert_linear(|size| {
        let user = r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"one"}]}}"#;
        let count = r#"{"type":"event_msg","payload":{"type":"token_count","info":{"last_token_usage":{"input_tokens":1,"output_tokens":1}}}}"#;
        let meta = r#"{"type":"session_meta","payload":{"id":"r"}}"#;
        format!("{meta}\n{}", format!("{user}\n{count}\n").repeat(size))
    });
}

#[test]
fn codex_token_counts_belong_to_the_newest_answer() {
    let text = r#"{"type":"session_meta","payload":{"id":"r"}}
{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"b"}]}}
{"type":"event_msg","payload":{"type":"token_count","info":{"last_token_usage":{"input_tokens":7,"output_tokens":1}}}}
"#;
    let read = read(text);
    assert_eq!(read[0].messages[0].meta.usage.unwrap().prompt(), 7);
}
