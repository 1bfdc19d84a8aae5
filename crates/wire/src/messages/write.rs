//! Writes a Messages request.

use trimtab_model::{ExtraFields, Message, Part, RawJson, Role};

use super::part;
use crate::json::{ObjectWriter, array, quoted};
use crate::spelling_marks;

/// The fields of a request that contain the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessagesFields {
    /// The `system` field, if it is not empty.
    pub system: Option<RawJson>,
    /// The `messages` field.
    pub messages: Vec<RawJson>,
}

/// Writes a conversation: leading system messages become `system`, and adjacent outputs go into one
/// user message.
pub fn write_request(messages: &[Message]) -> MessagesFields {
    let leading = messages
        .iter()
        .take_while(|message| message.role == Role::System)
        .count();
    let (system, rest) = messages.split_at(leading);
    MessagesFields {
        system: write_system(system),
        messages: write_list(rest),
    }
}

/// Writes messages as entries of the `messages` field, including system messages.
pub(crate) fn write_list(messages: &[Message]) -> Vec<RawJson> {
    let mut written: Vec<MessageDraft> = Vec::new();
    for message in messages {
        match written.last_mut() {
            Some(last) if last.takes(message) => last.join(message),
            _ => written.push(MessageDraft::new(message)),
        }
    }
    written.into_iter().map(MessageDraft::end).collect()
}

fn write_system(system: &[Message]) -> Option<RawJson> {
    let as_list = system.iter().any(|message| message.meta.content_list);
    let parts: Vec<&Part> = system.iter().flat_map(|message| &message.parts).collect();
    let json = match parts.as_slice() {
        [] if as_list => "[]".to_owned(),
        [] => return None,
        [Part::Text(text)] if !as_list && text.extra.is_empty() => quoted(&text.text),
        many => array(many.iter().map(|part| part::write(part))),
    };
    RawJson::parse(&json).ok()
}

/// One message of the request under construction.
struct MessageDraft {
    role: &'static str,
    outputs: bool,
    /// The content, if it is a string.
    plain: Option<String>,
    parts: Vec<String>,
    stop_reason: Option<String>,
    extra: ExtraFields,
}

impl MessageDraft {
    fn new(message: &Message) -> Self {
        let role = match message.role {
            Role::System => "system",
            Role::Assistant => "assistant",
            Role::User | Role::Tool => "user",
        };
        let plain = match message.parts.as_slice() {
            [Part::Text(text)] if !message.meta.content_list && part::is_plain(&message.parts) => {
                Some(quoted(&text.text))
            }
            _ => None,
        };
        Self {
            role,
            outputs: message.role == Role::Tool,
            plain,
            parts: write_parts(message),
            stop_reason: message.meta.stop_reason.clone(),
            extra: message.meta.extra.clone(),
        }
    }

    /// True if `next` belongs in this message: it was read from it, or both contain outputs of a
    /// dialect with one message per output.
    fn takes(&self, next: &Message) -> bool {
        let read_as_one = spelling_marks::has(&next.meta.extra, spelling_marks::JOINED);
        // The mark says that the outputs were read from a message of their own.
        let own_message = next.meta.wire_role.as_deref() == Some("user");
        let outputs = self.outputs && next.role == Role::Tool && !own_message;
        self.role == "user" && (read_as_one || outputs)
    }

    fn join(&mut self, next: &Message) {
        // A string cannot take more parts.
        self.plain = None;
        self.outputs &= next.role == Role::Tool;
        self.parts.extend(write_parts(next));
    }

    fn end(self) -> RawJson {
        let content = self.plain.unwrap_or_else(|| array(&self.parts));
        ObjectWriter::new()
            .text("role", self.role)
            .raw("content", &content)
            .maybe("stop_reason", self.stop_reason.as_deref().map(quoted))
            .extra(&self.extra, &[])
            .end_raw()
    }
}

fn write_parts(message: &Message) -> Vec<String> {
    message.parts.iter().map(part::write).collect()
}
