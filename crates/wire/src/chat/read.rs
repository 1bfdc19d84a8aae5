//! Reads a Chat Completions message.

use serde_json::value::RawValue;
use trimtab_model::{
    ExtraFields, MediaKind, Message, MessageMetadata, Output, Part, Reasoning, Ref, Role, Text,
};

use super::calls::LEGACY_ID;
use super::{calls, meta};
use crate::json::{self, JsonFields, JsonType, owned, type_of};
use crate::raw_part;
use crate::spelling_marks;

/// Reads one message. Fails only if `json` is not an object.
pub fn read_message(json: &str) -> Result<Message, serde_json::Error> {
    serde_json::from_str::<JsonFields>(json).map(from_fields)
}

/// Reads one message from its fields.
pub(crate) fn from_fields(mut fields: JsonFields<'_>) -> Message {
    let given = fields.take("content");
    let (role, wire_role) = role(&mut fields);
    let mut metadata = meta::take(&mut fields);
    metadata.wire_role = wire_role;
    match role {
        Role::Tool => tool(fields, given, metadata),
        Role::Assistant => assistant(fields, given, metadata),
        Role::System | Role::User => plain(role, fields, given, metadata),
    }
}

fn role(fields: &mut JsonFields<'_>) -> (Role, Option<String>) {
    let spelled = fields.take_string("role").unwrap_or_default();
    let role = match spelled.as_str() {
        "system" => return (Role::System, None),
        "user" => return (Role::User, None),
        "assistant" => return (Role::Assistant, None),
        "tool" => return (Role::Tool, None),
        "developer" => Role::System,
        "function" => Role::Tool,
        _ => Role::User,
    };
    (role, Some(spelled))
}

fn plain(
    role: Role,
    fields: JsonFields<'_>,
    given: Option<&RawValue>,
    mut meta: MessageMetadata,
) -> Message {
    let mut parts = Vec::new();
    meta.content_list = content(given, &mut parts, &mut meta.extra);
    meta.extra.extend(fields.into_extra());
    Message { role, parts, meta }
}

fn assistant(
    mut fields: JsonFields<'_>,
    given: Option<&RawValue>,
    mut meta: MessageMetadata,
) -> Message {
    let mut parts = Vec::new();
    reasoning(&mut fields, &mut parts);
    let before = parts.len();
    meta.content_list = content(given, &mut parts, &mut meta.extra);
    if parts.get(before..).is_some_and(is_empty_text) && !meta.content_list {
        parts.truncate(before);
        // The mark lets the writer put the empty string back.
        spelling_marks::set_text(&mut meta.extra, spelling_marks::CONTENT, "");
    }
    calls::take(&mut fields, &mut parts);
    meta.extra.extend(fields.into_extra());
    Message {
        role: Role::Assistant,
        parts,
        meta,
    }
}

/// An answer that only calls tools often has `""` as its content, which is not a text.
fn is_empty_text(parts: &[Part]) -> bool {
    matches!(parts, [Part::Text(text)] if text.text.is_empty() && text.extra.is_empty())
}

fn reasoning(fields: &mut JsonFields<'_>, parts: &mut Vec<Part>) {
    for name in ["reasoning_content", "reasoning"] {
        if let Some(text) = fields.take_string(name) {
            let mut extra = ExtraFields::new();
            if name != "reasoning_content" {
                spelling_marks::set_text(&mut extra, spelling_marks::FIELD, name);
            }
            parts.push(Part::Reasoning(Reasoning {
                text,
                seal: None,
                extra,
            }));
            // Only the preferred field is read. The other one stays an unknown field and is written
            // back.
            return;
        }
    }
}

fn tool(
    mut fields: JsonFields<'_>,
    given: Option<&RawValue>,
    mut meta: MessageMetadata,
) -> Message {
    let call_id = fields.take_string("tool_call_id");
    let tool = fields.take_string("name");
    // A missing id and an empty one are written differently.
    let nameless = call_id.is_none();
    let is_legacy = meta.wire_role.as_deref() == Some("function");
    let without_id = if is_legacy { LEGACY_ID } else { "" };
    let mut output = Output {
        call_id: call_id.unwrap_or_else(|| without_id.to_owned()),
        tool,
        is_error: fields.take_true("is_error"),
        stored: fields.take_if("output_ref", stored),
        trimmed: fields.take_true("trimmed"),
        ..Output::default()
    };
    if nameless {
        spelling_marks::set_flag(&mut output.extra, spelling_marks::NAMELESS);
    }
    meta.content_list = content(given, &mut output.content, &mut output.extra);
    output.extra.extend(fields.into_extra());
    Message {
        role: Role::Tool,
        parts: vec![Part::Output(output)],
        meta,
    }
}

/// A ref with no more fields than the model keeps.
fn stored(raw: &RawValue) -> Option<Ref> {
    let known = ["id", "byte_size", "line_count"];
    let fields = json::fields(raw)?;
    let kept = |name: &str| known.contains(&name) && fields.type_of(name) != Some(JsonType::Null);
    // A ref with other fields would lose them, so it stays an unknown field.
    if !fields.names().all(kept) {
        return None;
    }
    json::parse(raw)
}

/// Reads the content field into `parts`; true if it is a list.
fn content(given: Option<&RawValue>, parts: &mut Vec<Part>, extra: &mut ExtraFields) -> bool {
    // Most content is one text, but a growing vector starts with room for four.
    parts.reserve_exact(1);
    let Some(raw) = given else {
        spelling_marks::set_absent(extra);
        return false;
    };
    match type_of(raw) {
        JsonType::Text => parts.extend(json::string(raw).map(Part::text)),
        JsonType::Null => spelling_marks::set(extra, spelling_marks::CONTENT, owned(raw)),
        JsonType::List => {
            let elements = json::list(raw).unwrap_or_default();
            parts.extend(elements.into_iter().map(part));
            return true;
        }
        JsonType::Bool | JsonType::Number | JsonType::Object => {
            parts.push(raw_part::opaque("", raw));
        }
    }
    false
}

fn text_part(mut fields: JsonFields<'_>) -> Part {
    fields.take("type");
    Part::Text(Text {
        text: fields.take_string("text").unwrap_or_default(),
        extra: fields.into_extra(),
    })
}

/// Reads one element of a content list.
pub(super) fn part(raw: &RawValue) -> Part {
    let Some(fields) = json::fields(raw) else {
        return raw_part::opaque("", raw);
    };
    let type_name = fields.text("type").unwrap_or_default();
    match type_name.as_ref() {
        "text" if fields.type_of("text") == Some(JsonType::Text) => text_part(fields),
        "image_url" | "image" => raw_part::media(MediaKind::Image, raw),
        "file" | "document" => raw_part::media(MediaKind::Document, raw),
        "input_audio" | "audio" => raw_part::media(MediaKind::Audio, raw),
        other => raw_part::opaque(other, raw),
    }
}
