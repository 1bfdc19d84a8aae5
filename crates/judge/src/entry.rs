//! Messages as the measure reads them.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use trimtab::model::{Message, Part};

/// The tokens that a message costs besides its text.
const OVERHEAD: u64 = 8;

/// The texts of a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The id of the call that it answers, if it is an output.
    pub(crate) call_id: Option<String>,
    /// What it says, or the output.
    pub(crate) text: String,
    /// The arguments of its calls, as they were sent.
    pub(crate) arguments: String,
    /// The strings in these arguments.
    pub(crate) written: String,
}

impl Entry {
    /// Reads a message.
    pub(crate) fn of(message: &Message) -> Self {
        let mut texts: Vec<String> = Vec::new();
        let (mut arguments, mut written) = (Vec::new(), Vec::new());
        let mut call_id = None;
        for part in &message.parts {
            match part {
                Part::Text(text) => texts.push(text.text.clone()),
                Part::Output(output) => {
                    texts.push(output.text().into_owned());
                    call_id = Some(output.call_id.clone());
                }
                Part::Call(call) => {
                    arguments.push(call.arguments.as_str());
                    match serde_json::from_str(&call.arguments) {
                        Ok(value) => collect_strings(&value, &mut written),
                        Err(_) => written.push(call.arguments.clone()),
                    }
                }
                Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => {}
            }
        }
        Self {
            call_id,
            text: texts.join("\n"),
            arguments: arguments.join("\n"),
            written: written.join("\n"),
        }
    }

    /// Its tokens: a quarter of the bytes, and a constant.
    pub(crate) fn tokens(&self) -> u64 {
        (self.text.len() + self.arguments.len()) as u64 / 4 + OVERHEAD
    }

    /// True if it is an output.
    pub(crate) fn is_output(&self) -> bool {
        self.call_id.is_some()
    }
}

fn collect_strings(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect_strings(item, found)),
        Value::Object(members) => members
            .values()
            .for_each(|item| collect_strings(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Reads each message once.
#[derive(Default)]
pub(crate) struct Entries {
    // The message is kept, so that no other can get the same address.
    known: HashMap<*const Message, (Arc<Message>, Arc<Entry>)>,
}

impl Entries {
    /// The entries of a window.
    pub(crate) fn of(&mut self, messages: &[Arc<Message>]) -> Vec<Arc<Entry>> {
        let entries = messages.iter().map(|message| {
            let known = self.known.entry(Arc::as_ptr(message));
            let read = || (Arc::clone(message), Arc::new(Entry::of(message)));
            Arc::clone(&known.or_insert_with(read).1)
        });
        entries.collect()
    }
}
