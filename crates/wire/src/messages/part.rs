//! Reads and writes one part of a message.

use serde_json::value::RawValue;
use trimtab_model::{Call, MediaKind, Output, Part, RawJson, Reasoning, Text};

use crate::json::{self, JsonFields, JsonType, ObjectWriter, array, quoted, type_of};
use crate::raw_part;
use crate::{media, spelling_marks};

/// Reasoning that the provider hides.
const REDACTED: &str = "redacted_thinking";

/// Reads one part.
pub(crate) fn read(raw: &RawValue) -> Part {
    json::fields(raw)
        .and_then(from_fields)
        .unwrap_or_else(|| carried(raw))
}

/// Reads a list of parts. Their original JSON is needed only if one is unknown.
pub(super) fn read_list(raw: &RawValue) -> Vec<Part> {
    // Parsing fields directly saves a pass over each part, and nearly all parts are known.
    let all = json::parse::<Vec<JsonFields<'_>>>(raw);
    let known: Option<Vec<Part>> = all.and_then(|all| all.into_iter().map(from_fields).collect());
    known.unwrap_or_else(|| {
        let elements = json::list(raw).unwrap_or_default();
        elements.into_iter().map(read).collect()
    })
}

fn from_fields(mut fields: JsonFields<'_>) -> Option<Part> {
    let given = fields.take("content");
    let type_name = fields.take_string("type")?;
    // `content` was taken out above. In other parts it is an unknown field, so the part is kept as
    // it is.
    if given.is_some() && type_name != "tool_result" {
        return None;
    }
    match type_name.as_str() {
        "text" => Some(Part::Text(Text {
            text: fields.take_string("text")?,
            extra: fields.into_extra(),
        })),
        "thinking" => Some(Part::Reasoning(Reasoning {
            text: fields.take_string("thinking")?,
            seal: fields.take_string("signature"),
            extra: fields.into_extra(),
        })),
        REDACTED => redacted(fields),
        "tool_use" => Some(Part::Call(Call {
            id: fields.take_string("id")?,
            name: fields.take_string("name")?,
            arguments: fields.take("input")?.get().to_owned(),
            extra: fields.into_extra(),
        })),
        "tool_result" => output(fields, given),
        _ => None,
    }
}

fn redacted(mut fields: JsonFields<'_>) -> Option<Part> {
    let seal = fields.take_string("data")?;
    let mut extra = fields.into_extra();
    spelling_marks::set_text(&mut extra, spelling_marks::TYPE, REDACTED);
    Some(Part::Reasoning(Reasoning {
        text: String::new(),
        seal: Some(seal),
        extra,
    }))
}

fn output(mut fields: JsonFields<'_>, given: Option<&RawValue>) -> Option<Part> {
    let call_id = fields.take_string("tool_use_id")?;
    let (content, as_list) = match given {
        None => (Vec::new(), false),
        Some(given) => content(given)?,
    };
    let is_error = fields.take_true("is_error");
    let mut extra = fields.into_extra();
    // Only this case is ambiguous: all other lists could not be written as a string.
    if as_list && is_plain(&content) {
        spelling_marks::set_flag(&mut extra, spelling_marks::LIST);
    }
    Some(Part::Output(Output {
        call_id,
        content,
        is_error,
        extra,
        ..Output::default()
    }))
}

/// Reads a content field; none if it is neither text nor a list. True if it is a list.
fn content(given: &RawValue) -> Option<(Vec<Part>, bool)> {
    match type_of(given) {
        JsonType::Text => Some((vec![Part::text(json::string(given)?)], false)),
        JsonType::List => Some((read_list(given), true)),
        _ => None,
    }
}

/// Media, and parts of unknown types.
fn carried(raw: &RawValue) -> Part {
    let type_name = json::fields(raw)
        .and_then(|fields| fields.text("type"))
        .unwrap_or_default();
    match type_name.as_ref() {
        "image" => raw_part::media(MediaKind::Image, raw),
        "document" => raw_part::media(MediaKind::Document, raw),
        other => raw_part::opaque(other, raw),
    }
}

/// True if a list of only this part could be a plain string.
pub(super) fn is_plain(parts: &[Part]) -> bool {
    match parts {
        [] => true,
        [Part::Text(text)] => spelling_marks::only_marks(&text.extra),
        _ => false,
    }
}

/// Writes one part.
pub(crate) fn write(part: &Part) -> String {
    match part {
        Part::Text(text) => ObjectWriter::new()
            .text("type", "text")
            .text("text", &text.text)
            .extra(&text.extra, &[])
            .end(),
        Part::Reasoning(reasoning) => write_reasoning(reasoning),
        Part::Media(media) => media::to_messages(&media.raw),
        Part::Call(call) => ObjectWriter::new()
            .text("type", "tool_use")
            .text("id", &call.id)
            .text("name", &call.name)
            .raw("input", &input(&call.arguments))
            // Items of Responses have an id of their own beside that of the call.
            .extra(&call.extra, &["type", "id"])
            .end(),
        Part::Output(output) => write_output(output),
        Part::Opaque(opaque) => opaque.raw.as_str().to_owned(),
    }
}

fn write_reasoning(reasoning: &Reasoning) -> String {
    let seal = reasoning.seal.as_deref().map(quoted);
    let redacted =
        spelling_marks::text(&reasoning.extra, spelling_marks::TYPE).as_deref() == Some(REDACTED);
    let object = if redacted {
        ObjectWriter::new()
            .text("type", REDACTED)
            .maybe("data", seal)
    } else {
        ObjectWriter::new()
            .text("type", "thinking")
            .text("thinking", &reasoning.text)
            .maybe("signature", seal)
    };
    object.extra(&reasoning.extra, &[]).end()
}

/// The arguments as an object, which the dialect requires.
fn input(arguments: &str) -> String {
    match RawJson::parse(arguments) {
        Ok(_) => arguments.to_owned(),
        Err(_) if arguments.trim().is_empty() => "{}".to_owned(),
        // A model of another dialect may write anything; this one accepts only objects.
        Err(_) => ObjectWriter::new().text("arguments", arguments).end(),
    }
}

fn write_output(output: &Output) -> String {
    let as_list = spelling_marks::has(&output.extra, spelling_marks::LIST);
    let content = match output.content.as_slice() {
        [] if !as_list => None,
        [Part::Text(text)] if !as_list && spelling_marks::only_marks(&text.extra) => {
            Some(quoted(&text.text))
        }
        parts => Some(array(parts.iter().map(write))),
    };
    let overruled: &[&str] = if output.is_error { &["is_error"] } else { &[] };
    ObjectWriter::new()
        .text("type", "tool_result")
        .text("tool_use_id", &output.call_id)
        .maybe("content", content)
        .flag("is_error", output.is_error)
        .extra(&output.extra, overruled)
        .end()
}
