//! Conversations that are one JSON value each: spliced request bodies.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::value::RawValue;
use trimtab_model::Dialect;

use super::WriteError;
use super::patch::JsonPatch;
use crate::json::{self, JsonType, type_of};
use crate::scan::BodyScan;
use crate::splice::{BodyChange, SentMessage, changes, splice};
use crate::transcript::form::{BATCH_FIELDS, holds_conversation};
use crate::transcript::{Conversation, TranscriptForm, TranscriptReader};

/// Writes a file in which each conversation is one value.
pub(super) fn write(
    mut reader: TranscriptReader<&[u8]>,
    original: &[u8],
    windows: &[Vec<SentMessage>],
) -> Result<Vec<u8>, WriteError> {
    let mut written = Vec::with_capacity(original.len());
    let mut windows = windows.iter();
    loop {
        let (line, text) = reader.current_text()?;
        let read = reader.current()?;
        let value = text.trim();
        // White space around a value, such as its line break, is copied as it is.
        let start = text.len() - text.trim_start().len();
        let (before, _) = text.split_at_checked(start).unwrap_or_default();
        written.extend_from_slice(before.as_bytes());
        match windows.next() {
            Some(sent) => written.extend(conversation(value, &read, sent, line)?),
            None => written.extend_from_slice(value.as_bytes()),
        }
        let end = start + value.len();
        let behind = text.split_at_checked(end).map_or("", |(_, behind)| behind);
        written.extend_from_slice(behind.as_bytes());
        if !reader.next_line()? {
            return Ok(written);
        }
    }
}

/// One conversation with its new window.
fn conversation(
    text: &str,
    read: &Conversation,
    sent: &[SentMessage],
    line: u64,
) -> Result<Vec<u8>, WriteError> {
    if !read.form.is_written() {
        return Err(WriteError::Form { form: read.form });
    }
    let spelling = |why: String| WriteError::Spelling { line, why };
    let value: &RawValue =
        serde_json::from_str(text).map_err(|error| spelling(error.to_string()))?;
    if type_of(value) == JsonType::List {
        let field = if read.form == TranscriptForm::Responses {
            "input"
        } else {
            "messages"
        };
        // A bare list is wrapped into a request, because only requests can be spliced.
        let (head, tail) = (format!("{{\"{field}\":"), "}");
        let body = format!("{head}{text}{tail}");
        let spliced = spliced(&body, read, sent).map_err(spelling)?;
        let inner = spliced.len().saturating_sub(tail.len());
        let list = spliced.get(head.len()..inner);
        return Ok(list.unwrap_or_default().to_vec());
    }
    let body = body_of(value).ok_or_else(|| spelling("no messages".to_owned()))?;
    let spliced = spliced(body.get(), read, sent).map_err(spelling)?;
    let mut patch = JsonPatch::new(text);
    patch.replace(body, &String::from_utf8_lossy(&spliced));
    Ok(patch.end().into_bytes())
}

/// The object with the conversation: the value itself, or the request inside it.
fn body_of(value: &RawValue) -> Option<&RawValue> {
    let fields = json::fields(value)?;
    if holds_conversation(&fields) {
        return Some(value);
    }
    let mut inner = BATCH_FIELDS.iter().filter_map(|name| fields.get(name));
    inner.find(|raw| json::fields(raw).as_ref().is_some_and(holds_conversation))
}

/// Splices the new window into a request body.
fn spliced(body: &str, read: &Conversation, sent: &[SentMessage]) -> Result<Vec<u8>, String> {
    let dialect: Dialect = read.form.dialect();
    let scan = BodyScan::new(body.as_bytes(), dialect).map_err(|error| error.to_string())?;
    // The positions of the window refer to the messages as they were read. If the scan counts
    // otherwise, a change would hit the wrong message.
    if scan.len() != read.messages.len() {
        let (scanned, known) = (scan.len(), read.messages.len());
        return Err(format!(
            "{scanned} messages in its bytes, {known} as it is read"
        ));
    }
    let mut changes = changes(&read.messages, sent, dialect);
    let first = splice(&scan, &changes).map_err(|refused| refused.to_string())?;
    if first.skipped.is_empty() {
        return Ok(first.body.into_owned());
    }
    // A view that would make the body longer is not applied in place; rewrite its message instead.
    let longer = first.skipped.iter().filter_map(|at| changes.get(*at));
    let messages: BTreeSet<usize> = longer.filter_map(message_of).collect();
    changes.retain(|change| !message_of(change).is_some_and(|at| messages.contains(&at)));
    for entry in sent {
        if let Some(message) = entry.log_position.filter(|at| messages.contains(at)) {
            let with = Arc::clone(&entry.message);
            changes.push(BodyChange::Replace { message, with });
        }
    }
    let again = splice(&scan, &changes).map_err(|refused| refused.to_string())?;
    Ok(again.body.into_owned())
}

/// The message that a change concerns, if it concerns its content.
fn message_of(change: &BodyChange) -> Option<usize> {
    match change {
        BodyChange::Show { message, .. }
        | BodyChange::RemovePart { message, .. }
        | BodyChange::Rename { message, .. } => Some(*message),
        _ => None,
    }
}
