//! Writes a window as the fields of a request, for callers that write requests instead of editing
//! them.

use std::borrow::Borrow;

use trimtab_model::{Dialect, Message, MessageMetadata, Part, RawJson, Role};
use trimtab_wire::{chat, messages, responses};

use super::system_summary::joined;

/// One field of a request body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestField {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: RawJson,
}

/// The fields of a conversation: `messages`, or `input`, or `system` and `messages`.
///
/// Our own metadata is left out, because providers reject unknown fields.
///
/// ```
/// use trimtab::model::{Dialect, Message};
/// use trimtab::request::fields;
///
/// let window = [Message::system("be brief"), Message::user("hello")];
/// let names = |dialect| fields(&window, dialect).iter().map(|f| f.name).collect::<Vec<_>>();
/// assert_eq!(names(Dialect::Chat), ["messages"]);
/// assert_eq!(names(Dialect::Messages), ["system", "messages"]);
/// ```
pub fn fields<M: Borrow<Message>>(window: &[M], dialect: Dialect) -> Vec<RequestField> {
    let mut bare: Vec<Message> = window
        .iter()
        .map(|message| without_metadata(message.borrow(), dialect))
        .collect();
    let field = |name, value| RequestField { name, value };
    match dialect {
        Dialect::Chat => {
            if let Some((place, system)) = joined(window.iter().map(Borrow::borrow)) {
                bare.splice(place..=place + 1, [without_metadata(&system, dialect)]);
            }
            let entries: Vec<RawJson> = bare.iter().flat_map(chat::write_message).collect();
            vec![field("messages", list(&entries))]
        }
        Dialect::Responses => {
            let bare: Vec<Message> = bare.iter().map(thoughtless).collect();
            let instructions = responses::write_instructions(&bare);
            let instructions = instructions.map(|text| field("instructions", RawJson::of(&text)));
            let input = field("input", list(&responses::write_input(&bare)));
            instructions.into_iter().chain([input]).collect()
        }
        Dialect::Messages => {
            let request = messages::write_request(&bare);
            let system = request.system.map(|system| field("system", system));
            let written = field("messages", list(&request.messages));
            system.into_iter().chain([written]).collect()
        }
    }
}

/// The message without the ids of its items, if it has no reasoning. If its reasoning was removed,
/// the provider would miss it for these ids.
fn thoughtless(message: &Message) -> Message {
    let thought = |part: &Part| matches!(part, Part::Reasoning(_));
    if message.role != Role::Assistant || message.parts.iter().any(thought) {
        return message.clone();
    }
    responses::without_ids(message)
}

/// The message without our own metadata.
pub fn without_metadata(message: &Message, dialect: Dialect) -> Message {
    let mut bare = message.clone();
    let meta = std::mem::take(&mut bare.meta);
    // How the client wrote the message is kept: it is part of its bytes.
    bare.meta = MessageMetadata {
        wire_role: meta.wire_role,
        content_list: meta.content_list,
        extra: meta.extra,
        ..MessageMetadata::default()
    };
    for part in &mut bare.parts {
        if let Part::Output(output) = part {
            output.stored = None;
            output.trimmed = false;
            output.tool = None;
            // The other dialects have no such field.
            output.is_error &= dialect == Dialect::Messages;
        }
    }
    bare
}

fn list(entries: &[RawJson]) -> RawJson {
    let entries: Vec<&str> = entries.iter().map(RawJson::as_str).collect();
    let list = format!("[{}]", entries.join(","));
    // Each entry is valid JSON, so the list is too.
    RawJson::parse(&list).unwrap_or_else(|_| RawJson::of(&()))
}
