//! The messages that a digest is about, and what it says of them.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use trimtab_model::rounds::{self, PartPosition};
use trimtab_model::{Call, Message, MessageKind, Output, Ref, Role, work};

use super::lines::{Item, Said, item, without_digits};
use super::tool_use::{asked, files, has_failed, is_receipt, may_fail};
use super::{DigestContent, is_digest};
use crate::log::Log;
use crate::normalise::Slot;
use crate::observation::outputs_of;
use crate::quote::escaped;
use crate::quote::quoted;
use crate::view::errors::error_lines;
use crate::view::figures::{first_bytes, human_size, last_bytes};
use crate::view::placeholder::{way_back_to_messages, without_markers};
use crate::view::tools::is_retrieval;

/// Only the newest messages are looked at, so that a digest of a long session does not cost more
/// than one of a short session.
const MOST_MESSAGES: usize = 400;
/// The bytes of what a call was asked.
const ASKED_BYTES: usize = 120;
/// A run prints its result at its end. This many bytes there are searched for errors.
const SEARCHED_BYTES: usize = 16 << 10;
/// The bytes of the error lines of one run, and of one line of them.
const ERROR_BYTES: usize = 600;
const ERROR_LINE_BYTES: usize = 240;
/// The beginnings of statements about errors, in the languages that agents mostly work on.
const STATEMENTS: [&str; 6] = ["raise ", "throw ", "except ", "catch ", "return ", "class "];
/// An output has lines that stand out if it has at least this many lines, nine of ten like at least
/// four others, and at most this many unlike all others.
const LEAST_LINES: usize = 20;
const COMMON: usize = 5;
const MOST_ODD: usize = 3;
/// The bytes of an output that are compared.
const COMPARED_BYTES: usize = 64 << 10;

/// Messages that left the window: those of this compaction, and those of earlier ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct HiddenMessages {
    /// Oldest first.
    messages: Vec<Arc<Message>>,
    /// The newest summary that a model wrote, of everything before these messages.
    summary: Option<String>,
    /// The number of messages that this compaction replaces.
    replaced: usize,
}

impl HiddenMessages {
    /// The messages of `log` that are hidden once `replaced` of the `slots` are gone.
    /// Summaries begin with `prefix`, which is not repeated.
    pub(crate) fn of(log: &Log, slots: &[Slot], replaced: &[usize], prefix: &str) -> Self {
        // The numbers rise.
        let goes = |at: &usize| replaced.binary_search(at).is_ok();
        let stays = slots.iter().enumerate().filter(|(at, _)| !goes(at));
        let stays: HashSet<usize> = stays.filter_map(|(_, slot)| slot.source.in_log()).collect();
        // What a model has summarised is in its summary, whether it stays or goes.
        let newest_first = slots.iter().enumerate().rev();
        let mut summaries = newest_first.filter(|(_, slot)| is_only_summary(slot));
        let summary = summaries.next();
        let from = summary.map_or(0, |(_, slot)| slot.source.end());
        let end = replaced.last().and_then(|last| slots.get(*last));
        let end = end.map_or(0, |slot| slot.source.end());
        let hidden = (from..end.min(log.len()))
            .rev()
            .filter(|at| !stays.contains(at));
        let hidden = hidden.filter_map(|at| log.get(at)).take(MOST_MESSAGES);
        let mut messages: Vec<Arc<Message>> = hidden.cloned().collect();
        messages.reverse();
        let summary = summary.filter(|(at, _)| goes(at));
        let said = |text: &str| escaped(text.trim_start_matches(prefix).trim());
        Self {
            messages,
            summary: summary.map(|(_, slot)| said(&slot.message.text())),
            replaced: replaced.len(),
        }
    }

    /// These messages.
    #[cfg(test)]
    pub(super) fn of_messages(messages: Vec<Arc<Message>>) -> Self {
        Self {
            replaced: messages.len(),
            messages,
            ..Self::default()
        }
    }

    /// The line that says how to read them. What was stored earlier is listed at the end of what
    /// was stored last.
    pub(super) fn way_back(&self, archived: &Ref) -> String {
        let line = way_back_to_messages(self.replaced, archived);
        if self.messages.len() > self.replaced {
            format!(
                "{line}\n[trimtab: the refs of messages that were left out before are at its end]"
            )
        } else {
            line
        }
    }

    /// What a digest says of them.
    pub(super) fn content(&self) -> DigestContent {
        let said = |of: fn(&Message) -> bool| {
            let said = self.messages.iter().filter(|message| of(message));
            let texts = said.map(|message| Said {
                // Some designs put the digest between tags.
                text: escaped(message.text().trim()),
                // What comes with a call only says what happens next.
                is_answer: !message.has_calls(),
            });
            texts.filter(|said| !said.text.is_empty()).collect()
        };
        let (mut failed, mut odd, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let mut by_file: HashMap<String, FileHistory> = HashMap::new();
        for (at, output) in self.outputs().iter().enumerate() {
            let kind = output.call.map_or("output", |call| &call.name).to_owned();
            let text = item(&output.line());
            if let Some(errors) = &output.errors {
                let text = format!("{text}:\n{errors}");
                failed.push(Item { text, kind });
                continue;
            }
            let (named, changes) = output.call.map(files).unwrap_or_default();
            for path in &named {
                let file = by_file.entry(path.clone()).or_default();
                file.add(changes, output.stored.as_ref(), at);
            }
            if let Some(lines) = &output.odd {
                let text = format!("{text}:\n{lines}");
                odd.push(Item { text, kind });
            } else if named.is_empty() && !is_receipt(output.call, output.bytes) {
                others.push(Item { text, kind });
            }
        }
        let summary = self.summary.iter().map(|text| Said {
            text: text.clone(),
            is_answer: true,
        });
        DigestContent {
            summary: summary.collect(),
            user: said(Message::is_real_user),
            model: said(|message| message.role == Role::Assistant),
            failed,
            odd,
            files: file_items(by_file),
            outputs: others,
        }
    }

    /// The outputs, oldest first, without those that a newer one repeats.
    fn outputs(&self) -> Vec<HiddenOutput<'_>> {
        let pairing = rounds::pair(&self.messages);
        let answered = pairing.outputs.iter();
        let calls: HashMap<PartPosition, &Call> = answered
            .filter_map(|(place, answer)| Some((*place, pairing.call_of(&self.messages, *answer)?)))
            .collect();
        let (mut known_calls, mut known_errors) = (HashSet::new(), HashSet::new());
        let mut found = Vec::new();
        for (at, message) in self.messages.iter().enumerate().rev() {
            for (part, output) in outputs_of(message) {
                let call = calls.get(&PartPosition { message: at, part }).copied();
                // What a retrieval repeats has a line of its own.
                if call.is_some_and(|call| is_retrieval(&call.name)) {
                    continue;
                }
                let is_newest_call =
                    call.is_none_or(|call| known_calls.insert((&call.name, &call.arguments)));
                let output = HiddenOutput::new(call, &output);
                // What failed once may fail again, even if the same call was made again later.
                let is_new = match &output.errors {
                    Some(errors) => known_errors.insert(without_digits(errors)),
                    None => is_newest_call,
                };
                if is_new {
                    found.push(output);
                }
            }
        }
        found.reverse();
        found
    }
}

/// True for a summary that alone has what it says. A digest that a plan has inserted is about
/// messages of the log.
fn is_only_summary(slot: &Slot) -> bool {
    let message = &slot.message;
    let is_from_log = || slot.source.in_log().is_some();
    message.meta.kind == Some(MessageKind::Summary)
        && (is_from_log() || !is_digest(&message.text()))
}

/// A hidden output.
struct HiddenOutput<'m> {
    call: Option<&'m Call>,
    stored: Option<String>,
    bytes: usize,
    /// The quoted lines of its errors, if it is the output of a run that failed.
    errors: Option<String>,
    /// The quoted lines that are unlike all others.
    odd: Option<String>,
}

impl<'m> HiddenOutput<'m> {
    fn new(call: Option<&'m Call>, output: &Output) -> Self {
        let text = output.text();
        let errors = errors_of(call, output, last_bytes(&text, SEARCHED_BYTES));
        Self {
            call,
            odd: errors.is_none().then(|| odd_lines(&text)).flatten(),
            stored: output.stored.as_ref().map(ToString::to_string),
            bytes: text.len(),
            errors: errors.as_deref().map(quoted),
        }
    }

    /// What was asked, the size and the ref.
    fn line(&self) -> String {
        let asked = self
            .call
            .map_or_else(|| "output".to_owned(), |call| asked(call, ASKED_BYTES));
        let size = human_size(self.bytes);
        match &self.stored {
            Some(stored) => format!("{asked}: {size}, ref {stored}"),
            None => format!("{asked}: {size}"),
        }
    }
}

/// The lines of errors in the `end` of an output, if its call failed.
fn errors_of(call: Option<&Call>, output: &Output, end: &str) -> Option<String> {
    // Most outputs are files and searches, which are not read for errors.
    if !may_fail(call, output) {
        return None;
    }
    let lines = errors_in(end);
    if !has_failed(call, output, !lines.is_empty()) {
        return None;
    }
    // The client may say that the call failed although no line looks like an error.
    let last = || last_bytes(end.trim(), ERROR_LINE_BYTES).to_owned();
    Some(
        Some(lines)
            .filter(|lines| !lines.is_empty())
            .unwrap_or_else(last),
    )
}

/// The first lines of errors in the end of an output, within their limit, each once.
fn errors_in(text: &str) -> String {
    let mut lines = String::new();
    let mut known = HashSet::new();
    for piece in without_markers(text) {
        for range in error_lines(piece) {
            for line in piece.get(range).unwrap_or_default().lines() {
                let line = first_bytes(line.trim_end(), ERROR_LINE_BYTES);
                if is_statement(line) || !known.insert(without_digits(line)) {
                    continue;
                }
                if lines.len() + line.len() >= ERROR_BYTES {
                    return lines;
                }
                if !lines.is_empty() {
                    lines.push('\n');
                }
                lines.push_str(line);
            }
        }
    }
    lines
}

/// True for a statement that mentions an error. Test runners print the source around a failure
/// before the error itself.
fn is_statement(line: &str) -> bool {
    let first = line.trim_start_matches(['>', ' ', '\t', '}']);
    STATEMENTS.iter().any(|word| first.starts_with(word))
}

/// The quoted lines of an output that are unlike all others, such as one error in a log or one
/// remark in a listing. None if the output is a text whose lines are all different, or has many
/// such lines.
fn odd_lines(text: &str) -> Option<String> {
    let text = first_bytes(text, COMPARED_BYTES);
    work::step_text(text);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    if lines.len() < LEAST_LINES {
        return None;
    }
    let mut words = Vec::new();
    let shapes = lines.iter().map(|line| shape(line, &mut words));
    let shapes: Vec<u64> = shapes.collect();
    let mut counts: HashMap<u64, usize> = HashMap::new();
    for shape in &shapes {
        *counts.entry(*shape).or_default() += 1;
    }
    let common: usize = counts.values().filter(|count| **count >= COMMON).sum();
    let alone = lines.iter().zip(&shapes);
    let alone = alone.filter(|(_, shape)| counts.get(shape) == Some(&1));
    let odd = alone.map(|(line, _)| first_bytes(line, ERROR_LINE_BYTES));
    let odd: Vec<&str> = odd.collect();
    let stand_out = common * 10 >= lines.len() * 9 && (1..=MOST_ODD).contains(&odd.len());
    stand_out.then(|| quoted(&odd.join("\n")))
}

/// A hash of a line without the words that have a digit: numbers, times, ids. The other `words` are
/// collected in one place for all lines.
fn shape(line: &str, words: &mut Vec<u8>) -> u64 {
    words.clear();
    for word in line.as_bytes().split(|byte| !byte.is_ascii_alphanumeric()) {
        if !word.iter().any(u8::is_ascii_digit) {
            words.extend_from_slice(word);
            words.push(b' ');
        }
    }
    let mut hasher = DefaultHasher::new();
    words.hash(&mut hasher);
    hasher.finish()
}

/// What was done with a file.
#[derive(Default)]
struct FileHistory {
    read: bool,
    changed: bool,
    stored: Option<String>,
    /// The number of its newest output.
    newest: usize,
}

impl FileHistory {
    /// Adds output number `at`, which is about the file.
    fn add(&mut self, changes: bool, stored: Option<&String>, at: usize) {
        self.read |= !changes;
        self.changed |= changes;
        self.newest = at;
        // The output of a change only says that it was made.
        if !changes || self.stored.is_none() {
            self.stored = stored.cloned();
        }
    }
}

/// A line for each file, the one that was used last at the end.
fn file_items(files: HashMap<String, FileHistory>) -> Vec<Item> {
    let mut files: Vec<(String, FileHistory)> = files.into_iter().collect();
    files.sort_by(|(path, file), (other, another)| {
        (file.newest, path).cmp(&(another.newest, other))
    });
    let line = |(path, file): (String, FileHistory)| {
        let how = match (file.read, file.changed) {
            (true, true) => "read and changed",
            (false, true) => "changed",
            _ => "read",
        };
        let stored = file.stored.map(|stored| format!(", ref {stored}"));
        Item {
            kind: how.to_owned(),
            text: item(&format!("{path}: {how}{}", stored.unwrap_or_default())),
        }
    };
    files.into_iter().map(line).collect()
}
