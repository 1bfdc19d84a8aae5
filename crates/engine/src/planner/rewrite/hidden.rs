//! Writes the lines of a block about outputs in hidden rounds: the names in each, after its ref.
//!
//! Names alone take a tenth of the room of their lines. In recorded sessions, a call needs a name
//! from an old output about as often as a line, and the same room holds far more names than lines.
//! Outputs that stay in full keep the lines. For a run that failed, its error is written instead,
//! because an agent that forgets why something failed tries it again.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use serde_json::Value;
use trimtab_model::{Call, Message, Output, work};

use super::excerpt::NameInterest;
use super::purpose::{OutputPurpose, purpose};
use crate::facts;
use crate::log::Log;
use crate::policy::scale_to_room;
use crate::quote::quoted;
use crate::view::figures::{first_bytes, last_bytes};
use crate::view::names;
use crate::view::tools::is_retrieval;

/// The limits of the names of one output: in percent of it, and in bytes for a room of 40,000
/// tokens; a third of that for an output that was not read.
const NAMES_PERCENT: usize = 50;
const NAMES_BYTES: u64 = 4_000;
const RUN_SHARE: usize = 3;
/// The names of an output may take at least this many bytes.
const LEAST_NAMES: usize = 120;
/// The share of the errors of runs in the room for outputs, in percent.
const ERRORS_PERCENT: usize = 8;
/// In a small room, errors still get this many bytes, but at most a quarter of the room.
const LEAST_ERRORS: usize = 400;
/// The limit of an error in bytes.
const LONGEST_ERROR: usize = 160;
/// The newest runs are searched for errors, each in this many bytes at its end.
const SEARCHED_RUNS: usize = 100;
const SEARCHED_BYTES: usize = 16 << 10;
/// The beginnings of statements about errors, in the languages that agents mostly work on.
const STATEMENTS: [&str; 6] = ["raise ", "throw ", "except ", "catch ", "return ", "class "];
/// Only the newest messages are considered: this many, and at most this many for each line that
/// has room. Otherwise a small block would cost as much as a large one.
const LOOKED_AT: usize = 2_000;
const LOOKED_AT_PER_LINE: usize = 4;
/// A call is searched within this many messages before its output.
const CALL_WITHIN: usize = 16;
/// The bytes of a call's arguments that are shown.
const ARGUMENTS: usize = 40;
/// An argument is not shown in fewer bytes than this.
const LEAST_ARGUMENT: usize = 8;
/// The bytes of a line besides its text: the mark of a quotation and the end of the line.
const MARK_BYTES: usize = 3;
/// Marks a cut.
const CUT: &str = "\u{2026}";

/// The available room.
#[derive(Clone, Copy)]
pub(super) struct BlockRoom {
    /// For the lines about outputs, in bytes.
    pub(super) bytes: usize,
    /// For messages, in tokens.
    pub(super) messages: u64,
}

/// A hidden output.
struct HiddenOutput<'l> {
    at: usize,
    output: &'l Output,
    call: Option<&'l Call>,
    /// True if it was requested to do something, and not to be read.
    was_run: bool,
    /// True if the same call was made again later. Then only its error is written.
    repeated: bool,
}

/// A line for each output of `log` that is not at a position in `shown`, oldest first: the error of
/// a failed run, otherwise the names in it. If there is not enough room, the newest errors get
/// their share first, then files and searches, then runs. Files that a call named last come first.
pub(super) fn hidden_output_lines(
    log: &Log,
    shown: &HashSet<usize>,
    room: BlockRoom,
    interest: &mut NameInterest,
) -> Vec<String> {
    let most = LOOKED_AT.min(room.bytes / LEAST_NAMES * LOOKED_AT_PER_LINE);
    let ranked = ranked(log, shown, most);
    // Errors first: their share is small, and forgetting them makes an agent repeat its mistakes.
    let mut lines = error_lines(&ranked, room_for_errors(room.bytes));
    let told: HashSet<usize> = lines.iter().map(|(at, _)| *at).collect();
    let used: usize = lines.iter().map(|(_, line)| line.len() + 1).sum();
    let mut left = room.bytes.saturating_sub(used);
    for hidden in ranked
        .iter()
        .filter(|hidden| !hidden.repeated && !told.contains(&hidden.at))
    {
        if left < LEAST_NAMES {
            break;
        }
        if let Some(line) = hidden.line(left, room.messages, interest) {
            left -= line.len() + 1;
            lines.push((hidden.at, line));
        }
    }
    lines.sort_by_key(|(at, _)| *at);
    lines.into_iter().map(|(_, line)| line).collect()
}

fn room_for_errors(bytes: usize) -> usize {
    (bytes * ERRORS_PERCENT / 100).max(LEAST_ERRORS.min(bytes / 4))
}

/// The newest errors of failed runs, without repetitions, with the positions of their outputs.
fn error_lines(ranked: &[HiddenOutput<'_>], bytes: usize) -> Vec<(usize, String)> {
    let failed = |hidden: &&HiddenOutput<'_>| hidden.was_run || hidden.output.is_error;
    let mut runs: Vec<&HiddenOutput<'_>> = ranked.iter().filter(failed).collect();
    runs.sort_by_key(|hidden| Reverse(hidden.at));
    let mut left = bytes;
    let mut known = HashSet::new();
    let mut lines = Vec::new();
    for hidden in runs.into_iter().take(SEARCHED_RUNS) {
        let Some(error) = hidden.error().filter(|error| !known.contains(error)) else {
            continue;
        };
        let Some(line) = hidden.head().map(|head| quoted(&(head + &error))) else {
            continue;
        };
        if line.len() >= left {
            break;
        }
        left -= line.len() + 1;
        lines.push((hidden.at, line));
        known.insert(error);
    }
    lines
}

/// The hidden outputs of the newest `most` messages, ordered by how likely they are to be needed.
fn ranked<'l>(log: &'l Log, shown: &HashSet<usize>, most: usize) -> Vec<HiddenOutput<'l>> {
    // For each file name the newest call that contains it.
    let mut named: HashMap<&str, usize> = HashMap::new();
    let mut calls = HashSet::new();
    let mut found = Vec::new();
    for at in (0..log.len()).rev().take(most) {
        let Some(message) = log.get(at) else {
            continue;
        };
        // The log is walked backwards, so the first entry of a name is its newest call.
        for file in message.calls().flat_map(files) {
            named.entry(file).or_insert(at);
        }
        if shown.contains(&at) || !message.has_outputs() {
            continue;
        }
        let answered = answered_calls(log, at, message);
        for output in message.outputs() {
            let call = answered.get(output.call_id.as_str()).copied();
            // What it repeats is named by the line of the first output.
            if call.is_some_and(|call| is_retrieval(&call.name)) {
                continue;
            }
            // If a call was repeated, only the names in its newest output are current. An earlier
            // error still happened, even if it is gone now.
            let repeated = call.is_some_and(|call| !calls.insert((&call.name, &call.arguments)));
            found.push(HiddenOutput {
                at,
                output,
                call,
                was_run: purpose(call) == OutputPurpose::Running,
                repeated,
            });
        }
    }
    // The key parses arguments, so it is computed once per output.
    found.sort_by_cached_key(|hidden| {
        let files = hidden.call.into_iter().flat_map(files);
        let last = files.filter_map(|file| named.get(file)).max().copied();
        (
            hidden.was_run,
            Reverse(last.unwrap_or(hidden.at).max(hidden.at)),
        )
    });
    found
}

/// The file names, without folders, in the arguments of a call.
fn files(call: &Call) -> impl Iterator<Item = &str> {
    let names =
        names::names_in(&call.arguments).map(|name| name.rsplit('/').next().unwrap_or(name));
    names.filter(|name| name.contains('.'))
}

/// The calls that the outputs of the message at `output` answer, by id. Of equal ids, the nearest
/// counts.
///
/// A client chooses how many calls and outputs a message has, so each output must not search them.
fn answered_calls<'l>(
    log: &'l Log,
    output: usize,
    message: &'l Message,
) -> HashMap<&'l str, &'l Call> {
    let mut wanted: HashSet<&str> = message.outputs().map(|output| &*output.call_id).collect();
    let mut found = HashMap::new();
    let before = (output.saturating_sub(CALL_WITHIN)..output).rev();
    for earlier in before.filter_map(|at| log.get(at)) {
        // The calls usually stand right before their outputs.
        if wanted.is_empty() {
            break;
        }
        for call in earlier.calls() {
            work::step(1);
            if wanted.remove(call.id.as_str()) {
                found.insert(call.id.as_str(), call);
            }
        }
    }
    found
}

impl HiddenOutput<'_> {
    /// Its ref and its call.
    fn head(&self) -> Option<String> {
        let stored = self.output.stored.as_ref()?;
        let of_call = self.call.map_or_else(
            || "output".to_owned(),
            |call| format!("{} {}", call.name, brief_arguments(&call.arguments)),
        );
        Some(format!("{stored} {of_call}: "))
    }

    /// The first error near its end that is not a line of source code, otherwise the first one.
    fn error(&self) -> Option<String> {
        let text = self.output.text();
        let (mut first, mut reported) = (None, None);
        // A run prints its result at its end.
        facts::errors(last_bytes(&text, SEARCHED_BYTES), &mut |fact| {
            first.get_or_insert(fact.text);
            if !is_source_code(fact.text) {
                reported.get_or_insert(fact.text);
            }
        });
        let line = reported.or(first)?.trim();
        Some(first_bytes(line, LONGEST_ERROR).to_owned())
    }

    /// Its names within `left` bytes, after its ref and its call; none if there are none. Listed
    /// names count as known afterwards.
    fn line(&self, left: usize, room: u64, interest: &mut NameInterest) -> Option<String> {
        let head = self.head()?;
        let text = self.output.text();
        let most = usize::try_from(scale_to_room(NAMES_BYTES, room)).unwrap_or(usize::MAX);
        let share = (text.len() * NAMES_PERCENT / 100).min(most);
        let share = if self.was_run {
            share / RUN_SHARE
        } else {
            share
        };
        let share = share
            .max(LEAST_NAMES)
            .min(left.saturating_sub(head.len() + MARK_BYTES));
        let found = names::ranked_names(&text, &interest.shown);
        // A name without its line must say something on its own.
        let found = found.into_iter().filter(|name| names::stands_alone(name));
        let (used, others): (Vec<&str>, Vec<&str>) =
            found.partition(|name| interest.used.has(name));
        let listed = names::list_names(used.into_iter().chain(others), share);
        if listed.is_empty() {
            return None;
        }
        interest.shown.add(&listed);
        Some(quoted(&(head + &listed)))
    }
}

/// True for a statement that mentions an error. Test runners print the source around a failure
/// before the error itself.
fn is_source_code(line: &str) -> bool {
    let first = line.trim_start_matches(['>', ' ', '\t', '}']);
    STATEMENTS.iter().any(|word| first.starts_with(word))
}

/// The text arguments of a call on one line. Long ones are cut to their end, where a path has its
/// file name.
fn brief_arguments(arguments: &str) -> String {
    let mut values = Vec::new();
    match serde_json::from_str(arguments) {
        Ok(value) => collect(&value, &mut values),
        Err(_) => values.push(arguments.to_owned()),
    }
    let mut text = String::new();
    for value in values {
        let left = ARGUMENTS.saturating_sub(text.len());
        if left < LEAST_ARGUMENT {
            break;
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&last_part(&value, left));
    }
    text
}

fn collect(value: &Value, values: &mut Vec<String>) {
    match value {
        Value::String(text) => values.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, values)),
        Value::Object(members) => members.values().for_each(|member| collect(member, values)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The last `bytes` of a text without line breaks, with a mark if something is missing.
fn last_part(text: &str, bytes: usize) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match last_bytes(&flat, bytes) {
        end if end.len() == flat.len() => flat,
        end => format!("{CUT}{end}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_told_by_their_ends_in_few_bytes() {
        let long = format!(r#"{{"path":"src/{}/main.rs","limit":20}}"#, "x".repeat(90));
        let told = brief_arguments(&long);
        assert!(
            told.starts_with(CUT) && told.ends_with("/main.rs"),
            "{told}"
        );
        assert!(told.len() <= ARGUMENTS + CUT.len(), "{told}");
        assert_eq!(brief_arguments(r#"{"path":"a.rs","limit":20}"#), "a.rs");
        assert_eq!(brief_arguments("no JSON\nat all"), "no JSON at all");
    }

    #[test]
    fn output_belongs_to_the_nearest_call_with_its_id() {
        let call = |path: &str| Message::assistant("").with_call(Call::new("c", "read", path));
        let log: Log = [
            call("one.rs"),
            Message::output("c", "1"),
            call("two.rs"),
            Message::output("c", "2"),
            Message::output("unknown", "3"),
        ]
        .into_iter()
        .collect();
        let mut found = ranked(&log, &HashSet::new(), LOOKED_AT);
        found.sort_by_key(|hidden| hidden.at);
        let arguments = found
            .iter()
            .map(|hidden| Some(hidden.call?.arguments.as_str()));
        let arguments: Vec<Option<&str>> = arguments.collect();
        assert_eq!(arguments, [Some("one.rs"), Some("two.rs"), None]);
    }

    #[test]
    fn source_around_an_error_is_not_the_error() {
        let text = ">       raise ValueError(total)\nE       ValueError: 17 is too large\n";
        let output = Output::new("c1", text);
        let hidden = HiddenOutput {
            at: 0,
            output: &output,
            call: None,
            was_run: true,
            repeated: false,
        };
        assert_eq!(
            hidden.error().as_deref(),
            Some("E       ValueError: 17 is too large")
        );
    }
}
