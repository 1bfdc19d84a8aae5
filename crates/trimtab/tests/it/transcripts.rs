//! Windows written in the form that their transcript was read in.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use trimtab::engine::journal::Journal;
use trimtab::engine::log::Log;
use trimtab::engine::normalise::Options;
use trimtab::engine::plan::{Edit, Plan, Reason};
use trimtab::engine::verify::verify;
use trimtab::engine::window::Projection;
use trimtab::model::{Kind, Message, Part, Role, turns};
use trimtab::request::sent;
use trimtab::wire::transcript::{Conversation, Form, Reader, write};
use trimtab_testkit::cases;
use trimtab_testkit::history::hostile_text;

/// One thing that happened in a generated session.
#[derive(Clone, Debug)]
enum Happened {
    Asked(String),
    Answered {
        thought: Option<String>,
        text: Option<String>,
        /// For each call, what it was answered with: none if it never was.
        calls: Vec<Option<(String, bool)>>,
    },
}

fn text() -> impl Strategy<Value = String> {
    hostile_text().prop_map(|text| {
        if text.trim().is_empty() {
            "said".to_owned()
        } else {
            text
        }
    })
}

fn session() -> impl Strategy<Value = Vec<Happened>> {
    let output = (text(), prop::bool::weighted(0.1));
    let calls = vec(prop::option::weighted(0.9, output), 0..3);
    let answered = (prop::option::of(text()), prop::option::of(text()), calls).prop_map(
        |(thought, text, calls)| Happened::Answered {
            thought,
            text: if calls.is_empty() {
                text.or_else(|| Some("well".to_owned()))
            } else {
                text
            },
            calls,
        },
    );
    let happened = prop_oneof![1 => text().prop_map(Happened::Asked), 3 => answered];
    (text(), vec(happened, 0..12)).prop_map(|(first, mut all)| {
        all.insert(0, Happened::Asked(first));
        all
    })
}

/// How a form spells a session; each gives the lines or elements of one thing that happened.
type Spelled = fn(usize, &Happened) -> Vec<Value>;

/// The calls of an answer: id and output.
fn calls(at: usize, calls: &[Option<(String, bool)>]) -> Vec<(String, Option<&(String, bool)>)> {
    let calls = calls.iter().enumerate();
    calls
        .map(|(number, output)| (format!("c{at}-{number}"), output.as_ref()))
        .collect()
}

fn chat(at: usize, happened: &Happened) -> Vec<Value> {
    match happened {
        Happened::Asked(text) => vec![json!({"role": "user", "content": text, "x": at})],
        Happened::Answered {
            thought,
            text,
            calls: made,
        } => {
            let made = calls(at, made);
            let asks = made.iter().map(|(id, _)| {
                json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}})
            });
            let mut answer = json!({"role": "assistant", "content": text, "y": at});
            if let Some(thought) = thought {
                answer["reasoning_content"] = json!(thought);
            }
            if !made.is_empty() {
                answer["tool_calls"] = asks.collect();
            }
            let mut all = vec![answer];
            for (id, output) in made {
                all.extend(output.map(|(text, _)| {
                    json!({"role": "tool", "tool_call_id": id, "content": text, "z": at})
                }));
            }
            all
        }
    }
}

fn parts(thought: Option<&String>, text: Option<&String>) -> Vec<Value> {
    let thought =
        thought.map(|text| json!({"type": "thinking", "thinking": text, "signature": "sealed"}));
    let text = text.map(|text| json!({"type": "text", "text": text}));
    thought.into_iter().chain(text).collect()
}

fn messages(at: usize, happened: &Happened) -> Vec<Value> {
    match happened {
        Happened::Asked(text) => vec![json!({"role": "user", "content": text})],
        Happened::Answered {
            thought,
            text,
            calls: made,
        } => {
            let made = calls(at, made);
            let mut said = parts(thought.as_ref(), text.as_ref());
            said.extend(made.iter().map(
                |(id, _)| json!({"type": "tool_use", "id": id, "name": "f", "input": {"a": 1}}),
            ));
            let outputs: Vec<Value> = made
                .iter()
                .filter_map(|(id, output)| {
                    let (text, failed) = output.as_ref()?;
                    Some(json!({"type": "tool_result", "tool_use_id": id, "content": text, "is_error": failed}))
                })
                .collect();
            let mut all = vec![json!({"role": "assistant", "content": said})];
            if !outputs.is_empty() {
                all.push(json!({"role": "user", "content": outputs}));
            }
            all
        }
    }
}

fn responses(at: usize, happened: &Happened) -> Vec<Value> {
    match happened {
        Happened::Asked(text) => {
            let content = json!([{"type": "input_text", "text": text}]);
            vec![json!({"type": "message", "role": "user", "content": content})]
        }
        Happened::Answered {
            thought,
            text,
            calls: made,
        } => {
            let made = calls(at, made);
            let mut all = Vec::new();
            all.extend(thought.as_ref().map(|text| {
                let summary = json!([{"type": "summary_text", "text": text}]);
                json!({"type": "reasoning", "id": format!("rs{at}"), "summary": summary, "encrypted_content": "e"})
            }));
            all.extend(text.as_ref().map(|text| {
                let content = json!([{"type": "output_text", "text": text}]);
                json!({"type": "message", "role": "assistant", "content": content})
            }));
            all.extend(made.iter().map(|(id, _)| {
                json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"})
            }));
            for (id, output) in &made {
                all.extend(output.map(|(text, _)| {
                    json!({"type": "function_call_output", "call_id": id, "output": text})
                }));
            }
            all
        }
    }
}

fn claude_code(at: usize, happened: &Happened) -> Vec<Value> {
    let entries = messages(at, happened);
    let mut lines = Vec::new();
    for (number, entry) in entries.into_iter().enumerate() {
        let user = entry["role"] == "user";
        // An answer is written down part by part.
        let pieces: Vec<Value> = match &entry["content"] {
            Value::Array(parts) if !user => parts.iter().map(|part| json!([part])).collect(),
            content => vec![content.clone()],
        };
        for (piece, content) in pieces.into_iter().enumerate() {
            let uuid = format!("u{at}-{number}-{piece}");
            let mut message = json!({"role": entry["role"], "content": content});
            if !user {
                message["id"] = json!(format!("m{at}"));
                message["model"] = json!("claude");
            }
            lines.push(
                json!({"type": entry["role"], "uuid": uuid, "parentUuid": null,
                "isSidechain": false, "sessionId": "s", "cwd": "/w", "message": message}),
            );
        }
    }
    lines.push(json!({"type": "progress", "uuid": format!("p{at}"), "sessionId": "s", "data": at}));
    lines
}

fn codex(at: usize, happened: &Happened) -> Vec<Value> {
    let entries = responses(at, happened).into_iter();
    let mut lines: Vec<Value> = entries
        .map(|payload| json!({"timestamp": "t", "type": "response_item", "payload": payload, "n": at}))
        .collect();
    lines.push(json!({"timestamp": "t", "type": "event_msg", "payload": {"type": "task_complete", "n": at}}));
    lines
}

fn copilot(at: usize, happened: &Happened) -> Vec<Value> {
    let line = |type_name: &str, id: String, data: Value| json!({"type": type_name, "data": data, "id": id, "timestamp": "t", "parentId": null});
    match happened {
        Happened::Asked(text) => vec![line(
            "user.message",
            format!("e{at}"),
            json!({"content": text, "k": at}),
        )],
        Happened::Answered {
            thought,
            text,
            calls: made,
        } => {
            let made = calls(at, made);
            let requests: Vec<Value> = made.iter().map(|(id, _)| {
                json!({"toolCallId": id, "name": "f", "arguments": {"a": 1}, "type": "function"})
            }).collect();
            let mut data = json!({"messageId": at, "content": text.clone().unwrap_or_default(), "toolRequests": requests});
            if let Some(thought) = thought {
                data["reasoningText"] = json!(thought);
            }
            let mut all = vec![line("assistant.message", format!("e{at}"), data)];
            for (number, (id, output)) in made.iter().enumerate() {
                all.extend(output.map(|(text, failed)| {
                    let data = json!({"toolCallId": id, "success": !failed, "result": {"content": text}, "k": 1});
                    line("tool.execution_complete", format!("e{at}-{number}"), data)
                }));
            }
            all
        }
    }
}

/// With outputs in the answers only (`apart` false), or on a line of their own as well.
fn gemini_as(at: usize, happened: &Happened, apart: bool) -> Vec<Value> {
    match happened {
        Happened::Asked(text) => {
            vec![
                json!({"id": format!("g{at}"), "timestamp": "t", "type": "user", "content": [{"text": text}]}),
            ]
        }
        Happened::Answered {
            thought,
            text,
            calls: made,
        } => {
            let made = calls(at, made);
            let response = |id: &str, text: &str, failed: bool| {
                let name = if failed { "error" } else { "output" };
                json!({"functionResponse": {"id": id, "name": "f", "response": {name: text}}})
            };
            let requests: Vec<Value> = made
                .iter()
                .map(|(id, output)| {
                    let mut call = json!({"id": id, "name": "f", "args": {"a": 1}, "status": "s"});
                    if let Some((text, failed)) = output {
                        call["result"] = json!([response(id, text, *failed)]);
                    }
                    call
                })
                .collect();
            let thoughts: Vec<Value> = thought
                .iter()
                .map(|text| json!({"subject": "s", "description": text}))
                .collect();
            let first = json!({"id": format!("g{at}"), "type": "gemini", "content": text.clone().unwrap_or_default(),
                "thoughts": thoughts, "model": "g"});
            let mut whole = first.clone();
            whole["toolCalls"] = json!(requests);
            let mut all = vec![first, whole];
            let outputs: Vec<Value> = made
                .iter()
                .filter_map(|(id, output)| output.map(|(text, failed)| response(id, text, *failed)))
                .collect();
            if apart && !outputs.is_empty() {
                all.push(json!({"id": format!("o{at}"), "type": "user", "content": outputs}));
            }
            all
        }
    }
}

fn gemini(at: usize, happened: &Happened) -> Vec<Value> {
    gemini_as(at, happened, true)
}

fn gemini_inside(at: usize, happened: &Happened) -> Vec<Value> {
    gemini_as(at, happened, false)
}

fn opencode(at: usize, happened: &Happened) -> Vec<Value> {
    match happened {
        Happened::Asked(text) => vec![
            json!({"info": {"role": "user", "id": format!("m{at}"), "sessionID": "s"},
            "parts": [{"type": "text", "text": text, "id": at}]}),
        ],
        Happened::Answered {
            thought,
            text,
            calls: made,
        } => {
            let mut parts = vec![json!({"type": "step-start"})];
            parts.extend(
                thought
                    .as_ref()
                    .map(|text| json!({"type": "reasoning", "text": text})),
            );
            parts.extend(
                text.as_ref()
                    .map(|text| json!({"type": "text", "text": text})),
            );
            for (id, output) in calls(at, made) {
                let state = match output {
                    Some((text, true)) => {
                        json!({"status": "error", "input": {"a": 1}, "error": text, "time": 1})
                    }
                    Some((text, false)) => {
                        json!({"status": "completed", "input": {"a": 1}, "output": text, "time": 1})
                    }
                    None => json!({"status": "running", "input": {"a": 1}}),
                };
                parts.push(json!({"type": "tool", "callID": id, "tool": "f", "state": state}));
            }
            parts.push(json!({"type": "step-finish"}));
            // What follows stands in the same message.
            parts.push(json!({"type": "step-start"}));
            parts.push(json!({"type": "text", "text": "so far"}));
            vec![
                json!({"info": {"role": "assistant", "id": format!("m{at}"), "sessionID": "s", "modelID": "o"}, "parts": parts}),
            ]
        }
    }
}

/// A file in some form.
#[derive(Clone, Debug)]
struct File {
    form: Form,
    text: String,
}

fn lines(head: &[Value], session: &[Happened], spelled: Spelled) -> String {
    let all = head.iter().cloned().chain(
        session
            .iter()
            .enumerate()
            .flat_map(|(at, h)| spelled(at, h)),
    );
    let lines: Vec<String> = all.map(|line| line.to_string()).collect();
    lines.join("\n") + "\n"
}

fn listed(session: &[Happened], spelled: Spelled) -> Vec<Value> {
    session
        .iter()
        .enumerate()
        .flat_map(|(at, h)| spelled(at, h))
        .collect()
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

fn files(session: &[Happened]) -> Vec<File> {
    let file = |form, text: String| File { form, text };
    let meta = json!({"type": "session_meta", "payload": {"id": "r", "base_instructions": {"text": "rules"}}});
    let start = json!({"type": "session.start", "data": {"sessionId": "s"}, "id": "0"});
    let system =
        json!({"type": "system.message", "data": {"content": "rules"}, "id": "1", "parentId": "0"});
    let kind = json!({"sessionId": "s", "projectHash": "h", "kind": "main"});
    vec![
        file(
            Form::Chat,
            lines(
                &[json!({"role": "system", "content": "rules"})],
                session,
                chat,
            ),
        ),
        file(
            Form::Chat,
            json!({"id": "a", "messages": listed(session, chat)}).to_string(),
        ),
        file(Form::Chat, pretty(&json!(listed(session, chat)))),
        file(
            Form::Chat,
            json!({"custom_id": "q", "body": {"model": "m", "messages": listed(session, chat)}})
                .to_string()
                + "\n",
        ),
        file(
            Form::Messages,
            pretty(&json!({"system": "rules", "messages": listed(session, messages)})),
        ),
        file(
            Form::Responses,
            pretty(&json!({"instructions": "rules", "input": listed(session, responses)})),
        ),
        file(Form::Responses, lines(&[], session, responses)),
        file(
            Form::ClaudeCode,
            lines(
                &[json!({"type": "summary", "leafUuid": "z"})],
                session,
                claude_code,
            ),
        ),
        file(Form::Codex, lines(&[meta], session, codex)),
        file(Form::CopilotCli, lines(&[start, system], session, copilot)),
        file(
            Form::GeminiCli,
            lines(std::slice::from_ref(&kind), session, gemini),
        ),
        file(Form::GeminiCli, lines(&[kind], session, gemini_inside)),
        file(
            Form::GeminiCli,
            pretty(
                &json!({"sessionId": "s", "projectHash": "h", "messages": listed(session, gemini)}),
            ),
        ),
        file(
            Form::OpenCode,
            pretty(&json!({"info": {"id": "s"}, "messages": listed(session, opencode)})),
        ),
    ]
}

fn read(text: &[u8]) -> Conversation {
    let mut all: Vec<_> = Reader::new(text).map(Result::unwrap).collect();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// Long outputs become short, one becomes longer, and the oldest turn becomes a summary.
fn plan(log: &Log, system: bool) -> Plan {
    let mut edits = Vec::new();
    for (message, said) in log.messages().iter().enumerate() {
        for (part, found) in said.parts.iter().enumerate() {
            let Some(output) = found.as_output() else {
                continue;
            };
            let shown = match output.text().len() {
                0..2 => "[a placeholder that is longer than what it stands for]",
                2..20 => continue,
                _ => "[trimmed]",
            };
            let mut output = output.clone();
            output.content = vec![Part::text(shown)];
            edits.push(Edit::Show {
                message,
                part,
                output,
            });
        }
    }
    if let [first, second, ..] = turns::boundaries(log.messages())[..] {
        edits.push(Edit::Hide {
            from: first,
            to: second,
        });
        let text = "summary of it\nin two lines";
        let summary = if system {
            Message::system(text)
        } else {
            Message::user(text)
        };
        let message = Arc::new(summary.with_kind(Kind::Summary));
        edits.push(Edit::Insert {
            before: second,
            message,
        });
    }
    Plan::new(Reason::ByHand, edits)
}

fn window(messages: &[Message], form: Form, planned: bool, system: bool) -> Projection {
    let log: Log = messages.iter().cloned().collect();
    let options = Options::for_dialect(form.dialect());
    let mut projection = Projection::restore(options, log.clone(), Journal::new());
    if planned {
        projection.carry_out(plan(&log, system));
    }
    projection
}

/// What is sent, apart from how it is spelled: messages that go together are one.
fn content<'m>(messages: impl Iterator<Item = &'m Message>, form: Form) -> Vec<Value> {
    let mut all: Vec<(Role, Vec<Value>)> = Vec::new();
    for message in messages {
        let parts = message
            .parts
            .iter()
            .filter(|part| !part.is_blank())
            .map(part_content);
        let joins = match message.role {
            Role::Tool => true,
            Role::Assistant => form.dialect() == trimtab::model::Dialect::Responses,
            Role::System => matches!(form, Form::Messages | Form::Responses),
            Role::User => false,
        };
        match all.last_mut() {
            Some((role, last)) if *role == message.role && joins => last.extend(parts),
            _ => all.push((message.role, parts.collect())),
        }
    }
    let whole = |(role, mut parts): (Role, Vec<Value>)| {
        if role == Role::Tool {
            parts.sort_by_key(|part| part[0].to_string());
        }
        // What is added to the system's own field stands behind an empty line.
        if role == Role::System && parts.len() > 1 {
            let texts: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
            parts = vec![json!(texts.join("\n\n"))];
        }
        json!([role.as_str(), parts])
    };
    all.into_iter().map(whole).collect()
}

fn part_content(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!(text.text),
        Part::Reasoning(thought) => json!([thought.text, thought.seal]),
        Part::Call(call) => json!([call.id, call.name, call.arguments]),
        Part::Output(output) => json!([output.call_id, output.text(), output.is_error]),
        Part::Media(media) => media.raw.to_value(),
        Part::Opaque(opaque) => opaque.raw.to_value(),
    }
}

/// The lines of `text`, for forms whose units are lines.
fn kept_lines<'t>(before: &'t str, after: &str) -> Vec<&'t str> {
    let after: std::collections::HashSet<&str> = after.lines().collect();
    before.lines().filter(|line| after.contains(line)).collect()
}

fn check(file: &File, planned: bool, system: bool) -> Result<(), TestCaseError> {
    let before = read(file.text.as_bytes());
    prop_assert_eq!(before.form, file.form);
    let mut projection = window(&before.messages, file.form, planned, system);
    let window = projection.window().unwrap();
    let written = write(file.text.as_bytes(), &[sent(window)]);
    let written = String::from_utf8(written.unwrap()).unwrap();
    let after = read(written.as_bytes());
    prop_assert_eq!(after.form, file.form);
    prop_assert_eq!(&after.id, &before.id);
    let shown = content(window.messages().map(AsRef::as_ref), file.form);
    prop_assert_eq!(
        content(after.messages.iter(), file.form),
        shown,
        "{}\n=>\n{}",
        file.text,
        written
    );
    let messages: Vec<Arc<Message>> = after.messages.iter().cloned().map(Arc::new).collect();
    prop_assert_eq!(verify(&messages, file.form.dialect()), vec![]);
    Ok(())
}

proptest! {
    #![proptest_config(cases(120))]

    #[test]
    fn what_is_read_again_is_the_window(session in session(), planned in any::<bool>()) {
        for file in files(&session) {
            check(&file, planned, false)?;
        }
    }

    #[test]
    fn a_summary_for_the_system_has_a_place_in_every_form(session in session()) {
        for file in files(&session) {
            check(&file, true, true)?;
        }
    }

    #[test]
    fn what_needs_no_change_keeps_its_bytes(session in session()) {
        for file in files(&session) {
            let before = read(file.text.as_bytes());
            let all: Vec<_> = before.messages.iter().enumerate().map(|(at, message)| {
                trimtab::wire::splice::Sent { message: Arc::new(message.clone()), from: Some(at) }
            }).collect();
            let written = write(file.text.as_bytes(), &[all]).unwrap();
            prop_assert_eq!(String::from_utf8(written).unwrap(), file.text);
        }
    }
}

#[test]
fn the_lines_of_a_claude_code_session_stay_linked() {
    let line = |uuid: &str, parent: Option<&str>, text: &str| {
        json!({"type": "user", "uuid": uuid, "parentUuid": parent, "isSidechain": false,
            "sessionId": "s", "message": {"role": "user", "content": text}, "own": [1]})
    };
    let file: String = [
        line("1", None, "a"),
        line("2", Some("1"), "b"),
        line("3", Some("2"), "c"),
    ]
    .map(|line| format!("{line}\n"))
    .concat();
    let before = read(file.as_bytes());
    let summary = Message::user("what a and b were").with_kind(Kind::Summary);
    let window = [(summary, None), (before.messages[2].clone(), Some(2))];
    let window = window.map(|(message, from)| trimtab::wire::splice::Sent {
        message: Arc::new(message),
        from,
    });
    let written = String::from_utf8(write(file.as_bytes(), &[window.to_vec()]).unwrap()).unwrap();
    let lines: Vec<Value> = written
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["isCompactSummary"], true);
    assert_eq!(lines[0]["parentUuid"], Value::Null);
    assert_eq!(lines[0]["sessionId"], "s");
    assert_eq!(lines[1]["parentUuid"], lines[0]["uuid"]);
    assert_eq!(lines[1]["own"], json!([1]));
    assert_eq!(
        read(written.as_bytes()).messages[0].meta.kind,
        Some(Kind::Summary)
    );
}

#[test]
fn lines_that_are_not_touched_stay_word_for_word() {
    let session = [
        Happened::Asked("one".into()),
        Happened::Answered {
            thought: None,
            text: Some("a".into()),
            calls: vec![Some(("x".repeat(60), false))],
        },
        Happened::Asked("two".into()),
        Happened::Answered {
            thought: None,
            text: Some("b".into()),
            calls: vec![],
        },
    ];
    for file in files(&session)
        .into_iter()
        .filter(|file| file.text.lines().count() > 4)
    {
        let before = read(file.text.as_bytes());
        let mut projection = window(&before.messages, file.form, true, false);
        let written = write(file.text.as_bytes(), &[sent(projection.window().unwrap())]).unwrap();
        let written = String::from_utf8(written).unwrap();
        assert!(written.len() < file.text.len() + 600, "{written}");
        assert!(!kept_lines(&file.text, &written).is_empty(), "{written}");
        assert!(!written.contains("xxxxx"), "{written}");
    }
}

#[test]
fn an_output_of_ours_stands_with_its_call() {
    let call =
        |id: &str, state: Value| json!({"type": "tool", "callID": id, "tool": "f", "state": state});
    let info = |role: &str, id: &str| json!({"role": role, "id": id, "sessionID": "s"});
    let open = json!({"status": "running", "input": {}});
    let file = json!({"info": {"id": "s"}, "messages": [
        {"info": info("user", "1"), "parts": [{"type": "text", "text": "go"}]},
        {"info": info("assistant", "2"), "parts": [call("c1", open)]},
        {"info": info("user", "3"), "parts": [{"type": "text", "text": "stop"}]},
    ]});
    let text = pretty(&file);
    check(
        &File {
            form: Form::OpenCode,
            text,
        },
        false,
        false,
    )
    .unwrap();
}

#[test]
fn outputs_that_grow_are_written_once() {
    let output = |_| Some(("a".to_owned(), false));
    let session = [
        Happened::Asked("a".into()),
        Happened::Answered {
            thought: None,
            text: None,
            calls: (0..2).map(output).collect(),
        },
    ];
    for file in files(&session) {
        check(&file, true, false).unwrap();
    }
}
