//! Scans the entries of a Messages request.
//!
//! It produces exactly the messages and parts of [`crate::messages`]; tests compare the two.

use trimtab_model::{MediaKind, Role};

use super::element::{BodyReader, bare, is_list, is_string};
use super::table::{PartKind, PartSpan};
use crate::json::cursor::ScanResult;
use crate::json::span::Span;
use crate::json::unscannable::UnscannableReason;

/// Scans one entry.
pub(super) fn entry(reader: &mut BodyReader<'_>) -> ScanResult<()> {
    let parts = reader.tables.parts.len();
    let read = reader.object_or_value(Span::default(), |reader, key, role| {
        match key {
            "role" => *role = reader.cursor.value()?,
            "content" => {
                // A second `content` overrides the first.
                reader.tables.parts.truncate(parts);
                content(reader)?;
            }
            _ => drop(reader.cursor.value()?),
        }
        Ok(())
    })?;
    if !read.is_object {
        return reader.cursor.fail(UnscannableReason::NotAMessage);
    }
    reader.tables.entry(read.span, reader.text.len())?;
    let role = match reader.string(read.value).as_deref() {
        Some("assistant") => Role::Assistant,
        Some("system" | "developer") => Role::System,
        _ => Role::User,
    };
    split(reader, role, parts);
    Ok(())
}

/// Adds the messages of an entry: one for each run of outputs or of other parts.
fn split(reader: &mut BodyReader<'_>, role: Role, first: usize) {
    let tables = &mut reader.tables;
    // Parts are in one table for all messages, so a message must be added before its own parts.
    let parts: Vec<PartSpan> = tables.parts.drain(first..).collect();
    let is_output = |part: &PartSpan| part.kind == PartKind::Output;
    if role != Role::User || !parts.iter().any(is_output) {
        tables.message(role);
        tables.parts.extend(parts);
        return;
    }
    let mut last = None;
    for part in parts {
        let role = if is_output(&part) {
            Role::Tool
        } else {
            Role::User
        };
        if last != Some(role) {
            tables.message(role);
            last = Some(role);
        }
        tables.parts.push(part);
    }
}

/// Scans the content of an entry, or the system field, into the table of parts.
pub(super) fn content(reader: &mut BodyReader<'_>) -> ScanResult<()> {
    match reader.cursor.peek() {
        Some(b'"') => {
            let span = reader.cursor.value()?;
            reader.tables.parts.push(PartSpan {
                content: span,
                ..bare(PartKind::Text, span)
            });
        }
        Some(b'[') => {
            reader.list_or_value(|reader| {
                let part = part(reader)?;
                reader.tables.parts.push(part);
                reader.check_size(&[])
            })?;
        }
        _ => {
            let part = part(reader)?;
            reader.tables.parts.push(part);
        }
    }
    Ok(())
}

/// The fields that classify a part.
#[derive(Default)]
struct MessagesPartFields {
    type_name: Span,
    text: Span,
    thinking: Span,
    signature: Span,
    data: Span,
    id: Span,
    name: Span,
    input: Span,
    tool_use_id: Span,
    content: Span,
}

fn part(reader: &mut BodyReader<'_>) -> ScanResult<PartSpan> {
    let read = reader.object_or_value(MessagesPartFields::default(), |reader, key, fields| {
        let value = match key {
            // Outputs can have cache markers inside their content, which must be found.
            "content" => reader.inner_list()?,
            _ => reader.cursor.value()?,
        };
        let place = match key {
            "type" => &mut fields.type_name,
            "text" => &mut fields.text,
            "thinking" => &mut fields.thinking,
            "signature" => &mut fields.signature,
            "data" => &mut fields.data,
            "id" => &mut fields.id,
            "name" => &mut fields.name,
            "input" => &mut fields.input,
            "tool_use_id" => &mut fields.tool_use_id,
            "content" => &mut fields.content,
            _ => return Ok(()),
        };
        *place = value;
        Ok(())
    })?;
    Ok(known(reader, read.span, &read.value).unwrap_or(bare(PartKind::Opaque, read.span)))
}

fn known(reader: &BodyReader<'_>, span: Span, fields: &MessagesPartFields) -> Option<PartSpan> {
    let text = |span: Span| is_string(reader.text, span).then_some(span);
    let type_name = reader.string(fields.type_name)?;
    match type_name.as_ref() {
        "text" => Some(PartSpan {
            content: text(fields.text)?,
            ..bare(PartKind::Text, span)
        }),
        "thinking" => {
            let sealed = text(fields.signature).is_some();
            Some(PartSpan {
                content: text(fields.thinking)?,
                ..bare(PartKind::Reasoning { sealed }, span)
            })
        }
        "redacted_thinking" => {
            text(fields.data)?;
            Some(bare(PartKind::Reasoning { sealed: true }, span))
        }
        "tool_use" => {
            text(fields.name)?;
            // The same requirements as in the reader. A part that lacks one of these fields is
            // opaque in both.
            let content = Some(fields.input).filter(|input| !input.is_empty())?;
            Some(PartSpan {
                kind: PartKind::Call,
                span,
                content,
                id: text(fields.id)?,
            })
        }
        "tool_result" => output(reader, span, fields),
        "image" => Some(bare(PartKind::Media(MediaKind::Image), span)),
        "document" => Some(bare(PartKind::Media(MediaKind::Document), span)),
        _ => None,
    }
}

fn output(reader: &BodyReader<'_>, span: Span, fields: &MessagesPartFields) -> Option<PartSpan> {
    let content = fields.content;
    let usual =
        content.is_empty() || is_string(reader.text, content) || is_list(reader.text, content);
    let id = fields.tool_use_id;
    (usual && is_string(reader.text, id)).then_some(PartSpan {
        kind: PartKind::Output,
        span,
        content,
        id,
    })
}
