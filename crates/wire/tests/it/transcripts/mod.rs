//! Windows written in the form that their transcript was read in.

mod dialects;
mod files;
mod logs;
mod made;

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use trimtab_engine::journal::Journal;
use trimtab_engine::log::Log;
use trimtab_engine::normalise::{EntryChange, NormaliseOptions};
use trimtab_engine::plan::{Edit, Plan, PlanReason};
use trimtab_engine::verify::verify;
use trimtab_engine::window::{Projection, Window};
use trimtab_model::{Message, MessageKind, Part, Role, turns};
use trimtab_testkit::cases;
use trimtab_wire::splice::SentMessage;
use trimtab_wire::transcript::{Conversation, TranscriptForm, TranscriptReader, write};

use files::{File, files};
use made::{Happened, session};

fn read(text: &[u8]) -> Conversation {
    let mut all: Vec<_> = TranscriptReader::new(text).map(Result::unwrap).collect();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// The messages of a window, each with its position in the log.
fn sent_messages(window: &Window) -> Vec<SentMessage> {
    let sent = window.entries().iter().map(|entry| SentMessage {
        message: Arc::clone(&entry.message),
        log_position: entry
            .source
            .in_log()
            .filter(|_| entry.change != EntryChange::Made),
    });
    sent.collect()
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
        let message = Arc::new(summary.with_kind(MessageKind::Summary));
        edits.push(Edit::Insert {
            before: second,
            message,
        });
    }
    Plan::new(PlanReason::ByHand, edits)
}

fn window(messages: &[Message], form: TranscriptForm, planned: bool, system: bool) -> Projection {
    let log: Log = messages.iter().cloned().collect();
    let options = NormaliseOptions::for_dialect(form.dialect());
    let mut projection = Projection::restore(options, log.clone(), Journal::new());
    if planned {
        projection.carry_out(plan(&log, system));
    }
    projection
}

/// What is sent, apart from how it is spelled: messages that go together are one.
fn content<'m>(messages: impl Iterator<Item = &'m Message>, form: TranscriptForm) -> Vec<Value> {
    let mut all: Vec<(Role, Vec<Value>)> = Vec::new();
    for message in messages {
        let parts = message
            .parts
            .iter()
            .filter(|part| !part.is_blank())
            .map(part_content);
        let joins = match message.role {
            Role::Tool => true,
            Role::Assistant => form.dialect() == trimtab_model::Dialect::Responses,
            Role::System => matches!(form, TranscriptForm::Messages | TranscriptForm::Responses),
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
    let written = write(file.text.as_bytes(), &[sent_messages(window)]);
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
    fn written_transcript_reads_as_its_window(session in session(), planned in any::<bool>()) {
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
    fn unchanged_transcript_keeps_its_bytes(session in session()) {
        for file in files(&session) {
            let before = read(file.text.as_bytes());
            let all: Vec<_> = before.messages.iter().enumerate().map(|(at, message)| {
                SentMessage { message: Arc::new(message.clone()), log_position: Some(at) }
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
    let summary = Message::user("what a and b were").with_kind(MessageKind::Summary);
    let window = [(summary, None), (before.messages[2].clone(), Some(2))];
    let window = window.map(|(message, from)| SentMessage {
        message: Arc::new(message),
        log_position: from,
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
        Some(MessageKind::Summary)
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
        let written = write(
            file.text.as_bytes(),
            &[sent_messages(projection.window().unwrap())],
        )
        .unwrap();
        let written = String::from_utf8(written).unwrap();
        assert!(written.len() < file.text.len() + 600, "{written}");
        assert!(!kept_lines(&file.text, &written).is_empty(), "{written}");
        assert!(!written.contains("xxxxx"), "{written}");
    }
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
