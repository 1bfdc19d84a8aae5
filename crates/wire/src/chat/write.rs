//! Writes Chat Completions messages.

use trimtab_model::{ExtraFields, Message, Output, Part, RawJson, Reasoning, Role};

use super::calls::LEGACY_ID;
use super::{calls, meta};
use crate::json::{ObjectWriter, array, quoted};
use crate::{media, messages, spelling_marks};

/// Writes one message; a tool message with several outputs becomes several.
pub fn write_message(message: &Message) -> Vec<RawJson> {
    let outputs = message
        .outputs()
        .map(|output| write_output(message, output));
    let mut written: Vec<RawJson> = outputs.collect();
    let only_outputs = !written.is_empty() && written.len() == message.parts.len();
    if !only_outputs {
        written.push(write_rest(message));
    }
    written
}

fn write_output(message: &Message, output: &Output) -> RawJson {
    let legacy = message.meta.wire_role.as_deref() == Some("function");
    let object = ObjectWriter::new().text("role", if legacy { "function" } else { "tool" });
    let id = (!is_nameless(output)).then(|| quoted(&output.call_id));
    let stored = output.stored.as_ref().map(RawJson::of);
    let object = object
        .maybe("tool_call_id", id)
        .maybe("name", output.tool.as_deref().map(quoted))
        .maybe("content", output_content(message, output))
        .flag("is_error", output.is_error)
        .maybe("output_ref", stored.map(|raw| raw.as_str().to_owned()))
        .flag("trimmed", output.trimmed)
        .extra(&output.extra, &spoken_for(output));
    meta::write(object, message).end_raw()
}

/// True for an output without an id.
fn is_nameless(output: &Output) -> bool {
    ["", LEGACY_ID].contains(&output.call_id.as_str())
        && spelling_marks::has(&output.extra, spelling_marks::NAMELESS)
}

/// Unknown fields of an output that a known one overrides.
fn spoken_for(output: &Output) -> Vec<&'static str> {
    let mut names = Vec::new();
    // An id that is no text is an unknown field. It goes if the output gets an id.
    if !is_nameless(output) {
        names.push("tool_call_id");
    }
    if output.is_error {
        names.push("is_error");
    }
    if output.trimmed {
        names.push("trimmed");
    }
    names
}

fn output_content(message: &Message, output: &Output) -> Option<String> {
    let parts: Vec<&Part> = output.content.iter().collect();
    content(&parts, message.meta.content_list)
        .or_else(|| as_read(&output.extra, || Some(quoted(""))))
}

/// Writes everything except the outputs.
fn write_rest(message: &Message) -> RawJson {
    let meta = &message.meta;
    let role = match meta.wire_role.as_deref() {
        // Other dialects call the system role `developer`.
        Some("developer") => "developer",
        Some(own) if message.role == Role::User && own != "user" => own,
        _ => message.role.as_str(),
    };
    let object = ObjectWriter::new().text("role", role);
    let object = object.maybe("content", rest_content(message));
    let object = write_reasoning(object, &message.parts);
    let object = calls::write(object, &message.parts);
    meta::write(object, message).end_raw()
}

fn rest_content(message: &Message) -> Option<String> {
    let parts: Vec<&Part> = message
        .parts
        .iter()
        .filter(|part| matches!(part, Part::Text(_) | Part::Media(_) | Part::Opaque(_)))
        .collect();
    // An answer that only calls tools may have no content; anything else needs some.
    let none = if message.has_calls() { "null" } else { "\"\"" };
    content(&parts, message.meta.content_list)
        .or_else(|| as_read(&message.meta.extra, || Some(none.to_owned())))
}

/// The original content field of a message without text, or the result of `or`.
fn as_read(extra: &ExtraFields, or: impl FnOnce() -> Option<String>) -> Option<String> {
    if spelling_marks::is_absent(extra) {
        return None;
    }
    spelling_marks::get(extra, spelling_marks::CONTENT)
        .map(str::to_owned)
        .or_else(or)
}

/// The content field for `parts`; none if it is empty.
fn content(parts: &[&Part], as_list: bool) -> Option<String> {
    match parts {
        [] if !as_list => None,
        [Part::Text(text)] if !as_list && spelling_marks::only_marks(&text.extra) => {
            Some(quoted(&text.text))
        }
        [Part::Opaque(whole)] if !as_list && whole.type_name.is_empty() => {
            Some(whole.raw.as_str().to_owned())
        }
        many => Some(array(many.iter().map(|part| write_part(part)))),
    }
}

fn write_part(part: &Part) -> String {
    match part {
        // These have the same form in Messages.
        Part::Text(_) | Part::Opaque(_) => messages::write_part(part),
        Part::Media(media) => media::to_chat(&media.raw),
        // The callers omit these.
        Part::Reasoning(_) | Part::Call(_) | Part::Output(_) => quoted(""),
    }
}

fn write_reasoning(object: ObjectWriter, parts: &[Part]) -> ObjectWriter {
    let thoughts: Vec<&Reasoning> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Reasoning(reasoning) => Some(reasoning),
            _ => None,
        })
        .collect();
    let Some(first) = thoughts.first() else {
        return object;
    };
    let field = spelling_marks::text(&first.extra, spelling_marks::FIELD);
    let texts: Vec<&str> = thoughts
        .iter()
        .map(|thought| thought.text.as_str())
        .collect();
    let text = texts.join("\n\n");
    // Encrypted reasoning of another provider has no text that this dialect could carry.
    if text.is_empty() && first.is_sealed() {
        return object;
    }
    object.text(field.as_deref().unwrap_or("reasoning_content"), &text)
}
