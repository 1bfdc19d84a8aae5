//! The block of facts that stands for the oldest rounds.

use std::collections::HashSet;
use std::fmt::Write;

use serde_json::Value;
use trimtab_model::{Call, Kind, Message, Output, Part, Ref};

use super::card;
use super::words::{self, Words};
use crate::normalise::Slot;
use crate::policy::Rewriting;
use crate::view::figures::first_bytes;
use crate::view::names::{Known, NAMES, chosen};
use crate::view::placeholder::read_call;

/// What the block begins with.
const HEAD: &str = "[trimtab: earlier rounds left out; everything in them: ";
/// What the words of the model begin with, and the lines of outputs. No line of words begins
/// like these.
const WORDS: &str = "said by you in them:";
const LINES: &str = "outputs in them, with names they hold:";
/// Bytes of a call's arguments on a line, and of each of them.
const ARGUMENTS: usize = 90;
/// An output of no more bytes stands on its line as it is.
const SHORT: usize = 240;
const VALUE: usize = 60;
/// A line of no more bytes is short. Longer ones are cut to so many where there is no room, and
/// one byte in so many is for such lines.
const SHORT_LINE: usize = 300;
const STUB: usize = 64;
const STUBS_SHARE: usize = 8;
/// Stands for the call of an output that has none.
const NO_CALL: &str = "output";
/// Stands where something is missing.
const CUT: &str = "\u{2026}";

/// One hidden output: a line of the block.
#[derive(Clone, Debug)]
pub(crate) struct Line(String);

impl Line {
    /// The line of an output that is about to be hidden.
    pub(super) fn new(
        output: &Output,
        call: Option<&Call>,
        settings: &Rewriting,
        known: &Known,
    ) -> Option<Self> {
        let stored = output.stored.as_ref()?;
        let text = output.text();
        let names = match text.split_once(NAMES) {
            Some((_, names)) if output.trimmed => first_names(names, settings.line_bytes),
            _ if card::is_card(output) => String::new(),
            // What is short says more than its names.
            _ if text.len() <= SHORT => flat(&text),
            _ => {
                let allowed = settings.names(text.len()).min(settings.line_bytes);
                chosen(&text, allowed, known)
            }
        };
        let names = names.replace(stored.id(), "");
        let names = names.trim();
        Some(Self(match call {
            Some(call) => {
                let arguments = short(&call.arguments);
                format!("{stored} {} {arguments}: {names}", call.name)
            }
            None => format!("{stored} {NO_CALL}: {names}"),
        }))
    }
}

/// What a call was given, on one line: its values, of long ones the end.
fn short(arguments: &str) -> String {
    let mut values = Vec::new();
    match serde_json::from_str(arguments) {
        Ok(value) => collect(&value, &mut values),
        Err(_) => values.push(ending(arguments, VALUE)),
    }
    ending(&values.join(" "), ARGUMENTS)
}

fn collect(value: &Value, values: &mut Vec<String>) {
    match value {
        Value::String(text) => values.push(ending(text, VALUE)),
        Value::Number(number) => values.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, values)),
        Value::Object(members) => members.values().for_each(|member| collect(member, values)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// A text on one line.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The last `bytes` of a text, without line breaks; a mark says that something is missing.
fn ending(text: &str, bytes: usize) -> String {
    let flat = flat(text);
    let least = flat.len().saturating_sub(bytes);
    if least == 0 {
        return flat;
    }
    let from = (least..=flat.len()).find(|at| flat.is_char_boundary(*at));
    let end = from.and_then(|from| flat.get(from..)).unwrap_or_default();
    format!("{CUT}{end}")
}

/// The names of a line within `bytes`: the first ones, which are the most useful.
fn first_names(names: &str, bytes: usize) -> String {
    let mut kept = String::new();
    for name in names.split(' ') {
        if kept.len() + name.len() + 1 > bytes {
            break;
        }
        kept.push_str(name);
        kept.push(' ');
    }
    kept.truncate(kept.trim_end().len());
    kept
}

impl Line {
    /// What is left of it where there is no room for all: the ref, the call and a few names, or
    /// all of it if it is short.
    fn stub(&self) -> &str {
        if self.0.len() <= SHORT_LINE {
            return &self.0;
        }
        let cut = first_bytes(&self.0, STUB);
        cut.rsplit_once(' ').map_or(cut, |(whole, _)| whole)
    }

    /// The call whose output it is.
    fn call(&self) -> &str {
        let call = self.0.split_once(' ').map_or("", |(_, rest)| rest);
        call.split_once(": ").map_or(call, |(call, _)| call)
    }
}

/// The lines without those of calls that were made again later: the newest is what holds.
fn newest(lines: &[Line]) -> Vec<&Line> {
    let mut seen = HashSet::new();
    let mut newest = Vec::new();
    for line in lines.iter().rev() {
        let is_unique = line.call() == NO_CALL || line.call().contains(CUT);
        if is_unique || seen.insert(line.call()) {
            newest.push(line);
        }
    }
    newest
}

/// The text of the block that an earlier rewrite put in, if there is one.
pub(super) fn earlier(slots: &[Slot]) -> Option<String> {
    let block = slots.iter().rev().find(|slot| is_block(&slot.message));
    block.map(|slot| slot.message.text().into_owned())
}

/// What such a text says: the words of the model and the lines of outputs, oldest first.
pub(super) fn read(text: Option<&str>) -> (Vec<Words>, Vec<Line>) {
    let mut lines = text.unwrap_or_default().lines();
    let words = lines.by_ref().take_while(|line| *line != LINES);
    let words = words::read(words);
    let lines = lines.filter(|line| !line.is_empty());
    (words, lines.map(|line| Line(line.to_owned())).collect())
}

/// True for a block of ours.
pub(super) fn is_block(message: &Message) -> bool {
    let text = message.parts.first().and_then(Part::as_text);
    message.meta.kind == Some(Kind::Summary) && text.is_some_and(|text| text.starts_with(HEAD))
}

/// What a block says.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    /// What the model said.
    pub(super) words: Vec<Words>,
    /// What tools gave back.
    pub(super) lines: Vec<Line>,
    /// The most that all of it may take, in bytes.
    pub(super) bytes: usize,
    /// The most that the words may take of that.
    pub(super) words_bytes: usize,
}

impl Contents {
    /// The text of the block: where everything is, what the model said, and as many lines as
    /// fit.
    pub(crate) fn text(&self, archived: Option<&Ref>) -> String {
        let call = archived.map_or_else(String::new, |archived| read_call(archived, 0));
        let mut text = format!("{HEAD}{call}]");
        let left = self.bytes.saturating_sub(text.len() + WORDS.len() + 1);
        let words = words::written(&self.words, self.words_bytes.min(left));
        if !words.is_empty() {
            let _ = write!(text, "\n{WORDS}{words}");
        }
        let left = self.bytes.saturating_sub(text.len() + LINES.len() + 2);
        write_lines(&mut text, &self.lines, left);
        text
    }
}

/// Adds lines within so many bytes: the newest whole, of older ones as much as says which output
/// is behind which ref.
fn write_lines(text: &mut String, lines: &[Line], bytes: usize) {
    let lines = newest(lines);
    let all: usize = lines.iter().map(|line| line.0.len() + 1).sum();
    let mut for_stubs = if all > bytes { bytes / STUBS_SHARE } else { 0 };
    let mut left = bytes - for_stubs;
    let mut kept: Vec<&str> = Vec::new();
    for line in lines {
        let takes = line.0.len() + 1;
        if takes <= left {
            left -= takes;
            kept.push(&line.0);
            continue;
        }
        // From here on there are only stubs.
        left = 0;
        let stub = line.stub();
        let Some(rest) = for_stubs.checked_sub(stub.len() + 1) else {
            break;
        };
        for_stubs = rest;
        kept.push(stub);
    }
    if !kept.is_empty() {
        let _ = write!(text, "\n{LINES}");
    }
    for line in kept.into_iter().rev() {
        let _ = write!(text, "\n{line}");
    }
}
