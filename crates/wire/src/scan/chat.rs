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
    thoughts: [ThoughtField; 2],
    legacy: Option<Span>,
    /// The parts of the content, if it is a list.
    content_parts: Vec<PartSpan>,
    calls: Vec<PartSpan>,
}

/// A field with reasoning.
#[derive(Clone, Copy, Default)]
struct ThoughtField {
    value: Span,
}

/// The fields with reasoning, the preferred one first.
const THOUGHTS: [&str; 2] = ["reasoning_content", "reasoning"];

/// Scans one entry.
pub(super) fn entry(reader: &mut BodyReader<'_>) -> ScanResult<()> {
    let read = reader.object_or_value(field)?;
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
                _ => thought(fields, key, value),
            }
        }
    }
    Ok(())
}

fn thought(fields: &mut ChatEntryFields, key: &str, value: Span) {
    let mut named = THOUGHTS.iter().zip(&mut fields.thoughts);
    if let Some((_, thought)) = named.find(|(name, _)| **name == key) {
        thought.value = value;
    }
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
    let thoughts = fields.thoughts.iter().map(|thought| thought.value);
    if let Some(value) = thoughts.into_iter().find(|at| is_string(reader.text, *at)) {
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
    if reader.cursor.peek() != Some(b'[') {
        return reader.cursor.value();
    }
    let start = reader.cursor.offset();
    let mut open = reader.cursor.open()?;
    while reader.cursor.more(&mut open)? {
        parts.push(part(reader)?);
        check(reader, parts)?;
    }
    Ok(Span::new(start, reader.cursor.offset()))
}

fn check(reader: &BodyReader<'_>, parts: &[PartSpan]) -> ScanResult<()> {
    // A hostile body consists of tiny parts, whose spans are larger than their bytes.
    if size_of_val(parts) > (64 << 10) + reader.text.len().saturating_mul(2) {
        return reader.cursor.fail(UnscannableReason::TooManyParts);
    }
    Ok(())
}

fn part(reader: &mut BodyReader<'_>) -> ScanResult<PartSpan> {
    let read = reader.object_or_value(|reader, key, (kind, text): &mut (Span, Span)| {
        let value = reader.cursor.value()?;
        match key {
            "type" => *kind = value,
            "text" => *text = value,
            _ => {}
        }
        Ok(())
    })?;
    let (type_name, text) = read.value;
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
    if reader.cursor.peek() != Some(b'[') {
        return reader.cursor.value().map(drop);
    }
    let mut open = reader.cursor.open()?;
    while reader.cursor.more(&mut open)? {
        calls.push(call(reader)?);
        check(reader, calls)?;
    }
    Ok(())
}

fn call(reader: &mut BodyReader<'_>) -> ScanResult<PartSpan> {
    let read = reader.object_or_value(|reader, key, (id, arguments): &mut (Span, Span)| {
        match key {
            "id" => *id = reader.cursor.value()?,
            "function" | "custom" => *arguments = inner(reader, &["arguments", "input"])?,
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

/// The value of one of the fields `names` of the next object.
fn inner(reader: &mut BodyReader<'_>, names: &[&str]) -> ScanResult<Span> {
    let read = reader.object_or_value(|reader, key, found: &mut Span| {
        let value = reader.cursor.value()?;
        if names.contains(&key) {
            *found = value;
        }
        Ok(())
    })?;
    Ok(read.value)
}

/// A call in the legacy field that preceded `tool_calls`, if it is one.
fn legacy(reader: &mut BodyReader<'_>) -> ScanResult<Option<Span>> {
    let read = reader.object_or_value(|reader, key, (name, arguments): &mut (Span, Span)| {
        let value = reader.cursor.value()?;
        match key {
            "name" => *name = value,
            "arguments" => *arguments = value,
            _ => {}
        }
        Ok(())
    })?;
    let (name, arguments) = read.value;
    // Only this shape is read as a call. Others stay unknown fields of the message.
    let usual = is_string(reader.text, name) && is_string(reader.text, arguments);
    Ok(usual.then_some(read.span))
}
