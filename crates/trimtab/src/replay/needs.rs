//! What each call of the real agent took from an old output.
//!
//! An identifier is a run of letters, digits and `_ . / @ : -`, eleven or more of them, with one of
//! `/ . _ -` inside: a path, a qualified name, a URL, an id. A call needs one if it stands in
//! the call's arguments and was found before that call in outputs older than the two newest,
//! and nowhere else: not in the two newest, not in anything that the user or the model said.
//! The model can only have had it from there.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use memchr::memmem;
use serde_json::Value;
use trimtab_model::{Message, Part};

/// An identifier has at least so many bytes.
const LENGTH: usize = 11;
/// So many of the newest outputs are not old.
const NEWEST: usize = 2;

/// One identifier that a call took from an old output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Position of the assistant message that holds the call.
    pub call: usize,
    /// The identifier.
    pub identifier: String,
    /// Positions of the messages whose outputs have it.
    pub sources: Vec<usize>,
}

/// Everything that the calls of `log` needed, in order.
///
/// ```
/// # use std::sync::Arc;
/// # use trimtab::model::{Call, Message};
/// # use trimtab::replay::needs::needs;
/// let call = |id: &str, arguments: &str| {
///     Arc::new(Message::assistant("").with_call(Call::new(id, "read", arguments)))
/// };
/// let output = |id: &str, text: &str| Arc::new(Message::output(id, text));
/// let log = [
///     Arc::new(Message::user("look around")),
///     call("1", "{}"), output("1", "src/parser/lexer.rs"),
///     call("2", "{}"), output("2", "nothing"),
///     call("3", "{}"), output("3", "nothing"),
///     call("4", r#"{"path": "src/parser/lexer.rs"}"#),
/// ];
/// let found = needs(&log);
/// assert_eq!((found[0].call, found[0].identifier.as_str()), (7, "src/parser/lexer.rs"));
/// assert_eq!(found[0].sources, [2]);
/// ```
pub fn needs(log: &[Arc<Message>]) -> Vec<Need> {
    let mut before = Before::default();
    let mut needs = Vec::new();
    for (at, message) in log.iter().enumerate() {
        let mut seen = HashSet::new();
        for call in message.calls() {
            let text = strings(&call.arguments);
            for identifier in identifiers(&text) {
                if seen.insert(identifier.to_owned()) {
                    needs.extend(before.need(at, identifier));
                }
            }
        }
        before.add(at, message);
    }
    needs
}

/// The identifiers in `text`.
pub fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_inside(c))
        .filter(|run| run.len() >= LENGTH && is_joined(run))
}

fn is_inside(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '@' | ':' | '-')
}

/// True if a joint stands inside the run, not at one of its ends.
fn is_joined(run: &str) -> bool {
    let inner = run.get(1..run.len() - 1).unwrap_or_default();
    inner.contains(['/', '.', '_', '-'])
}

/// What was said before a call.
#[derive(Default)]
struct Before {
    /// Outputs with the position of their message, oldest first.
    outputs: Vec<(usize, String)>,
    /// Everything else.
    said: String,
}

impl Before {
    fn need(&self, call: usize, identifier: &str) -> Option<Need> {
        let finder = memmem::Finder::new(identifier);
        let has = |text: &str| finder.find(text.as_bytes()).is_some();
        let old = self.outputs.len().saturating_sub(NEWEST);
        let (old, newest) = self.outputs.split_at_checked(old)?;
        if newest.iter().any(|(_, text)| has(text)) || has(&self.said) {
            return None;
        }
        let found = old.iter().filter(|(_, text)| has(text));
        let sources: Vec<usize> = found.map(|(at, _)| *at).collect();
        (!sources.is_empty()).then(|| Need {
            call,
            identifier: identifier.to_owned(),
            sources,
        })
    }

    fn add(&mut self, at: usize, message: &Message) {
        for part in &message.parts {
            match part {
                Part::Output(output) => self.outputs.push((at, output.text().into_owned())),
                Part::Text(text) => self.say(&text.text),
                Part::Reasoning(reasoning) => self.say(&reasoning.text),
                Part::Call(call) => {
                    self.say(&call.arguments);
                    self.say(&strings(&call.arguments));
                }
                Part::Media(_) | Part::Opaque(_) => {}
            }
        }
    }

    fn say(&mut self, text: &str) {
        self.said.push('\n');
        self.said.push_str(text);
    }
}

/// The strings in the arguments of a call, one on a line; the arguments themselves where they
/// are not JSON.
pub(super) fn strings(arguments: &str) -> Cow<'_, str> {
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
