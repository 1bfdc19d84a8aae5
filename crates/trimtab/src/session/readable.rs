//! Messages as text that a model can page through and search.

use std::fmt::Write as _;
use std::sync::Arc;

use trimtab_model::{Message, Part, Role};

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
