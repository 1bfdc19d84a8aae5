//! Finds what each call of the real agent took from an output.
//!
//! A call needs a text that occurs in its arguments, in an output before it, and nowhere else: not
//! in anything that the user or the model said, and not in an output of the other age. So the model
//! can only have it from there. Texts are identifiers (paths, qualified names, numbers) and whole
//! lines; the two newest outputs are fresh, the others are old.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use memchr::memmem;
use serde::Serialize;
use serde_json::Value;
use trimtab_model::{Message, Output, Part};

/// The minimum length of an identifier in bytes, even of digits only.
const SHORTEST_NAME: usize = 6;
/// The minimum length of a line in characters, without surrounding white space.
const SHORTEST_LINE: usize = 24;
/// The number of newest outputs that count as fresh.
pub(super) const FRESH_OUTPUTS: usize = 2;

/// The kind of text that a call needs, and the age of the output that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NeedKind {
    /// An identifier from an old output.
    OldName,
    /// A line from an old output.
    OldLine,
    /// An identifier from one of the two newest outputs.
    FreshName,
    /// A line from one of the two newest outputs.
    FreshLine,
}

/// A text that a call took from an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Position of the assistant message with the call.
    pub call: usize,
    /// The text.
    pub text: String,
    /// Its kind.
    pub kind: NeedKind,
    /// Position of the message with the newest output that has it.
    pub source: usize,
    /// The line of that output that contains it, without surrounding white space.
    pub line: String,
}

/// All needs of the calls of `log`, in order.
///
/// ```
/// # use std::sync::Arc;
/// # use trimtab::model::{Call, Message};
/// # use trimtab::replay::needs::{NeedKind, needs};
/// let call = |id: &str, arguments: &str| {
///     Arc::new(Message::assistant("").with_call(Call::new(id, "read", arguments)))
/// };
/// let output = |id: &str, text: &str| Arc::new(Message::output(id, text));
/// let log = [
///     Arc::new(Message::user("look around")),
///     call("1", "{}"), output("1", "src/lexer.rs"),
///     call("2", "{}"), output("2", "nothing"),
///     call("3", "{}"), output("3", "nothing"),
///     call("4", r#"{"path": "src/lexer.rs"}"#),
/// ];
/// let found = needs(&log);
/// assert_eq!((found[0].call, found[0].text.as_str()), (7, "src/lexer.rs"));
/// assert_eq!((found[0].kind, found[0].source), (NeedKind::OldName, 2));
/// ```
pub fn needs(log: &[Arc<Message>]) -> Vec<Need> {
    let mut before = EarlierOutput::default();
    let mut needs = Vec::new();
    for (at, message) in log.iter().enumerate() {
        if message.has_calls() {
            before.add_needs(at, message, &mut needs);
        }
        before.add(at, message);
    }
    needs
}

/// The identifiers in `text`: runs of letters, digits and `_ . / : @ # -` that begin and end with a
/// letter, a digit or `_`, and contain a digit or one of `/ _ .`.
pub fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    let is_edge = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_inside = move |c: char| is_edge(c) || matches!(c, '.' | '/' | ':' | '@' | '#' | '-');
    let runs = text.split(move |c: char| !is_inside(c));
    let runs = runs.map(move |run| run.trim_matches(|c: char| !is_edge(c)));
    runs.filter(|run| {
        let joined = |c: char| c.is_ascii_digit() || matches!(c, '/' | '_' | '.');
        run.len() >= SHORTEST_NAME && run.contains(joined)
    })
}

/// The strings in the arguments of a message's calls, one per line; the arguments themselves if
/// they are not JSON.
pub(super) fn argument_strings(message: &Message) -> String {
    let strings: Vec<String> = message
        .calls()
        .map(|call| strings(&call.arguments).into_owned())
        .collect();
    strings.join("\n")
}

/// The arguments of a message's calls, as they were sent.
pub(super) fn raw_arguments(message: &Message) -> String {
    let arguments: Vec<&str> = message
        .calls()
        .map(|call| call.arguments.as_str())
        .collect();
    arguments.join("\n")
}

/// Everything before a call: the outputs, and everything else that was said.
#[derive(Default)]
struct EarlierOutput {
    /// Outputs with the position of their message, oldest first.
    outputs: Vec<(usize, String)>,
    /// All other texts.
    other_text: String,
    /// The ids of earlier calls.
    calls: HashSet<String>,
}

impl EarlierOutput {
    fn add_needs(&self, call: usize, message: &Message, needs: &mut Vec<Need>) {
        let written = argument_strings(message);
        // Escapes of JSON would be glued to the names next to them.
        let plain = raw_arguments(message)
            .replace("\\n", "\n")
            .replace("\\\"", "\"");
        // A set, so that a text that a call uses twice is one need. Its order makes reports
        // reproducible.
        let names: BTreeSet<&str> = identifiers(&plain).collect();
        let lines = written.lines().map(str::trim);
        let lines = lines.filter(|line| line.chars().count() >= SHORTEST_LINE);
        let lines: BTreeSet<&str> = lines.collect();
        let kinds = [
            (names, NeedKind::OldName, NeedKind::FreshName),
            (lines, NeedKind::OldLine, NeedKind::FreshLine),
        ];
        for (texts, old, fresh) in kinds {
            for text in texts {
                needs.extend(self.need(call, text, [old, fresh]));
            }
        }
    }

    /// The need of a text, if only old or only fresh outputs contain it.
    fn need(&self, call: usize, text: &str, [old, fresh]: [NeedKind; 2]) -> Option<Need> {
        let finder = memmem::Finder::new(text);
        let has = |said: &str| finder.find(said.as_bytes()).is_some();
        if has(&self.other_text) {
            return None;
        }
        let older = self.outputs.len().saturating_sub(FRESH_OUTPUTS);
        let (older, newest) = self.outputs.split_at_checked(older)?;
        let newest_with = |outputs: &[(usize, String)]| {
            let found = outputs.iter().rev().find(|(_, output)| has(output));
            found.map(|(at, output)| (*at, line_with(output, text)))
        };
        let (found, kind) = match (newest_with(older), newest_with(newest)) {
            (Some(found), None) => (found, old),
            (None, Some(found)) => (found, fresh),
            _ => return None,
        };
        Some(Need {
            call,
            text: text.to_owned(),
            kind,
            source: found.0,
            line: found.1,
        })
    }

    fn add(&mut self, at: usize, message: &Message) {
        for part in &message.parts {
            match part {
                // No provider accepts an output without its call, so no window can show it.
                Part::Output(output) if !self.calls.contains(&output.call_id) => {}
                Part::Output(output) => self.outputs.push((at, Output::text(output).into_owned())),
                Part::Text(text) => self.say(&text.text),
                Part::Reasoning(reasoning) => self.say(&reasoning.text),
                Part::Call(call) => {
                    self.calls.insert(call.id.clone());
                    self.say(&call.arguments);
                    self.say(&strings(&call.arguments));
                }
                Part::Media(_) | Part::Opaque(_) => {}
            }
        }
    }

    fn say(&mut self, text: &str) {
        self.other_text.push('\n');
        self.other_text.push_str(text);
    }
}

fn line_with(output: &str, text: &str) -> String {
    let line = output.lines().find(|line| line.contains(text));
    line.unwrap_or_default().trim().to_owned()
}

fn strings(arguments: &str) -> Cow<'_, str> {
    let Ok(value) = serde_json::from_str::<Value>(arguments) else {
        return Cow::Borrowed(arguments);
    };
    let mut found = String::new();
    collect(&value, &mut found);
    Cow::Owned(found)
}

fn collect(value: &Value, found: &mut String) {
    match value {
        Value::String(text) => {
            found.push_str(text);
            found.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(members) => members.values().for_each(|member| collect(member, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
