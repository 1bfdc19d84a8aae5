//! One function an op: from a case's input to our result in the case's own words.

mod archive;
mod budgets;
mod compaction;
mod estimates;
mod history;
mod retrieval;
mod views;

use std::sync::Arc;

use serde_json::Value;
use trimtab::engine::journal::{Journal, JournalEntry};
use trimtab::engine::log::Log;
use trimtab::engine::plan::{Edit, Plan, Reason};
use trimtab::engine::window::Projection;
use trimtab::model::{Media, MediaKind, Message, Part, RawJson, Usage};
use trimtab::wire::chat;

use crate::case::Case;

/// The result for a case; none if its op is not known.
pub(crate) fn run(case: &Case) -> Option<Value> {
    let input = &case.input;
    let op = case.op.as_str();
    history::run(op, input)
        .or_else(|| estimates::run(op, input))
        .or_else(|| budgets::run(op, input))
        .or_else(|| views::run(op, input))
        .or_else(|| retrieval::run(op, input))
        .or_else(|| archive::run(op, input))
        .or_else(|| compaction::run(op, input))
}

/// The messages of a case.
pub(crate) fn messages(list: &Value) -> Vec<Message> {
    list.as_array().into_iter().flatten().map(message).collect()
}

/// A message of a case, with the fields that only cases have.
fn message(value: &Value) -> Message {
    let mut message = chat::read_message(&value.to_string()).unwrap();
    // The third design takes the total that is reported, and its parts only without one.
    if let Some(total) = value["usage"]["total"].as_u64().filter(|total| *total > 0) {
        message.meta.usage = Some(Usage {
            input: total,
            ..Usage::default()
        });
    }
    let pictures = value["images"].as_u64().unwrap_or(0);
    let media = value["media"]
        .as_array()
        .map_or(0, |list| list.len() as u64);
    for _ in 0..pictures + media {
        let raw = RawJson::of(&serde_json::json!({"type": "image_url"}));
        message.parts.push(Part::Media(Media {
            kind: MediaKind::Image,
            raw,
        }));
    }
    message
}

/// Messages of ours in the words of a case.
fn written<'m>(messages: impl IntoIterator<Item = &'m Message>) -> Value {
    let json = messages.into_iter().flat_map(chat::write_message);
    json.map(|raw| raw.to_value())
        .map(content_is_there)
        .collect()
}

/// An assistant without content may leave the field out; the cases write null.
fn content_is_there(mut message: Value) -> Value {
    if let Some(fields) = message.as_object_mut() {
        fields.entry("content").or_insert(Value::Null);
    }
    message
}

/// The log with some edits carried out, before it is normalised.
fn edited(log: &[Message], edits: Vec<Edit>) -> Vec<Arc<Message>> {
    let log: Log = log.iter().cloned().collect();
    let mut journal = Journal::new();
    journal.append(JournalEntry::Plan(Plan::new(Reason::ByHand, edits)));
    let projection =
        Projection::restore(trimtab::engine::normalise::Options::default(), log, journal);
    projection
        .slots()
        .iter()
        .map(|slot| Arc::clone(&slot.message))
        .collect()
}
