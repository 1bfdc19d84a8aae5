//! Writes messages as text that a model can page through and search.

use std::fmt::Write as _;
use std::sync::Arc;

use trimtab_model::{Message, MessageKind, Part};

/// The number of refs per line of a list.
const REFS_PER_LINE: usize = 40;
/// The beginning of a line that lists the refs of outputs that were cut earlier.
const EARLIER_OUTPUTS: &str = "[trimtab: what was left out before is behind ";
/// The beginning of a line that lists the refs of messages that were removed earlier.
const EARLIER_MESSAGES: &str = "[trimtab: earlier messages are behind ";
/// The text before a ref in the call that reads it.
const REF_ARGUMENT: &str = "\"ref_id\":\"";

/// True for a message of ours that represents others.
pub(super) fn stands_for_messages(message: &Message) -> bool {
    matches!(
        message.meta.kind,
        Some(MessageKind::Summary | MessageKind::Note | MessageKind::ToolSummary)
    )
}

/// The refs of the retrieval calls in `text`.
pub(super) fn read_calls(text: &str) -> Vec<String> {
    let behind = text.split(REF_ARGUMENT).skip(1);
    let ids = behind.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()));
    // A text can contain anything, and only these characters are in ids.
    ids.filter(|id| is_ref(id)).collect()
}

fn is_ref(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// The refs of what was removed before the messages that are removed now.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct EarlierRefs {
    /// Outputs that these messages showed in part or not at all.
    pub(super) outputs: Vec<String>,
    /// All messages that were removed before.
    pub(super) messages: Vec<String>,
}

impl EarlierRefs {
    /// The lines that list them; empty if there are none. Those of messages are last, where
    /// [`earlier_messages`] finds them.
    pub(super) fn lines(&self) -> String {
        let mut lines = String::new();
        let lists = [
            (EARLIER_OUTPUTS, &self.outputs),
            (EARLIER_MESSAGES, &self.messages),
        ];
        for (beginning, refs) in lists {
            for refs in refs.chunks(REFS_PER_LINE) {
                // Writing into a String cannot fail.
                let _ = writeln!(lines, "{beginning}{}]", refs.join(", "));
            }
        }
        lines
    }
}

/// The refs of earlier messages in such a line; none for any other line.
pub(super) fn earlier_messages(line: &str) -> Vec<String> {
    let list = line.trim_end().strip_prefix(EARLIER_MESSAGES);
    let list = list.and_then(|list| list.strip_suffix(']'));
    let ids = list.into_iter().flat_map(|list| list.split(", "));
    ids.filter(|id| is_ref(id)).map(str::to_owned).collect()
}

/// The messages as text, each part after its speaker.
pub(super) fn readable(messages: &[&Arc<Message>]) -> String {
    let mut text = String::new();
    for message in messages {
        for part in &message.parts {
            // Writing into a String cannot fail.
            let _ = match part {
                Part::Text(said) => writeln!(text, "[{}] {}", message.role.as_str(), said.text),
                Part::Reasoning(thought) if thought.text.is_empty() => Ok(()),
                Part::Reasoning(thought) => writeln!(text, "[thought] {}", thought.text),
                Part::Call(call) => writeln!(text, "[call {}] {}", call.name, call.arguments),
                Part::Output(output) => {
                    let name = output.tool.as_deref().unwrap_or(&output.call_id);
                    writeln!(text, "[output {name}] {}", output.text())
                }
                Part::Media(_) | Part::Opaque(_) => {
                    writeln!(text, "[{}] (media)", message.role.as_str())
                }
            };
        }
    }
    text
}
