//! Where the work stopped, and what failed.

use std::borrow::Borrow;
use std::collections::HashSet;

use serde_json::Value;
use trimtab_model::rounds;
use trimtab_model::{Message, Output};

use super::carried::Carried;
use super::runs::call_at;
use super::section::{Section, Title};
use crate::compaction::room::Room;
use crate::compaction::text::{clipped, short_arguments};
use crate::facts;
use crate::view::placeholder::without_markers;

/// Characters of an item.
const LONGEST: usize = 200;
/// Errors that are kept.
const ERRORS: usize = 12;
/// Bytes at the end of an output that are searched for errors.
const READ: usize = 32 << 10;
/// Outputs that are searched for errors.
const OUTPUTS: usize = 100;

/// The newest list of things to do, and the calls that nobody answered.
pub(super) fn work<M: Borrow<Message>>(replaced: &[M], room: &Room<'_>) -> Section {
    let mut items = todo_list(replaced);
    let rounds = rounds::pair(replaced).rounds;
    let calls = rounds.iter().flat_map(|round| &round.calls);
    let open = calls.filter(|place| place.output.is_none());
    let open = open.filter_map(|place| call_at(replaced, place));
    items.extend(open.map(|call| format!("no output yet: {}", short_arguments(call, LONGEST))));
    items.retain(|item| !item.is_empty());
    Section::newest(Title::OpenWork, items.into_iter(), room)
}

/// The entries of the newest call of a tool for lists of things to do.
fn todo_list<M: Borrow<Message>>(replaced: &[M]) -> Vec<String> {
    let calls = replaced
        .iter()
        .rev()
        .flat_map(|message| message.borrow().calls());
    let newest = calls
        .into_iter()
        .find(|call| call.name.to_ascii_lowercase().contains("todo") && !call.arguments.is_empty());
    let Some(call) = newest else {
        return Vec::new();
    };
    let value: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let entries = std::iter::once(&value)
        .chain(
            value
                .as_object()
                .into_iter()
                .flat_map(|fields| fields.values()),
        )
        .find_map(Value::as_array);
    match entries {
        Some(entries) => entries.iter().map(todo).collect(),
        None => vec![short_arguments(call, LONGEST)],
    }
}

fn todo(entry: &Value) -> String {
    let field = |names: [&str; 4]| {
        let found = names.iter().find_map(|name| entry.get(name)?.as_str());
        found.map(str::to_owned)
    };
    let what = field(["content", "text", "title", "task"]).unwrap_or_else(|| {
        entry
            .as_str()
            .map_or_else(|| entry.to_string(), str::to_owned)
    });
    let state = field(["status", "state", "done", "completed"]);
    let state = state.unwrap_or_else(|| "to do".to_owned());
    clipped(&format!("[{state}] {what}"), LONGEST)
}

/// The newest errors, each once.
pub(super) fn errors<M: Borrow<Message>>(
    replaced: &[M],
    carried: &Carried<'_>,
    room: &Room<'_>,
) -> Section {
    let mut known = HashSet::new();
    // Newest first.
    let mut errors = Vec::new();
    let outputs = replaced
        .iter()
        .rev()
        .flat_map(|message| message.borrow().outputs());
    for output in outputs.take(OUTPUTS) {
        if errors.len() >= ERRORS {
            break;
        }
        let found = errors_of(output).into_iter().rev();
        errors.extend(found.filter(|error| known.insert(without_digits(error))));
    }
    errors.truncate(ERRORS);
    let before: Vec<String> = carried
        .items(Title::Errors)
        .filter(|error| known.insert(without_digits(error)))
        .collect();
    let all = before.into_iter().chain(errors.into_iter().rev());
    Section::newest(Title::Errors, all, room)
}

fn errors_of(output: &Output) -> Vec<String> {
    let text = output.text();
    let from = text.ceil_char_boundary(text.len().saturating_sub(READ));
    let tail = text.get(from..).unwrap_or_default();
    let mut errors = Vec::new();
    for piece in without_markers(tail) {
        facts::errors(piece, &mut |fact| errors.push(clipped(fact.text, LONGEST)));
    }
    let pieces = without_markers(&text);
    let mut lines = pieces.iter().flat_map(|piece| piece.lines());
    let first = lines.find(|line| !line.trim().is_empty());
    if let (true, true, Some(first)) = (output.is_error, errors.is_empty(), first) {
        errors.push(clipped(first, LONGEST));
    }
    errors
}

/// Errors that differ in their numbers only are one.
fn without_digits(error: &str) -> String {
    error
        .chars()
        .filter(|found| !found.is_ascii_digit())
        .collect()
}
