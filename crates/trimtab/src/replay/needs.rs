//! Finds what each call of the real agent took from an output.
//!
//! A call needs a text that occurs in its arguments, in an output before it, and nowhere else: not
//! in anything that the user or the model said, and not in an output of the other age. So the model
//! can only have it from there. Texts are identifiers (paths, qualified names, numbers) and whole
//! lines; the two newest outputs are fresh, the others are old.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::Arc;

use aho_corasick::AhoCorasick;
use serde::Serialize;
use serde_json::Value;
use trimtab_model::{Message, Output, Part};

/// The minimum length of an identifier in bytes, even of digits only.
const SHORTEST_NAME: usize = 6;
/// The minimum length of a line in characters, without surrounding white space.
const SHORTEST_LINE: usize = 24;
/// The number of newest outputs that count as fresh.
pub(super) const FRESH_OUTPUTS: usize = 2;
/// The bytes of texts that are searched for at once. The search takes many times as much memory.
const MOST_AT_ONCE: usize = 1 << 20;

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

impl NeedKind {
    fn is_line(self) -> bool {
        matches!(self, Self::OldLine | Self::FreshLine)
    }
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
    let said = said(log);
    let used: Vec<UsedText> = log.iter().enumerate().flat_map(used_texts).collect();
    let mut texts: Vec<&str> = used.iter().map(|used| used.text.as_str()).collect();
    texts.sort_unstable();
    texts.dedup();
    let mut needs = Vec::new();
    let mut texts = texts.as_slice();
    while !texts.is_empty() {
        let mut bytes = 0;
        let fits = texts.iter().take_while(|text| {
            let is_first = bytes == 0;
            bytes += text.len();
            is_first || bytes <= MOST_AT_ONCE
        });
        let (some, rest) = texts.split_at(fits.count());
        needs.extend(
            TextSearch::new(some)
                .into_iter()
                .flat_map(|mut search| search.needs(&said, &used)),
        );
        texts = rest;
    }
    needs.sort_by(|one: &Need, other| {
        let order = |need: &Need| (need.call, need.kind.is_line());
        order(one)
            .cmp(&order(other))
            .then_with(|| one.text.cmp(&other.text))
    });
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

/// A text that a call uses.
#[derive(Clone)]
struct UsedText {
    /// Position of the message with the call.
    call: usize,
    text: String,
    is_line: bool,
}

/// The texts that the calls of a message use, each once.
fn used_texts((call, message): (usize, &Arc<Message>)) -> Vec<UsedText> {
    if !message.has_calls() {
        return Vec::new();
    }
    let written = argument_strings(message);
    // Escapes of JSON would be glued to the names next to them.
    let plain = raw_arguments(message)
        .replace("\\n", "\n")
        .replace("\\\"", "\"");
    let names: BTreeSet<&str> = identifiers(&plain).collect();
    let lines = written.lines().map(str::trim);
    let lines = lines.filter(|line| line.chars().count() >= SHORTEST_LINE);
    let lines: BTreeSet<&str> = lines.collect();
    let of_kind = |texts: BTreeSet<&str>, is_line| {
        let used = texts.into_iter().map(move |text| UsedText {
            call,
            text: text.to_owned(),
            is_line,
        });
        used.collect::<Vec<_>>()
    };
    [of_kind(names, false), of_kind(lines, true)].concat()
}

/// A text in a conversation.
struct SaidText<'a> {
    /// Position of its message.
    at: usize,
    text: Cow<'a, str>,
    is_output: bool,
}

/// All texts of a conversation, in order.
fn said(log: &[Arc<Message>]) -> Vec<SaidText<'_>> {
    let mut said = Vec::new();
    let mut calls: HashSet<&str> = HashSet::new();
    for (at, message) in log.iter().enumerate() {
        let mut say = |text, is_output| {
            said.push(SaidText {
                at,
                text,
                is_output,
            });
        };
        for part in &message.parts {
            match part {
                // No provider accepts an output without its call, so no window can show it.
                Part::Output(output) if !calls.contains(output.call_id.as_str()) => {}
                Part::Output(output) => say(Output::text(output), true),
                Part::Text(text) => say(Cow::Borrowed(&text.text), false),
                Part::Reasoning(reasoning) => say(Cow::Borrowed(&reasoning.text), false),
                Part::Call(call) => {
                    calls.insert(&call.id);
                    say(Cow::Borrowed(&call.arguments), false);
                    say(strings(&call.arguments), false);
                }
                Part::Media(_) | Part::Opaque(_) => {}
            }
        }
    }
    said
}

/// Searches a conversation for several texts at once, in one pass.
struct TextSearch<'t> {
    texts: &'t [&'t str],
    finder: AhoCorasick,
    found: Vec<FoundText>,
}

/// Where a text was found so far.
#[derive(Clone, Default)]
struct FoundText {
    /// True if the user or the model said it.
    is_said: bool,
    /// The newest outputs with it, by their numbers: one more than can be fresh.
    outputs: VecDeque<usize>,
}

impl<'t> TextSearch<'t> {
    /// None if there are too many texts for one search, which [`MOST_AT_ONCE`] prevents.
    fn new(texts: &'t [&'t str]) -> Option<Self> {
        Some(Self {
            texts,
            finder: AhoCorasick::new(texts).ok()?,
            found: vec![FoundText::default(); texts.len()],
        })
    }

    /// The needs of these texts.
    fn needs(&mut self, said: &[SaidText<'_>], used: &[UsedText]) -> Vec<Need> {
        let mut needs = Vec::new();
        let mut outputs: Vec<&SaidText<'_>> = Vec::new();
        let mut used = used.iter().peekable();
        for one in said {
            // A call needs what was there before its message.
            while let Some(used) = used.next_if(|used| used.call <= one.at) {
                needs.extend(self.need(used, &outputs));
            }
            let number = outputs.len();
            for found in self.finder.find_overlapping_iter(one.text.as_bytes()) {
                let Some(found) = self.found.get_mut(found.pattern().as_usize()) else {
                    continue;
                };
                if !one.is_output {
                    found.is_said = true;
                } else if found.outputs.back() != Some(&number) {
                    found.outputs.push_back(number);
                    if found.outputs.len() > FRESH_OUTPUTS + 1 {
                        found.outputs.pop_front();
                    }
                }
            }
            if one.is_output {
                outputs.push(one);
            }
        }
        needs
    }

    /// The need of a text, if only old or only fresh outputs contain it.
    fn need(&self, used: &UsedText, outputs: &[&SaidText<'_>]) -> Option<Need> {
        let number = self.texts.binary_search(&used.text.as_str()).ok()?;
        let found = self.found.get(number).filter(|found| !found.is_said)?;
        let older = outputs.len().saturating_sub(FRESH_OUTPUTS);
        let newest = found.outputs.back()?;
        let is_fresh = *newest >= older;
        // In outputs of both ages it proves nothing.
        if is_fresh && found.outputs.iter().any(|output| *output < older) {
            return None;
        }
        let source = outputs.get(*newest)?;
        Some(Need {
            call: used.call,
            text: used.text.clone(),
            kind: match (is_fresh, used.is_line) {
                (false, false) => NeedKind::OldName,
                (false, true) => NeedKind::OldLine,
                (true, false) => NeedKind::FreshName,
                (true, true) => NeedKind::FreshLine,
            },
            source: source.at,
            line: line_with(&source.text, &used.text),
        })
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
