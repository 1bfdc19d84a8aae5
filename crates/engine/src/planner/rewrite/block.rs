//! The block that stands for the oldest rounds: where they are, what the model said in them, and
//! what was in their outputs.

use std::collections::HashSet;
use std::fmt::Write;

use serde_json::Value;
use trimtab_model::{Call, Kind, Message, Output, Part, Ref};

use super::excerpt::{Allowance, Interest, kept};
use super::purpose::{Purpose, purpose};
use super::words::{self, Words};
use crate::log::Log;
use crate::normalise::Slot;
use crate::view::placeholder::read_call;

/// What the block begins with.
const HEAD: &str = "[trimtab: earlier rounds left out; everything in them: ";
/// What the refs of still earlier rounds, the words of the model and the outputs begin with. No
/// line of words begins like these.
const EARLIER: &str = "before that, in the same way: ";
const WORDS: &str = "said by you in them:";
const OUTPUTS: &str = "from outputs in them:";
/// What is kept of an output, in percent of it and in bytes; of one that was not read, a third.
const OUTPUT_PERCENT: usize = 12;
const OUTPUT_BYTES: usize = 1_200;
const RUN_SHARE: usize = 3;
/// An output has at least so many bytes, if it has them.
const LEAST_OUTPUT: usize = 120;
/// The share of an output's bytes that is for names without their line, in percent.
const NAMES_PERCENT: u64 = 90;
/// So many messages are looked at for outputs, the newest first.
const LOOKED_AT: usize = 600;
/// A call stands within so many messages before its output.
const CALL_WITHIN: usize = 16;
/// Bytes of a call's arguments, and of each of them.
const ARGUMENTS: usize = 90;
const VALUE: usize = 60;
/// Stands where something is missing.
const CUT: &str = "\u{2026}";

/// What a block says.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    /// The refs of blocks before it, oldest first.
    pub(super) earlier: Vec<String>,
    /// What the model said.
    pub(super) words: Vec<Words>,
    /// What tools gave back, oldest first.
    pub(super) outputs: Vec<String>,
    /// The most that all of it may take, in bytes.
    pub(super) bytes: usize,
    /// The most that the words may take of that.
    pub(super) words_bytes: usize,
}

impl Contents {
    /// The text of the block, where the rounds that are left out now are stored at `archived`.
    pub(crate) fn text(&self, archived: Option<&Ref>) -> String {
        let call = archived.map_or_else(String::new, |archived| read_call(archived, 0));
        let mut text = format!("{HEAD}{call}]");
        // Writing into a String cannot fail.
        if !self.earlier.is_empty() {
            let _ = write!(text, "\n{EARLIER}{}", self.earlier.join(" "));
        }
        let left = self.bytes.saturating_sub(text.len() + WORDS.len() + 1);
        let words = words::written(&self.words, self.words_bytes.min(left));
        if !words.is_empty() {
            let _ = write!(text, "\n{WORDS}{words}");
        }
        let mut left = self.bytes.saturating_sub(text.len() + OUTPUTS.len() + 2);
        let newest = self.outputs.iter().rev();
        let fitting = newest.take_while(|output| {
            let fits = output.len() < left;
            left = left.saturating_sub(output.len() + 1);
            fits
        });
        let fitting: Vec<&String> = fitting.collect();
        if !fitting.is_empty() {
            let _ = write!(text, "\n{OUTPUTS}");
        }
        for output in fitting.into_iter().rev() {
            let _ = write!(text, "\n{output}");
        }
        text
    }
}

/// What an earlier block said that the next one says again: the refs of what it stood for, and
/// the words of the model, oldest first.
pub(super) fn read(slots: &[Slot]) -> (Vec<String>, Vec<Words>) {
    let block = slots.iter().rev().find(|slot| is_block(&slot.message));
    let text = block.map(|slot| slot.message.text().into_owned());
    let mut lines = text.as_deref().unwrap_or_default().lines().peekable();
    let own = lines.next().and_then(|head| {
        let (_, behind) = head.split_once("\"ref_id\":\"")?;
        behind.split_once('"').map(|(id, _)| id.to_owned())
    });
    let earlier = lines.peek().and_then(|line| line.strip_prefix(EARLIER));
    let earlier = earlier.unwrap_or_default().split_whitespace();
    let refs = earlier.map(str::to_owned).chain(own).collect();
    let words = lines.take_while(|line| *line != OUTPUTS);
    (refs, words::read(words))
}

/// True for a block of ours.
pub(super) fn is_block(message: &Message) -> bool {
    let text = message.parts.first().and_then(Part::as_text);
    message.meta.kind == Some(Kind::Summary) && text.is_some_and(|text| text.starts_with(HEAD))
}

/// What is kept of the outputs of `log` that are not at the positions in `shown`, within so many
/// bytes: the newest first, oldest first in the list.
pub(super) fn outputs(
    log: &Log,
    shown: &HashSet<usize>,
    bytes: usize,
    interest: &mut Interest,
) -> Vec<String> {
    let mut left = bytes;
    let mut kept = Vec::new();
    let mut calls = HashSet::new();
    let hidden = (0..log.len()).rev().filter(|at| !shown.contains(at));
    for at in hidden.take(LOOKED_AT) {
        let message = log.get(at);
        for output in message.into_iter().flat_map(|message| message.outputs()) {
            let call = call_of(log, at, &output.call_id);
            // Of a call that was made again, the newest output is what holds.
            if call.is_some_and(|call| !calls.insert((&call.name, &call.arguments))) {
                continue;
            }
            let Some(line) = line(output, call, left, interest) else {
                continue;
            };
            left -= line.len() + 1;
            kept.push(line);
        }
        if left < LEAST_OUTPUT {
            break;
        }
    }
    kept.reverse();
    kept
}

fn call_of<'l>(log: &'l Log, output: usize, id: &str) -> Option<&'l Call> {
    let before = (output.saturating_sub(CALL_WITHIN)..output).rev();
    let mut calls = before
        .filter_map(|at| log.get(at))
        .flat_map(|message| message.calls());
    calls.find(|call| call.id == id)
}

/// What is kept of one hidden output; none where that is nothing, or does not fit.
fn line(
    output: &Output,
    call: Option<&Call>,
    left: usize,
    interest: &mut Interest,
) -> Option<String> {
    let stored = output.stored.as_ref()?;
    let text = output.text();
    let share = (text.len() * OUTPUT_PERCENT / 100).min(OUTPUT_BYTES);
    let share = match purpose(call) {
        Purpose::Reading => share,
        Purpose::Running => share / RUN_SHARE,
    };
    let of_call = call.map_or_else(
        || "output".to_owned(),
        |call| format!("{} {}", call.name, short(&call.arguments)),
    );
    let head = format!("{stored} {of_call}:");
    let share = share.max(LEAST_OUTPUT.min(text.len()));
    let allowed = Allowance {
        bytes: share.min(left.saturating_sub(head.len() + 2)),
        names_percent: NAMES_PERCENT,
    };
    let kept = kept(&text, allowed, interest);
    if kept.is_empty() {
        return None;
    }
    interest.known.add(&kept);
    let line = format!("{head} {kept}");
    (line.len() < left).then_some(line)
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

/// The last `bytes` of a text, without line breaks; a mark says that something is missing.
fn ending(text: &str, bytes: usize) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let least = flat.len().saturating_sub(bytes);
    if least == 0 {
        return flat;
    }
    let from = (least..=flat.len()).find(|at| flat.is_char_boundary(*at));
    let end = from.and_then(|from| flat.get(from..)).unwrap_or_default();
    format!("{CUT}{end}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::normalise::Source;

    fn stored(id: &str) -> Ref {
        serde_json::from_str(&format!(r#"{{"id":"{id}"}}"#)).unwrap()
    }

    #[test]
    fn refs_and_words_of_a_block_are_read_by_the_next_one() {
        let said = Message::assistant("I chose the second way.");
        let contents = Contents {
            earlier: vec!["first".to_owned()],
            words: Words::of(&said).into_iter().collect(),
            outputs: vec!["third read a.rs: fn main".to_owned()],
            bytes: 1_000,
            words_bytes: 500,
        };
        let text = contents.text(Some(&stored("second")));
        assert!(text.contains("third read a.rs: fn main"), "{text}");
        let block = Message::user(text).with_kind(Kind::Summary);
        assert!(is_block(&block));
        let slot = Slot {
            message: Arc::new(block),
            source: Source::Inserted(1),
        };
        let (refs, words) = read(&[slot]);
        assert_eq!(refs, ["first", "second"]);
        assert_eq!(words, contents.words);
    }

    #[test]
    fn newest_outputs_have_their_place_first() {
        let contents = Contents {
            earlier: Vec::new(),
            words: Vec::new(),
            outputs: vec!["old ".repeat(30), "new ".repeat(30)],
            bytes: 300,
            words_bytes: 0,
        };
        let text = contents.text(Some(&stored("r")));
        assert!(
            text.contains("new new") && !text.contains("old old"),
            "{text}"
        );
    }
}
