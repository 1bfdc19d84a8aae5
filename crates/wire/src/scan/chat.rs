//! Scans the entries of a Chat Completions request.
//!
//! It produces exactly the parts of [`crate::chat`]; tests compare the two.

use trimtab_model::{MediaKind, Role};

use super::element::{BodyReader, bare, is_null, is_string};
use super::table::{PartKind, PartSpan};
use crate::json::cursor::ScanResult;
use crate::json::span::Span;
use crate::json::unscannable::UnscannableReason;

/// The fields that classify an entry. A field's span includes its name.
#[derive(Default)]
struct ChatEntryFields {
    role: Span,
    content: Span,
    tool_call_id: Span,
    /// By their order in [`THOUGHTS`].
    thoughts: [Span; 2],
    legacy: Option<Span>,
    /// The parts of the content, if it is a list.
    content_parts: Vec<PartSpan>,
    calls: Vec<PartSpan>,
}

/// The fields with reasoning, the preferred one first.
const THOUGHTS: [&str; 2] = ["reasoning_content", "reasoning"];

/// Scans one entry.
pub(super) fn entry(reader: &mut BodyReader<'_>) -> ScanResult<()> {
    let read = reader.object_or_value(ChatEntryFields::default(), field)?;
    if !read.is_object {
        return reader.cursor.fail(UnscannableReason::NotAMessage);
    }
    // The role may stand behind the content, so parts are buffered until the entry is complete.
    reader.tables.entry(read.span, reader.text.len())?;
    let role = match reader.string(read.value.role).as_deref() {
        Some("system" | "developer") => Role::System,
        Some("assistant") => Role::Assistant,
        Some("tool" | "function") => Role::Tool,
        // Unknown roles are treated like the reader treats them, so that positions agree.
        _ => Role::User,
    };
    reader.tables.message(role);
    match role {
        Role::Tool => output(reader, read.span, &read.value),
        Role::Assistant => answer(reader, read.value),
        Role::System | Role::User => said(reader, read.value),
    }
    Ok(())
}

fn field(reader: &mut BodyReader<'_>, key: &str, fields: &mut ChatEntryFields) -> ScanResult<()> {
    match key {
        "content" => {
            // A second field of the same name overrides the first.
            fields.content_parts.clear();
            fields.content = content(reader, &mut fields.content_parts)?;
        }
        "tool_calls" => {
            fields.calls.clear();
            calls(reader, &mut fields.calls)?;
        }
        "function_call" => fields.legacy = legacy(reader)?,
        _ => {
            let value = reader.cursor.value()?;
            match key {
                "role" => fields.role = value,
                "tool_call_id" => fields.tool_call_id = value,
                _ => {
                    let mut named = THOUGHTS.iter().zip(&mut fields.thoughts);
                    if let Some((_, thought)) = named.find(|(name, _)| **name == key) {
                        *thought = value;
                    }
                }
            }
        }
    }
    Ok(())
}

fn output(reader: &mut BodyReader<'_>, span: Span, fields: &ChatEntryFields) {
    let id = reader.if_string(fields.tool_call_id);
    reader.tables.parts.push(PartSpan {
        kind: PartKind::Output,
        span,
        content: fields.content,
        id,
    });
}

fn answer(reader: &mut BodyReader<'_>, mut fields: ChatEntryFields) {
    let mut thoughts = fields.thoughts.into_iter();
    if let Some(value) = thoughts.find(|at| is_string(reader.text, *at)) {
        let kind = PartKind::Reasoning { sealed: false };
        reader.tables.parts.push(PartSpan {
            content: value,
            ..bare(kind, value)
        });
    }
    let calls = std::mem::take(&mut fields.calls);
    let legacy = fields.legacy;
    // An answer that only calls tools often has `""` as its content, which is not a text.
    if fields.content.of(reader.text) != "\"\"" {
        said(reader, fields);
    }
    reader.tables.parts.extend(calls);
    if let Some(span) = legacy {
        reader.tables.parts.push(bare(PartKind::Call, span));
    }
}

fn said(reader: &mut BodyReader<'_>, fields: ChatEntryFields) {
    let content = fields.content;
    if is_string(reader.text, content) {
        reader.tables.parts.push(PartSpan {
            content,
            ..bare(PartKind::Text, content)
        });
    } else if super::element::is_list(reader.text, content) {
        reader.tables.parts.extend(fields.content_parts);
    } else if !content.is_empty() && !is_null(reader.text, content) {
        reader.tables.parts.push(bare(PartKind::Opaque, content));
    }
}

fn content(reader: &mut BodyReader<'_>, parts: &mut Vec<PartSpan>) -> ScanResult<Span> {
    reader.list_or_value(|reader| {
        parts.push(part(reader)?);
        reader.check_size(parts)
    })
}

fn part(reader: &mut BodyReader<'_>) -> ScanResult<PartSpan> {
    let read = reader.fields(["type", "text"])?;
    let [type_name, text] = read.value;
    let kind = match reader.string(type_name).as_deref() {
        Some("text") if is_string(reader.text, text) => PartKind::Text,
        Some("image_url" | "image") => PartKind::Media(MediaKind::Image),
        Some("file" | "document") => PartKind::Media(MediaKind::Document),
        Some("input_audio" | "audio") => PartKind::Media(MediaKind::Audio),
        _ => PartKind::Opaque,
    };
    let content = if kind == PartKind::Text {
        text
    } else {
        Span::default()
    };
    Ok(PartSpan {
        content,
        ..bare(kind, read.span)
    })
}

fn calls(reader: &mut BodyReader<'_>, calls: &mut Vec<PartSpan>) -> ScanResult<()> {
    reader.list_or_value(|reader| {
        calls.push(call(reader)?);
        reader.check_size(calls)
    })?;
    Ok(())
}

fn call(reader: &mut BodyReader<'_>) -> ScanResult<PartSpan> {
    let none = (Span::default(), Span::default());
    let read = reader.object_or_value(none, |reader, key, (id, arguments)| {
        match key {
            "id" => *id = reader.cursor.value()?,
            "function" | "custom" => {
                // A custom tool takes text, which is in a field of another name.
                let [usual, custom] = reader.fields(["arguments", "input"])?.value;
                *arguments = if usual.is_empty() { custom } else { usual };
            }
            _ => drop(reader.cursor.value()?),
        }
        Ok(())
    })?;
    let (id, content) = read.value;
    Ok(PartSpan {
        kind: PartKind::Call,
        span: read.span,
        content,
        id: reader.if_string(id),
    })
}

/// A call in the legacy field that preceded `tool_calls`, if it is one.
fn legacy(reader: &mut BodyReader<'_>) -> ScanResult<Option<Span>> {
    let read = reader.fields(["name", "arguments"])?;
    // Only this shape is read as a call. Others stay unknown fields of the message.
    let is_usual = read.value.iter().all(|at| is_string(reader.text, *at));
    Ok(is_usual.then_some(read.span))
}
