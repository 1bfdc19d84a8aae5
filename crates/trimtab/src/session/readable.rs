//! Messages as text that a model can page through and search.

use std::fmt::Write as _;
use std::sync::Arc;

use trimtab_model::{Message, MessageKind, Part, Role};

/// How many refs stand on one line of a list.
const REFS_PER_LINE: usize = 40;
/// What a line begins with that lists the refs of what went before.
const EARLIER: &str = "[trimtab: what was left out before is behind ";
/// What stands before a ref in the call that reads it.
const REF_ARGUMENT: &str = "\"ref_id\":\"";

/// True for a message of ours that stands for others.
pub(super) fn stands_for_messages(message: &Message) -> bool {
    matches!(
        message.meta.kind,
        Some(MessageKind::Summary | MessageKind::Note | MessageKind::ToolSummary)
    )
}

/// The refs of the calls that `text` names.
pub(super) fn read_calls(text: &str) -> Vec<String> {
    let behind = text.split(REF_ARGUMENT).skip(1);
    let ids = behind.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()));
    ids.filter(|id| is_ref(id)).collect()
}

fn is_ref(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// The lines that list these refs, some on each; empty if there are none.
pub(super) fn list_of_refs(refs: &[String]) -> String {
    let line = |refs: &[String]| format!("{EARLIER}{}]\n", refs.join(", "));
    refs.chunks(REFS_PER_LINE).map(line).collect()
}

/// The refs that such a line lists; none if it is another line.
pub(super) fn listed_refs(line: &str) -> Vec<String> {
    let list = line.trim_end().strip_prefix(EARLIER);
    let list = list.and_then(|list| list.strip_suffix(']'));
    let ids = list.into_iter().flat_map(|list| list.split(", "));
    ids.filter(|id| is_ref(id)).map(str::to_owned).collect()
}

/// The messages as text, one after the other, each part behind who said it.
pub(super) fn readable(messages: &[&Arc<Message>]) -> String {
    let mut text = String::new();
    for message in messages {
        for part in &message.parts {
            // Writing into a String cannot fail.
            let _ = match part {
                Part::Text(said) => writeln!(text, "[{}] {}", speaker(message), said.text),
                Part::Reasoning(thought) if thought.text.is_empty() => Ok(()),
                Part::Reasoning(thought) => writeln!(text, "[thought] {}", thought.text),
                Part::Call(call) => writeln!(text, "[call {}] {}", call.name, call.arguments),
                Part::Output(output) => {
                    let name = output.tool.as_deref().unwrap_or(&output.call_id);
                    writeln!(text, "[output {name}] {}", output.text())
                }
                Part::Media(_) | Part::Opaque(_) => {
                    writeln!(text, "[{}] (media)", speaker(message))
                }
            };
        }
    }
    text
}

fn speaker(message: &Message) -> &'static str {
    match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}
