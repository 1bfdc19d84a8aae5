//! Every recorded session in the shared folder is read completely.

#![expect(clippy::disallowed_methods, reason = "the recorded sessions are files")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use trimtab_model::{Message, RawJson, Role};
use trimtab_wire::transcript::{Conversation, ReadError, TranscriptForm, TranscriptReader};
use trimtab_wire::{chat, messages, responses};

fn corpus() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/public");
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: no recorded sessions at {}", folder.display());
    None
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn read(text: &str) -> Vec<Conversation> {
    TranscriptReader::new(text.as_bytes())
        .map(Result::unwrap)
        .collect()
}

fn values(text: &str) -> Vec<Value> {
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// The folders with logs in forms that are not read.
const NOT_READ: [&str; 2] = ["copilot-cli", "gemini-cli"];

#[test]
fn every_file_is_read() {
    let Some(folder) = corpus() else { return };
    for path in files(&folder) {
        let text = fs::read_to_string(&path).unwrap();
        let client = path.parent().unwrap().file_name().unwrap();
        if NOT_READ.iter().any(|name| client == *name) {
            let read = TranscriptReader::new(text.as_bytes()).next();
            assert!(
                matches!(read, Some(Err(ReadError::Form { .. }))),
                "{read:?}"
            );
            continue;
        }
        let conversations = read(&text);
        assert!(!conversations.is_empty(), "{}", path.display());
        for conversation in conversations {
            let calls: usize = conversation
                .messages
                .iter()
                .map(|m| m.calls().count())
                .sum();
            let outputs: usize = conversation
                .messages
                .iter()
                .map(|m| m.outputs().count())
                .sum();
            println!(
                "{:<70} {:<12} {:>5} messages {calls:>4} calls {outputs:>4} outputs {:?} {:?}",
                path.strip_prefix(&folder).unwrap().display(),
                conversation.form.as_str(),
                conversation.messages.len(),
                conversation.model,
                conversation.compactions,
            );
            assert!(conversation.messages.len() > 3 && conversation.id.is_some());
            assert!(
                conversation
                    .messages
                    .iter()
                    .any(|m| m.role == Role::Assistant)
            );
        }
    }
}

#[test]
fn line_conversations_round_trip_verbatim() {
    let Some(folder) = corpus() else { return };
    for path in files(&folder) {
        if path.parent() != Some(&folder) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let originals = values(&text);
        let conversations = read(&text);
        assert_eq!(conversations.len(), originals.len());
        for (read, original) in conversations.iter().zip(&originals) {
            assert_eq!(read.id.as_deref(), original["id"].as_str());
            let messages = &original["messages"];
            match read.form {
                TranscriptForm::Chat => assert_eq!(&written(&read.messages), messages),
                TranscriptForm::Messages => {
                    let request = messages::write_request(&read.messages);
                    assert_eq!(&list(&request.messages), messages);
                    assert_eq!(request.system.unwrap().to_value(), original["system"]);
                }
                other => panic!("{other} in {}", path.display()),
            }
        }
    }
}

fn written(messages: &[Message]) -> Value {
    list(
        &messages
            .iter()
            .flat_map(chat::write_message)
            .collect::<Vec<_>>(),
    )
}

fn list(raw: &[RawJson]) -> Value {
    raw.iter().map(RawJson::to_value).collect()
}

#[test]
fn codex_rollouts_round_trip_by_entry() {
    let Some(folder) = corpus() else { return };
    for path in files(&folder.join("raw/codex")) {
        let text = fs::read_to_string(&path).unwrap();
        let originals: Vec<Value> = values(&text)
            .into_iter()
            .filter(|line| line["type"] == "response_item")
            .map(|line| without_bookkeeping(line["payload"].clone()))
            .collect();
        let conversation = read(&text).remove(0);
        let kept = conversation.compactions.first().map(|start| {
            let replaced = responses::write_input(&conversation.messages[*start..]);
            let before = responses::write_input(&conversation.messages[..*start]);
            (before.len(), replaced.len())
        });
        let back: Vec<Value> = responses::write_input(&conversation.messages)
            .iter()
            .map(|raw| without_bookkeeping(raw.to_value()))
            .collect();
        match kept {
            None => assert_eq!(back, originals, "{}", path.display()),
            // What a compaction put in comes between what was recorded before and after it.
            Some((before, _)) => assert_eq!(back[..before], originals[..before]),
        }
    }
}

fn without_bookkeeping(mut entry: Value) -> Value {
    let name = "internal_chat_message_metadata_passthrough";
    entry.as_object_mut().unwrap().remove(name);
    entry
}

#[test]
fn claude_code_logs_lose_no_part() {
    let Some(folder) = corpus() else { return };
    for path in files(&folder.join("raw/claude-code")) {
        let text = fs::read_to_string(&path).unwrap();
        let mut parts = 0;
        let mut answers = std::collections::BTreeSet::new();
        for line in values(&text) {
            let message = &line["message"];
            if line["type"] == "assistant" {
                answers.insert(message["id"].to_string());
            }
            if line["type"] == "assistant" || line["type"] == "user" {
                parts += message["content"].as_array().map_or(1, Vec::len);
            }
        }
        let messages: Vec<Message> = read(&text).into_iter().flat_map(|c| c.messages).collect();
        let read: usize = messages.iter().map(|m| m.parts.len()).sum();
        assert_eq!(read, parts, "{}", path.display());
        let said = messages.iter().filter(|m| m.role == Role::Assistant);
        assert_eq!(said.count(), answers.len(), "{}", path.display());
    }
}
