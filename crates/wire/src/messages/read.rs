//! Reads a message of a Messages request.

use serde_json::value::RawValue;
use trimtab_model::{Message, Part, Role};

use super::part;
use crate::json::{self, JsonFields, JsonType, type_of};
use crate::spelling_marks;

/// Reads one message, which becomes several if it mixes outputs and text.
///
/// Fails only if `json` is not an object.
pub fn read_message(json: &str) -> Result<Vec<Message>, serde_json::Error> {
    serde_json::from_str::<JsonFields>(json).map(from_fields)
}

/// Reads the `system` field of a request: a string or a list of parts.
pub fn read_system(json: &str) -> Result<Message, serde_json::Error> {
    let raw: &RawValue = serde_json::from_str(json)?;
    Ok(system(raw))
}

/// Reads the `system` field of a request.
pub(crate) fn system(raw: &RawValue) -> Message {
    let (parts, as_list) = content(raw);
    whole(Role::System, parts, as_list)
}

/// Reads one message from its fields.
pub(crate) fn from_fields(mut fields: JsonFields<'_>) -> Vec<Message> {
    let content = fields.take("content").map(content);
    let spelled = fields.take_string("role").unwrap_or_default();
    let role = match spelled.as_str() {
        "assistant" => Role::Assistant,
        "system" | "developer" => Role::System,
        _ => Role::User,
    };
    let (parts, as_list) = content.unwrap_or_default();
    let mut messages = of_role(role, parts, as_list);
    if let Some(first) = messages.first_mut() {
        if spelled != first.role.as_str() {
            first.meta.wire_role = Some(spelled);
        }
        // The fields of the entry go to its first message, and are written once.
        first.meta.stop_reason = fields.take_string("stop_reason");
        first.meta.extra.extend(fields.into_extra());
    }
    messages
}

/// Reads the content of a message of `role`.
pub(crate) fn from_content(role: Role, raw: &RawValue) -> Vec<Message> {
    let (parts, as_list) = content(raw);
    of_role(role, parts, as_list)
}

fn of_role(role: Role, parts: Vec<Part>, as_list: bool) -> Vec<Message> {
    if role == Role::User {
        split(parts, as_list)
    } else {
        vec![whole(role, parts, as_list)]
    }
}

fn content(raw: &RawValue) -> (Vec<Part>, bool) {
    match type_of(raw) {
        JsonType::Text => (
            json::string(raw).map(Part::text).into_iter().collect(),
            false,
        ),
        JsonType::List => (part::read_list(raw), true),
        _ => (vec![part::read(raw)], false),
    }
}

fn whole(role: Role, parts: Vec<Part>, as_list: bool) -> Message {
    let mut message = Message::new(role, parts);
    message.meta.content_list = as_list && part::is_plain(&message.parts);
    message
}

/// Splits a user message at the borders of outputs and other parts.
fn split(parts: Vec<Part>, as_list: bool) -> Vec<Message> {
    if !parts.iter().any(|part| part.as_output().is_some()) {
        return vec![whole(Role::User, parts, as_list)];
    }
    // The model has a role of its own for outputs, while this dialect sends them as the user. The
    // order of the parts stays, so that writing gives the same entry.
    let mut messages: Vec<Message> = Vec::new();
    for part in parts {
        let role = match part {
            Part::Output(_) => Role::Tool,
            _ => Role::User,
        };
        match messages.last_mut() {
            Some(last) if last.role == role => last.parts.push(part),
            _ => messages.push(next(role, part, messages.is_empty())),
        }
    }
    messages
}

fn next(role: Role, part: Part, first: bool) -> Message {
    let mut message = Message::new(role, vec![part]);
    if !first {
        spelling_marks::set_flag(&mut message.meta.extra, spelling_marks::JOINED);
    }
    message
}
