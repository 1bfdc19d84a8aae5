//! Checks whether a provider would accept a window, on the bytes that would be sent.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use trimtab_model::{Dialect, Message, Role};
use trimtab_wire::scan::BodyScan;
use trimtab_wire::validate::validate;

use crate::request::{RequestField, fields};

/// Writes windows as request bodies and validates them.
///
/// The common part of two windows is written once: a window is written in groups, an answer of the
/// model with what follows it, and a known group is not written again.
pub(super) struct WindowJudge {
    dialect: Dialect,
    /// The groups by the addresses of their messages. The messages are kept, so that no other can
    /// get the same address.
    known: HashMap<Vec<*const Message>, WrittenGroup>,
    body: String,
}

struct WrittenGroup {
    /// Keeps the addresses taken.
    _messages: Vec<Arc<Message>>,
    fields: Vec<RequestField>,
}

impl WindowJudge {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            known: HashMap::new(),
            body: String::new(),
        }
    }

    /// The first fault of a window, as text.
    pub(super) fn fault(&mut self, window: &[Arc<Message>]) -> Option<String> {
        self.write(window);
        match BodyScan::new(self.body.as_bytes(), self.dialect) {
            Ok(scan) => validate(&scan).first().map(ToString::to_string),
            Err(why) => Some(why.to_string()),
        }
    }

    /// Writes the body: the lists of all groups as one.
    fn write(&mut self, window: &[Arc<Message>]) {
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        body.push('{');
        let list = match self.dialect {
            Dialect::Responses => "input",
            Dialect::Chat | Dialect::Messages => "messages",
        };
        let mut elements = String::new();
        for group in groups(window) {
            for field in &self.group(group).fields {
                if field.name == list {
                    add(&mut elements, inside(field.value.as_str()));
                } else {
                    // Writing into a String cannot fail.
                    let _ = write!(body, "\"{}\":{},", field.name, field.value.as_str());
                }
            }
        }
        let _ = write!(body, "\"{list}\":[{elements}]}}");
        self.body = body;
    }

    fn group(&mut self, group: &[Arc<Message>]) -> &WrittenGroup {
        // Addresses instead of contents: comparing megabytes of text with every call would cost
        // more than writing them.
        let key = group.iter().map(Arc::as_ptr).collect();
        self.known.entry(key).or_insert_with(|| WrittenGroup {
            fields: fields(group, self.dialect),
            _messages: group.to_vec(),
        })
    }
}

/// Runs of messages that no dialect merges with their neighbours. Leading system messages are in
/// the first one.
fn groups(window: &[Arc<Message>]) -> impl Iterator<Item = &[Arc<Message>]> {
    let is_answer = |message: &Arc<Message>| message.role == Role::Assistant;
    window.chunk_by(move |_, next| !is_answer(next))
}

/// The elements of a list without its brackets.
fn inside(list: &str) -> &str {
    let inner = list
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    inner.unwrap_or_default()
}

fn add(elements: &mut String, more: &str) {
    if !elements.is_empty() && !more.is_empty() {
        elements.push(',');
    }
    elements.push_str(more);
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_model::Call;

    #[test]
    fn a_window_is_judged_as_it_would_be_written_in_one_go() {
        let window: Vec<Arc<Message>> = [
            Message::system("be brief"),
            Message::user("look"),
            Message::assistant("").with_call(Call::new("c1", "read", "{}")),
            Message::output("c1", "text"),
            Message::user("and?"),
            Message::assistant("that is all"),
        ]
        .map(Arc::new)
        .into();
        for dialect in Dialect::ALL {
            let mut judge = WindowJudge::new(dialect);
            assert_eq!(judge.fault(&window), None, "{dialect}");
            let whole = fields(&window, dialect);
            for field in whole {
                let named = format!("\"{}\":{}", field.name, field.value.as_str());
                assert!(judge.body.contains(&named), "{dialect}: {}", judge.body);
            }
            let open = &window[..3];
            let fault = judge.fault(open).unwrap();
            assert!(fault.contains("c1"), "{dialect}: {fault}");
        }
    }
}
