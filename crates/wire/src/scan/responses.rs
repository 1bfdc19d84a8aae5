//! Scans the entries of a Responses request.
//!
//! It gathers entries into messages exactly like [`crate::responses`]; tests compare the two.

use trimtab_model::{MediaKind, Role, Treatment, treatment};

use super::element::{BodyReader, bare, is_list, is_string};
use super::table::{PartKind, PartSpan};
use crate::json::cursor::ScanResult;
use crate::json::span::Span;

/// The fields that classify an entry.
#[derive(Default)]
struct ResponsesItemFields {
    type_name: Span,
    role: Span,
    content: Span,
    summary: Span,
    encrypted_content: Span,
    call_id: Span,
    id: Span,
    output: Span,
    /// `arguments`, `input`, `action` or `operation`.
    arguments: Span,
}

/// Scans an input that is a string: one user message.
pub(super) fn text_input(reader: &mut BodyReader<'_>) -> ScanResult<()> {
    let span = reader.cursor.value()?;
    reader.tables.entry(span, reader.text.len())?;
    reader.tables.message(Role::User);
    reader.tables.parts.push(PartSpan {
        content: span,
        ..bare(PartKind::Text, span)
    });
    Ok(())
}

/// Scans one entry.
pub(super) fn entry(reader: &mut BodyReader<'_>) -> ScanResult<()> {
    reader.scratch.clear();
    let read = reader.object_or_value(ResponsesItemFields::default(), field)?;
    let (span, fields) = (read.span, read.value);
    reader.check_size(&[])?;
    let type_name = reader.string(fields.type_name).unwrap_or_default();
    match type_name.as_ref() {
        // The type may be missing in a message.
        "message" | "" if !fields.role.is_empty() => message(reader, span, &fields),
        "reasoning" => {
            let part = reasoning(reader, span, &fields);
            said(reader, span, &[part])
        }
        // The provider's own summary of earlier items. It belongs to no answer of the model.
        other if treatment(other) == Treatment::Boundary => {
            alone(reader, span, Role::User, bare(PartKind::Opaque, span))
        }
        other if is_output(reader, &fields, other) => output(reader, span, &fields),
        other if is_call(reader, &fields, other) => {
            let call = PartSpan {
                kind: PartKind::Call,
                span,
                content: fields.arguments,
                id: fields.call_id,
            };
            said(reader, span, &[call])
        }
        _ if is_of_system(reader, &fields) => {
            alone(reader, span, Role::System, bare(PartKind::Opaque, span))
        }
        other => {
            // An item reference stands for an item that only the provider has.
            reader.request.partial |= other == "item_reference";
            said(reader, span, &[bare(PartKind::Opaque, span)])
        }
    }
}

/// True if an entry has a system role.
fn is_of_system(reader: &BodyReader<'_>, fields: &ResponsesItemFields) -> bool {
    let role = reader.string(fields.role);
    matches!(role.as_deref(), Some("system" | "developer"))
}

fn field(
    reader: &mut BodyReader<'_>,
    key: &str,
    fields: &mut ResponsesItemFields,
) -> ScanResult<()> {
    let value = match key {
        // The parts are buffered, because the role that decides about them may follow.
        "content" => content(reader)?,
        "output" => reader.inner_list()?,
        _ => reader.cursor.value()?,
    };
    let place = match key {
        "type" => &mut fields.type_name,
        "role" => &mut fields.role,
        "content" => &mut fields.content,
        "summary" => &mut fields.summary,
        "encrypted_content" => &mut fields.encrypted_content,
        "call_id" => &mut fields.call_id,
        "id" => &mut fields.id,
        "output" => &mut fields.output,
        "arguments" | "input" | "action" | "operation" => &mut fields.arguments,
        _ => return Ok(()),
    };
    *place = value;
    Ok(())
}

/// Skips the content of an entry and buffers its parts.
fn content(reader: &mut BodyReader<'_>) -> ScanResult<Span> {
    reader.scratch.clear();
    let first = reader.cursor.peek();
    let span = reader.list_or_value(|reader| {
        let part = part(reader)?;
        reader.scratch.push(part);
        reader.check_size(&[])
    })?;
    match first {
        Some(b'[') => {}
        Some(b'"') => reader.scratch.push(PartSpan {
            content: span,
            ..bare(PartKind::Text, span)
        }),
        _ => reader.scratch.push(bare(PartKind::Opaque, span)),
    }
    Ok(span)
}

fn part(reader: &mut BodyReader<'_>) -> ScanResult<PartSpan> {
    let read = reader.fields(["type", "text"])?;
    let [type_name, text] = read.value;
    let kind = match reader.string(type_name).as_deref() {
        Some("input_text" | "output_text" | "text") if is_string(reader.text, text) => {
            return Ok(PartSpan {
                content: text,
                ..bare(PartKind::Text, read.span)
            });
        }
        Some("input_image") => PartKind::Media(MediaKind::Image),
        Some("input_file") => PartKind::Media(MediaKind::Document),
        Some("input_audio") => PartKind::Media(MediaKind::Audio),
        _ => PartKind::Opaque,
    };
    Ok(bare(kind, read.span))
}

fn message(
    reader: &mut BodyReader<'_>,
    span: Span,
    fields: &ResponsesItemFields,
) -> ScanResult<()> {
    let mut parts = std::mem::take(&mut reader.scratch);
    if fields.content.is_empty() {
        parts.clear();
    }
    let role = match reader.string(fields.role).as_deref() {
        Some("assistant") => {
            let texts = parts.iter().all(|part| part.kind == PartKind::Text);
            // An answer with other parts, such as a refusal, is kept as a whole.
            if parts.is_empty() || !texts {
                parts = vec![bare(PartKind::Opaque, span)];
            }
            let done = said(reader, span, &parts);
            reader.scratch = parts;
            return done;
        }
        Some("system" | "developer") => Role::System,
        _ => Role::User,
    };
    reader.speaking = false;
    reader.tables.entry(span, reader.text.len())?;
    reader.tables.message(role);
    reader.tables.parts.extend_from_slice(&parts);
    reader.scratch = parts;
    Ok(())
}

fn reasoning(reader: &BodyReader<'_>, span: Span, fields: &ResponsesItemFields) -> PartSpan {
    if !fields.summary.is_empty() && !is_list(reader.text, fields.summary) {
        return bare(PartKind::Opaque, span);
    }
    let sealed = is_string(reader.text, fields.encrypted_content);
    PartSpan {
        content: fields.summary,
        ..bare(PartKind::Reasoning { sealed }, span)
    }
}

fn is_call(reader: &BodyReader<'_>, fields: &ResponsesItemFields, type_name: &str) -> bool {
    treatment(type_name) == Treatment::Edit && is_string(reader.text, fields.call_id)
}

fn is_output(reader: &BodyReader<'_>, fields: &ResponsesItemFields, type_name: &str) -> bool {
    let named = is_string(reader.text, fields.call_id)
        // This type names its call by `id`.
        || (type_name == "local_shell_call_output" && is_string(reader.text, fields.id));
    type_name.ends_with("_output") && named && treatment(type_name) == Treatment::Edit
}

fn output(reader: &mut BodyReader<'_>, span: Span, fields: &ResponsesItemFields) -> ScanResult<()> {
    let id = if fields.call_id.is_empty() {
        fields.id
    } else {
        fields.call_id
    };
    let id = reader.if_string(id);
    let part = PartSpan {
        kind: PartKind::Output,
        span,
        content: fields.output,
        id,
    };
    alone(reader, span, Role::Tool, part)
}

/// A message of one part, separate from all others.
fn alone(reader: &mut BodyReader<'_>, span: Span, role: Role, part: PartSpan) -> ScanResult<()> {
    reader.speaking = false;
    reader.tables.entry(span, reader.text.len())?;
    reader.tables.message(role);
    reader.tables.parts.push(part);
    Ok(())
}

/// Parts of the current answer.
fn said(reader: &mut BodyReader<'_>, span: Span, parts: &[PartSpan]) -> ScanResult<()> {
    let goes_on = reader.speaking;
    reader.tables.entry(span, reader.text.len())?;
    if goes_on {
        if let Some(entry) = reader.tables.entries.last_mut() {
            // `entry` assumes that a new message follows; this one belongs to the message before.
            entry.message = entry.message.saturating_sub(1);
        }
    } else {
        reader.tables.message(Role::Assistant);
        reader.speaking = true;
    }
    reader.tables.parts.extend_from_slice(parts);
    Ok(())
}
