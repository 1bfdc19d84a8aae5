//! The messages that a digest is about, and what it says of them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use trimtab_model::rounds::{self, PartPosition};
use trimtab_model::{Call, Message, MessageKind, Output, Ref, Role};

use super::lines::{Item, Said, item};
use super::tool_use::{FileAccess, asked, files, has_failed, is_receipt};
use super::{DigestContent, is_digest};
use crate::compaction::request::escaped;
use crate::log::Log;
use crate::normalise::{MessageSource, Slot};
use crate::observation::outputs_of;
use crate::quote::quoted;
use crate::view::errors::error_lines;
use crate::view::figures::{first_bytes, human_size, last_bytes};
use crate::view::placeholder::{way_back_to_messages, without_markers};
use crate::view::tools::is_retrieval;

/// Only the newest messages are looked at, so that a digest of a long session does not cost more
/// than one of a short session.
const MOST_MESSAGES: usize = 2_000;
/// The bytes of what a call was asked.
const ASKED_BYTES: usize = 120;
/// A run prints its result at its end. This many bytes there are searched for errors.
const SEARCHED_BYTES: usize = 16 << 10;
/// The bytes of the error lines of one run, and of one line of them.
const ERROR_BYTES: usize = 600;
const ERROR_LINE_BYTES: usize = 240;

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
        let gone: HashSet<usize> = replaced.iter().copied().collect();
        let stays = slots
            .iter()
            .enumerate()
            .filter(|(at, _)| !gone.contains(at));
        let stays: HashSet<usize> = stays.filter_map(|(_, slot)| slot.source.in_log()).collect();
        // What a model has summarised is in its summary, whether it stays or goes.
        let newest_first = slots.iter().enumerate().rev();
        let mut summaries = newest_first.filter(|(_, slot)| is_only_summary(slot));
        let summary = summaries.next();
        let from = summary.map_or(0, |(_, slot)| match slot.source {
            MessageSource::Log(at) => at + 1,
            MessageSource::Inserted(before) => before,
        });
        let end = replaced.last().and_then(|last| slots.get(*last));
        let end = end.map_or(0, |slot| match slot.source {
            MessageSource::Log(at) => at + 1,
            MessageSource::Inserted(before) => before,
        });
        let hidden = (from..end.min(log.len()))
            .rev()
            .filter(|at| !stays.contains(at));
        let hidden = hidden.filter_map(|at| log.get(at)).take(MOST_MESSAGES);
        let mut messages: Vec<Arc<Message>> = hidden.cloned().collect();
        messages.reverse();
        let summary = summary.filter(|(at, _)| gone.contains(at));
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
    pub(super) fn content(&self) -> DigestContent<'_> {
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
        let outputs = self.outputs();
        let (mut failed, mut others) = (Vec::new(), Vec::new());
        let mut by_file = FileHistories::default();
        for output in &outputs {
            let kind = output.call.map_or("output", |call| &call.name).to_owned();
            let text = item(&output.line());
            if let Some(errors) = &output.errors {
                let text = format!("{text}:\n{errors}");
                failed.push(Item { kind, text });
            } else if !by_file.add(output) && !is_receipt(output.call, output.bytes) {
                others.push(Item { kind, text });
            }
        }
        DigestContent {
            summary: self.summary.as_deref(),
            user: said(Message::is_real_user),
            model: said(|message| message.role == Role::Assistant),
            failed,
            files: by_file.lines(),
            outputs: others,
        }
    }

    /// The outputs, oldest first. Of equal calls only the newest is current.
    fn outputs(&self) -> Vec<HiddenOutput<'_>> {
        let pairing = rounds::pair(&self.messages);
        let answered = pairing.outputs.iter();
        let calls: HashMap<PartPosition, &Call> = answered
            .filter_map(|(place, answer)| Some((*place, pairing.call_of(&self.messages, *answer)?)))
            .collect();
        let mut known = HashSet::new();
        let mut found = Vec::new();
        for (at, message) in self.messages.iter().enumerate().rev() {
            for (part, output) in outputs_of(message) {
                let call = calls.get(&PartPosition { message: at, part }).copied();
                let mut is_repeated =
                    || call.is_some_and(|call| !known.insert((&call.name, &call.arguments)));
                // What a retrieval repeats has a line of its own.
                if call.is_some_and(|call| is_retrieval(&call.name)) || is_repeated() {
                    continue;
                }
                found.push(HiddenOutput::new(call, &output));
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
}

impl<'m> HiddenOutput<'m> {
    fn new(call: Option<&'m Call>, output: &Output) -> Self {
        let text = output.text();
        let end = last_bytes(&text, SEARCHED_BYTES);
        let lines = errors_in(end);
        let failed = has_failed(call, output, !lines.is_empty());
        // The client says that the call failed, but no line looks like an error.
        let lines = || {
            if lines.is_empty() {
                last_bytes(end.trim(), ERROR_LINE_BYTES).to_owned()
            } else {
                lines
            }
        };
        Self {
            call,
            stored: output.stored.as_ref().map(ToString::to_string),
            bytes: text.len(),
            errors: failed.then(|| quoted(&lines())),
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

/// The first lines of errors in the end of an output, within their limit.
fn errors_in(text: &str) -> String {
    let mut lines = String::new();
    for piece in without_markers(text) {
        for range in error_lines(piece) {
            for line in piece.get(range).unwrap_or_default().lines() {
                let line = first_bytes(line.trim_end(), ERROR_LINE_BYTES);
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

/// What was done with each file.
#[derive(Default)]
struct FileHistories {
    /// The number of the newest output of each file.
    files: HashMap<String, FileHistory>,
    count: usize,
}

#[derive(Default)]
struct FileHistory {
    read: bool,
    changed: bool,
    stored: Option<String>,
    newest: usize,
}

impl FileHistories {
    /// Adds an output that is about files; false if it names none.
    fn add(&mut self, output: &HiddenOutput<'_>) -> bool {
        let named = output.call.map(files).unwrap_or_default();
        self.count += 1;
        for (path, access) in &named {
            let file = self.files.entry(path.clone()).or_default();
            file.read |= *access == FileAccess::Read;
            file.changed |= *access == FileAccess::Changed;
            file.newest = self.count;
            // The output of a change only says that it was made.
            if *access == FileAccess::Read || file.stored.is_none() {
                file.stored.clone_from(&output.stored);
            }
        }
        !named.is_empty()
    }

    /// A line for each file, the one that was used last at the end.
    fn lines(self) -> Vec<Item> {
        let mut files: Vec<(String, FileHistory)> = self.files.into_iter().collect();
        files.sort_by(|(path, file), (other, another)| {
            (file.newest, path).cmp(&(another.newest, other))
        });
        let line = |(path, file): &(String, FileHistory)| {
            let how = match (file.read, file.changed) {
                (true, true) => "read and changed",
                (false, true) => "changed",
                _ => "read",
            };
            let stored = file
                .stored
                .as_ref()
                .map_or_else(String::new, |stored| format!(", ref {stored}"));
            Item {
                kind: how.to_owned(),
                text: item(&format!("{path}: {how}{stored}")),
            }
        };
        files.iter().map(line).collect()
    }
}
