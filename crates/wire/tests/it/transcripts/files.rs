//! Whole files in every form.

use serde_json::{Value, json};
use trimtab_wire::transcript::TranscriptForm;

use super::dialects::{Spelled, chat, messages, responses};
use super::logs::{claude_code, codex};
use super::made::Happened;

/// A file in some form.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) form: TranscriptForm,
    pub(super) text: String,
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

pub(super) fn files(session: &[Happened]) -> Vec<File> {
    let file = |form, text: String| File { form, text };
    let meta = json!({"type": "session_meta", "payload": {"id": "r", "base_instructions": {"text": "rules"}}});
    let rules = json!({"role": "system", "content": "rules"});
    vec![
        file(TranscriptForm::Chat, lines(&[rules], session, chat)),
        file(
            TranscriptForm::Chat,
            json!({"id": "a", "messages": listed(session, chat)}).to_string(),
        ),
        file(TranscriptForm::Chat, pretty(&json!(listed(session, chat)))),
        file(
            TranscriptForm::Chat,
            json!({"custom_id": "q", "body": {"model": "m", "messages": listed(session, chat)}})
                .to_string()
                + "\n",
        ),
        file(
            TranscriptForm::Messages,
            pretty(&json!({"system": "rules", "messages": listed(session, messages)})),
        ),
        file(
            TranscriptForm::Responses,
            pretty(&json!({"instructions": "rules", "input": listed(session, responses)})),
        ),
        file(TranscriptForm::Responses, lines(&[], session, responses)),
        file(
            TranscriptForm::ClaudeCode,
            lines(
                &[json!({"type": "summary", "leafUuid": "z"})],
                session,
                claude_code,
            ),
        ),
        file(TranscriptForm::Codex, lines(&[meta], session, codex)),
    ]
}
