//! The largest and the repeated outputs of a conversation.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{DefaultHasher, Hasher};

use serde::Serialize;
use serde_json::Value;
use trimtab_model::{Call, Message};

use super::report::MessagePositions;
use crate::ui::clipped::clipped;
use crate::verbs::chat::text::on_one_line;

/// How many of the largest outputs are shown.
const LARGEST: usize = 10;
/// The maximum length of a call's description.
const GIST: usize = 200;

/// A summary of the outputs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OutputSummary {
    /// Estimated tokens of all outputs.
    pub tokens: u64,
    /// The largest outputs, in descending order.
    pub largest: Vec<LargeOutput>,
    /// The number of outputs that repeat an earlier one verbatim.
    pub repeated: usize,
    /// Estimated tokens of those.
    pub repeated_tokens: u64,
    /// The largest repetitions, in descending order.
    pub repeats: Vec<RepeatedOutput>,
}

/// A large output.
#[derive(Clone, Debug, Serialize)]
pub struct LargeOutput {
    /// Index of its message.
    pub message: usize,
    /// The tool that produced it.
    pub tool: String,
    /// The command or path of the call, on one line.
    pub call: String,
    /// Bytes of its text.
    pub bytes: usize,
    /// Estimated tokens.
    pub tokens: u64,
    /// Share of the window's tokens, from 0 to 1.
    pub share: f64,
}

/// An output that repeats an earlier one.
#[derive(Clone, Debug, Serialize)]
pub struct RepeatedOutput {
    /// Index of its message.
    pub message: usize,
    /// The index of the message with the first copy.
    pub first: usize,
    /// The tool that produced it.
    pub tool: String,
    /// The command or path of the call, on one line.
    pub call: String,
    /// Estimated tokens.
    pub tokens: u64,
}

/// Analyses the outputs of `window` with `weights` tokens each, of `total` tokens in all.
pub fn summarise(
    window: &[&Message],
    weights: &[u64],
    positions: &MessagePositions,
    total: u64,
) -> OutputSummary {
    let mut weights = weights.iter().copied();
    let mut found = OutputSummary::default();
    let mut called: HashMap<&str, &Call> = HashMap::new();
    let mut seen = SeenOutputs::default();
    for (index, message) in window.iter().enumerate() {
        // Later calls with the same id replace earlier ones, because ids repeat in real logs.
        called.extend(message.calls().map(|call| (call.id.as_str(), call)));
        let position = positions.in_transcript(index);
        for output in message.outputs() {
            let call = called.get(output.call_id.as_str()).copied();
            let named = output.tool.as_deref();
            let tool = named.or_else(|| call.map(|call| call.name.as_str()));
            let tool = tool.unwrap_or("unknown");
            let text = output.text();
            let tokens = weights.next().unwrap_or(0);
            found.tokens += tokens;
            keep_largest(&mut found.largest, tokens, || LargeOutput {
                message: position,
                tool: tool.to_owned(),
                call: call.map(gist).unwrap_or_default(),
                bytes: text.len(),
                tokens,
                share: tokens as f64 / total.max(1) as f64,
            });
            if let Some(first) = seen.first_copy(position, text) {
                found.repeat(tokens, || RepeatedOutput {
                    message: position,
                    first,
                    tool: tool.to_owned(),
                    call: call.map(gist).unwrap_or_default(),
                    tokens,
                });
            }
        }
    }
    found
}

impl OutputSummary {
    fn repeat(&mut self, tokens: u64, repeat: impl FnOnce() -> RepeatedOutput) {
        self.repeated += 1;
        self.repeated_tokens += tokens;
        // Keep the list sorted and short, so that huge transcripts stay cheap.
        let at = self.repeats.partition_point(|other| other.tokens >= tokens);
        if at < LARGEST {
            self.repeats.insert(at, repeat());
            self.repeats.truncate(LARGEST);
        }
    }
}

fn keep_largest(largest: &mut Vec<LargeOutput>, tokens: u64, large: impl FnOnce() -> LargeOutput) {
    let at = largest.partition_point(|other| other.tokens >= tokens);
    if at < LARGEST {
        largest.insert(at, large());
        largest.truncate(LARGEST);
    }
}

/// A call on one line: its command, its path, or else its arguments.
fn gist(call: &Call) -> String {
    const DESCRIPTIVE: [&str; 12] = [
        "command",
        "cmd",
        "script",
        "file_path",
        "filePath",
        "path",
        "file",
        "notebook_path",
        "pattern",
        "query",
        "url",
        "description",
    ];
    let arguments: Option<Value> = serde_json::from_str(&call.arguments).ok();
    let described = DESCRIPTIVE
        .iter()
        .find_map(|name| match arguments.as_ref()?.get(name)? {
            Value::String(text) => Some(text.clone()),
            // A command as a list of words.
            Value::Array(words) => {
                let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
                words.map(|words| words.join(" "))
            }
            _ => None,
        });
    let described = described.unwrap_or_else(|| call.arguments.clone());
    clipped(&on_one_line(&described), GIST).into_owned()
}

/// Finds repeated outputs.
///
/// Most outputs differ in length or in a few bytes, so only outputs that agree in both are hashed
/// in full.
#[derive(Default)]
struct SeenOutputs<'a> {
    alike: HashMap<(usize, u64), SimilarOutputs<'a>>,
    equal: HashMap<u64, Vec<(usize, Cow<'a, str>)>>,
}

/// Outputs with the same length and sample.
enum SimilarOutputs<'a> {
    One(usize, Cow<'a, str>),
    /// They are stored in `equal`.
    Several,
}

impl<'a> SeenOutputs<'a> {
    /// The position of the first copy of `text`; records `position` if there is none.
    fn first_copy(&mut self, position: usize, text: Cow<'a, str>) -> Option<usize> {
        if text.is_empty() {
            return None;
        }
        match self.alike.entry((text.len(), tail_hash(&text))) {
            Entry::Vacant(new) => {
                new.insert(SimilarOutputs::One(position, text));
                return None;
            }
            Entry::Occupied(mut known) => {
                // The first text with this length and sample is hashed only now that a second one
                // has appeared.
                if let SimilarOutputs::One(at, earlier) = known.insert(SimilarOutputs::Several) {
                    self.equal
                        .entry(hash(&earlier))
                        .or_default()
                        .push((at, earlier));
                }
            }
        }
        let same = self.equal.entry(hash(&text)).or_default();
        let found = same.iter().find(|(_, earlier)| *earlier == text);
        // Hashes can collide, so compare the texts.
        if let Some(&(first, _)) = found {
            return Some(first);
        }
        same.push((position, text));
        None
    }
}

/// A hash of a few bytes from the end, where outputs of one tool differ most.
fn tail_hash(text: &str) -> u64 {
    let tail = text.as_bytes().iter().rev().take(64);
    let mut hasher = DefaultHasher::new();
    tail.for_each(|&byte| hasher.write_u8(byte));
    hasher.finish()
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    hasher.finish()
}
