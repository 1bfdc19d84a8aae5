//! Writes the sections about open work and about errors.

use std::collections::HashSet;

use serde_json::Value;
use trimtab_model::Output;

use super::replaced::ReplacedMessages;
use super::section::{SectionTitle, SummarySection};
use crate::compaction::text::{clip_line, short_arguments};
use crate::compaction::text_budget::TextBudget;
use crate::facts;
use crate::quote::quoted;
use crate::view::figures::last_bytes;
use crate::view::placeholder::without_markers;

/// The maximum of characters of an item.
const LONGEST: usize = 200;
/// The maximum of errors.
const ERRORS: usize = 12;
/// The bytes at the end of an output that are searched for errors.
const READ: usize = 32 << 10;
/// Only the newest outputs are searched for errors.
const OUTPUTS: usize = 100;

impl ReplacedMessages<'_> {
    /// The newest list of things to do, and the unanswered calls.
    pub(super) fn open_work(&self, budget: &TextBudget<'_>) -> SummarySection {
        let open = self.calls.iter().filter(|(_, output)| output.is_none());
        let open =
            open.map(|(call, _)| format!("no output yet: {}", short_arguments(call, LONGEST)));
        let items: Vec<String> = self.todo_list().into_iter().chain(open).collect();
        SummarySection::newest(SectionTitle::OpenWork, items, budget)
    }

    /// The entries of the newest call to a tool for such lists.
    fn todo_list(&self) -> Vec<String> {
        let newest_first = self.messages.iter().rev();
        let mut calls = newest_first.flat_map(|message| message.calls());
        let newest = calls.find(|call| {
            call.name.to_ascii_lowercase().contains("todo") && !call.arguments.is_empty()
        });
        let Some(call) = newest else {
            return Vec::new();
        };
        let value: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        let fields = value
            .as_object()
            .into_iter()
            .flat_map(|fields| fields.values());
        match std::iter::once(&value)
            .chain(fields)
            .find_map(Value::as_array)
        {
            Some(entries) => entries.iter().map(todo).collect(),
            None => vec![short_arguments(call, LONGEST)],
        }
    }

    /// The newest errors, without repetitions.
    pub(super) fn errors(&self, budget: &TextBudget<'_>) -> SummarySection {
        let mut known = HashSet::new();
        let mut is_new = |error: &String| known.insert(without_digits(error));
        let newest_first = self.messages.iter().rev();
        let outputs = newest_first.flat_map(|message| message.outputs());
        let errors = outputs
            .take(OUTPUTS)
            .flat_map(|output| errors_of(output).into_iter().rev());
        let mut errors: Vec<String> = errors.filter(&mut is_new).take(ERRORS).collect();
        errors.reverse();
        let before = self.earlier_items(SectionTitle::Errors).filter(is_new);
        let all: Vec<String> = before.chain(errors).collect();
        SummarySection::newest(SectionTitle::Errors, all, budget)
    }
}

fn todo(entry: &Value) -> String {
    // Every client has its own names for these fields.
    let field = |names: [&str; 4]| names.iter().find_map(|name| entry.get(name)?.as_str());
    let what = field(["content", "text", "title", "task"]).or(entry.as_str());
    let what = what.map_or_else(|| entry.to_string(), str::to_owned);
    let state = field(["status", "state", "done", "completed"]).unwrap_or("to do");
    clip_line(&format!("[{state}] {what}"), LONGEST)
}

fn errors_of(output: &Output) -> Vec<String> {
    let text = output.text();
    let mut errors = Vec::new();
    for piece in without_markers(last_bytes(&text, READ)) {
        facts::errors(piece, &mut |fact| {
            errors.push(quoted(&clip_line(fact.text, LONGEST)));
        });
    }
    // The client says that the call failed, but no line looks like an error. Its first line is the
    // best guess.
    if output.is_error && errors.is_empty() {
        let pieces = without_markers(&text);
        let mut lines = pieces.iter().flat_map(|piece| piece.lines());
        let first = lines.find(|line| !line.trim().is_empty());
        errors.extend(first.map(|first| quoted(&clip_line(first, LONGEST))));
    }
    errors
}

/// The text without digits: errors that differ only in numbers are repetitions.
fn without_digits(error: &str) -> String {
    error
        .chars()
        .filter(|found| !found.is_ascii_digit())
        .collect()
}
