//! Reads the entries of Responses input one by one.

use serde_json::value::RawValue;
use trimtab_model::{
    Call, ExtraFields, MediaKind, Message, Output, Part, Reasoning, Role, Text, Treatment,
    treatment,
};

use super::read::mark_untyped;
use crate::json::{self, JsonFields, JsonType, ObjectWriter, owned, type_of};
use crate::raw_part;
use crate::spelling_marks;

/// A message of anybody but the model.
pub(super) fn message(mut fields: JsonFields<'_>) -> Message {
    let spelled = fields.take_string("role").unwrap_or_default();
    let role = match spelled.as_str() {
        "system" | "developer" => Role::System,
        _ => Role::User,
    };
    let absent = !fields.has("content");
    let (parts, as_list) = fields
        .take("content")
        .map(|raw| content(raw, "input_text"))
        .unwrap_or_default();
    let mut message = Message::new(role, parts);
    message.meta.content_list = as_list;
    if absent {
        spelling_marks::set_absent(&mut message.meta.extra);
    }
    let usual = |raw| json::text(raw).filter(|name| name == "message");
    if fields.take_if("type", usual).is_none() {
        mark_untyped(&mut message);
    }
    // `developer` and unknown roles are kept in their spelling.
    if spelled != role.as_str() {
        message.meta.wire_role = Some(spelled);
    }
    message.meta.extra.extend(fields.into_extra());
    message
}

/// True if an entry has a system role.
pub(super) fn is_of_system(fields: &JsonFields<'_>) -> bool {
    let role = fields.text("role").unwrap_or_default();
    matches!(role.as_ref(), "system" | "developer")
}

/// A message of the model: its texts, with the other fields marked on the first.
pub(super) fn answer(mut fields: JsonFields<'_>) -> Option<Vec<Part>> {
    let (mut parts, as_list) = content(fields.take("content")?, "output_text");
    // The usual form needs no mark, which keeps the log small.
    let usual = as_list && fields.names().eq(["type", "role"]);
    let mut joined = false;
    for part in &mut parts {
        // An answer with other parts is kept as one opaque part, because only texts can be split.
        let Part::Text(text) = part else { return None };
        if joined {
            spelling_marks::set_flag(&mut text.extra, spelling_marks::JOINED);
        }
        joined = true;
    }
    let Some(Part::Text(first)) = parts.first_mut() else {
        return None;
    };
    if !as_list {
        spelling_marks::set_text(&mut first.extra, spelling_marks::CONTENT, "text");
    }
    if !usual {
        let item = ObjectWriter::new()
            .extra(&fields.into_extra(), &[])
            .end_raw();
        spelling_marks::set(&mut first.extra, spelling_marks::ITEM, item);
    }
    Some(parts)
}

/// Reasoning; its seal can be read by the provider only.
pub(super) fn reasoning(mut fields: JsonFields<'_>, raw: &RawValue) -> Part {
    let summary = fields.list("summary");
    if summary.is_none() && fields.has("summary") {
        return raw_part::opaque("reasoning", raw);
    }
    fields.take("type");
    let has_summary = summary.is_some();
    // Open models have their reasoning in `content`, OpenAI has a summary of it.
    let thoughts = [summary, fields.list("content")];
    let texts: Vec<String> = thoughts
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|raw| json::fields(raw)?.text("text").map(Into::into))
        .collect();
    let seal = fields.take_string("encrypted_content");
    let mut extra = fields.into_extra();
    if !has_summary {
        spelling_marks::set_absent(&mut extra);
    }
    Part::Reasoning(Reasoning {
        text: texts.join("\n\n"),
        seal,
        extra,
    })
}

/// A call of a function, or of a built-in tool.
pub(super) fn call(mut fields: JsonFields<'_>, raw: &RawValue) -> Part {
    let type_name = fields.take_string("type").unwrap_or_default();
    let field = if type_name == "custom_tool_call" {
        "input"
    } else {
        "arguments"
    };
    let usual = matches!(type_name.as_str(), "function_call" | "custom_tool_call")
        && fields.type_of(field) == Some(JsonType::Text)
        && fields.type_of("name") == Some(JsonType::Text);
    if !usual {
        return Part::Call(own_call(&type_name, &fields, raw));
    }
    let mut call = Call::new(
        fields.take_string("call_id").unwrap_or_default(),
        fields.take_string("name").unwrap_or_default(),
        fields.take_string(field).unwrap_or_default(),
    );
    if type_name != "function_call" {
        spelling_marks::set_text(&mut call.extra, spelling_marks::TYPE, &type_name);
    }
    call.extra.extend(fields.into_extra());
    Part::Call(call)
}

/// A call with a special shape, such as a shell command: kept verbatim.
fn own_call(type_name: &str, fields: &JsonFields<'_>, raw: &RawValue) -> Call {
    let name = fields.text("name").unwrap_or_default();
    let name = if name.is_empty() {
        type_name.strip_suffix("_call").unwrap_or(type_name)
    } else {
        &name
    };
    let arguments = ["arguments", "input", "action", "operation"]
        .into_iter()
        .find_map(|field| fields.get(field));
    let mut call = Call::new(
        fields.text("call_id").unwrap_or_default(),
        name,
        arguments.map(json::plain).unwrap_or_default(),
    );
    spelling_marks::set(&mut call.extra, spelling_marks::RAW, owned(raw));
    // Another dialect cannot use this form.
    spelling_marks::set_text(&mut call.extra, spelling_marks::FIELD, "input");
    call
}

/// True if an entry of type `type_name` is a call that the client answers.
pub(super) fn is_call(fields: &JsonFields<'_>, type_name: &str) -> bool {
    treatment(type_name) == Treatment::Edit && fields.type_of("call_id") == Some(JsonType::Text)
}

/// True if an entry of type `type_name` answers a call.
pub(super) fn is_output(fields: &JsonFields<'_>, type_name: &str) -> bool {
    let named = fields.type_of("call_id") == Some(JsonType::Text)
        || (type_name == "local_shell_call_output" && fields.type_of("id") == Some(JsonType::Text));
    type_name.ends_with("_output") && named && treatment(type_name) == Treatment::Edit
}

/// An output.
pub(super) fn output(mut fields: JsonFields<'_>, raw: &RawValue) -> Message {
    let type_name = fields.take_string("type").unwrap_or_default();
    let id_field = if fields.has("call_id") {
        "call_id"
    } else {
        "id"
    };
    let call_id = fields.take_string(id_field).unwrap_or_default();
    let mut output = Output::new(call_id, "");
    if !fields.has("output") {
        spelling_marks::set_absent(&mut output.extra);
    }
    let (content, as_list) = fields
        .take("output")
        .map(|raw| content(raw, "input_text"))
        .unwrap_or_default();
    output.content = content;
    if type_name != "function_call_output" {
        spelling_marks::set_text(&mut output.extra, spelling_marks::TYPE, &type_name);
    }
    // An output that is named by `id` cannot be rebuilt from the model, so its original is kept.
    if id_field == "call_id" {
        output.extra.extend(fields.into_extra());
    } else {
        spelling_marks::set(&mut output.extra, spelling_marks::RAW, owned(raw));
    }
    let mut message = Message::new(Role::Tool, vec![Part::Output(output)]);
    message.meta.content_list = as_list;
    message
}

/// Reads a content field. `usual` is the default type of its texts.
fn content(raw: &RawValue, usual: &str) -> (Vec<Part>, bool) {
    match type_of(raw) {
        JsonType::Text => (
            json::string(raw).map(Part::text).into_iter().collect(),
            false,
        ),
        JsonType::List => {
            let elements = json::list(raw).unwrap_or_default();
            let parts = elements.into_iter().map(|raw| part(raw, usual));
            (parts.collect(), true)
        }
        _ => (vec![raw_part::opaque("", raw)], false),
    }
}

fn part(raw: &RawValue, usual: &str) -> Part {
    let Some(mut fields) = json::fields(raw) else {
        return raw_part::opaque("", raw);
    };
    let type_name = fields.text("type").unwrap_or_default().into_owned();
    match type_name.as_str() {
        "input_text" | "output_text" | "text" if fields.type_of("text") == Some(JsonType::Text) => {
            fields.take("type");
            let mut extra = ExtraFields::new();
            // The usual type needs no mark. Some clients send `text` or the type of the other side.
            if type_name != usual {
                spelling_marks::set_text(&mut extra, spelling_marks::TYPE, &type_name);
            }
            let text = fields.take_string("text").unwrap_or_default();
            extra.extend(fields.into_extra());
            Part::Text(Text { text, extra })
        }
        "input_image" => raw_part::media(MediaKind::Image, raw),
        "input_file" => raw_part::media(MediaKind::Document, raw),
        "input_audio" => raw_part::media(MediaKind::Audio, raw),
        other => raw_part::opaque(other, raw),
    }
}
