//! The same session in every form gives the same report.

use std::fs::File;
use std::io::BufReader;

use trimtab_model::{Message, rounds, turns};
use trimtab_wire::transcript::{Conversation, TranscriptForm, TranscriptReader};

use crate::run::root;

const FORMS: [(&str, TranscriptForm); 7] = [
    ("chat.jsonl", TranscriptForm::Chat),
    ("chat-messages.jsonl", TranscriptForm::Chat),
    ("messages.json", TranscriptForm::Messages),
    ("responses.json", TranscriptForm::Responses),
    ("claude-code.jsonl", TranscriptForm::ClaudeCode),
    ("codex.jsonl", TranscriptForm::Codex),
    ("opencode.json", TranscriptForm::OpenCode),
];

fn read(name: &str) -> Conversation {
    let file = File::open(root().join("examples/forms").join(name)).unwrap();
    let mut all: Vec<_> = TranscriptReader::new(BufReader::new(file))
        .map(Result::unwrap)
        .collect();
    assert_eq!(all.len(), 1, "{name}");
    all.remove(0)
}

/// What is said in a conversation, apart from who wrote it down and how.
fn said(conversation: &Conversation) -> Vec<String> {
    let texts = conversation.messages.iter().flat_map(|message| {
        let calls = message.calls().map(|call| {
            let arguments: serde_json::Value = serde_json::from_str(&call.arguments).unwrap();
            format!("{} {}", call.name, arguments)
        });
        let text = Some(message.text().into_owned()).filter(|text| !text.is_empty());
        let kept = message.meta.kind.is_none() && message.role != trimtab_model::Role::System;
        let outputs = message.outputs().map(|output| output.text().into_owned());
        let texts: Vec<String> = match message.outputs().count() {
            0 => text.into_iter().chain(calls).collect(),
            _ => outputs.collect(),
        };
        texts.into_iter().filter(move |_| kept)
    });
    texts.collect()
}

#[test]
fn all_forms_of_a_conversation_give_the_same_report() {
    let expected = said(&read("chat.jsonl"));
    assert_eq!(expected.len(), 9);
    for (name, form) in FORMS {
        let conversation = read(name);
        assert_eq!(conversation.form, form, "{name}");
        assert_eq!(said(&conversation), expected, "{name}");
        assert_eq!(turns::boundaries(&conversation.messages).len(), 2, "{name}");
        let rounds = rounds::pair(&conversation.messages).rounds;
        assert_eq!(rounds.len(), 2, "{name}");
        let open = rounds
            .iter()
            .flat_map(|round| &round.calls)
            .filter(|call| call.output.is_none());
        assert_eq!(open.count(), 1, "{name}");
    }
}

#[test]
fn usage_and_windows_are_read_from_every_form() {
    let prompt = |name: &str| {
        let usage = |message: &Message| message.meta.usage.map(|usage| usage.prompt());
        read(name).messages.iter().find_map(usage)
    };
    assert_eq!(prompt("claude-code.jsonl"), Some(903));
    assert_eq!(prompt("codex.jsonl"), Some(2_100));
    assert_eq!(prompt("opencode.json"), Some(900));
    assert_eq!(read("codex.jsonl").window, Some(272_000));
}
