//! Writes transcripts back in the form in which they were read.
//!
//! Unchanged messages keep their bytes, including unknown fields; messages that are not sent are
//! removed; our own messages are written as user messages of that form.

mod body;
mod claude_code;
mod codex;
mod form_writer;
mod layout;
mod links;
mod message_per_line;
mod patch;

use std::collections::HashSet;

use serde_json::value::RawValue;
use thiserror::Error;

use super::{ReadError, TranscriptForm, TranscriptReader};
use crate::splice::SentMessage;
use form_writer::FormWriter;
use layout::{END, UnitFate, lay_out};
use links::LinkedUnit;

/// The reasons why a transcript could not be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The original cannot be read.
    #[error("{0}")]
    Read(#[from] ReadError),
    /// Transcripts of this form are read, but not written.
    #[error("files of this form are read, but not written: {form}")]
    Form {
        /// The form.
        form: TranscriptForm,
    },
    /// A conversation has a form that cannot be changed without loss.
    #[error("line {line} cannot be changed without loss: {why}")]
    Spelling {
        /// Line in the file, from 1.
        line: u64,
        /// The reason.
        why: String,
    },
}

/// Writes a transcript in its own form with other messages.
///
/// `windows` contains the new window of each conversation, in the order of [`TranscriptReader`],
/// with positions in its messages. A conversation without a window stays unchanged.
///
/// ```
/// use std::sync::Arc;
/// use trimtab_model::{MessageKind, Message};
/// use trimtab_wire::splice::SentMessage;
/// use trimtab_wire::transcript::{TranscriptReader, write};
///
/// let file = "{\"role\":\"user\",\"content\":\"one\"}\n\
///             {\"role\":\"user\",  \"content\":\"two\", \"x\":1.50}\n";
/// let two = TranscriptReader::new(file.as_bytes()).next().unwrap()?.messages.remove(1);
/// let summary = Message::user("it was about one").with_kind(MessageKind::Summary);
/// let window = vec![
///     SentMessage { message: Arc::new(summary), log_position: None },
///     SentMessage { message: Arc::new(two), log_position: Some(1) },
/// ];
/// let written = String::from_utf8(write(file.as_bytes(), &[window])?).unwrap();
/// let lines: Vec<&str> = written.lines().collect();
/// assert!(lines[0].contains("it was about one"));
/// assert_eq!(lines[1], "{\"role\":\"user\",  \"content\":\"two\", \"x\":1.50}");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub fn write(original: &[u8], windows: &[Vec<SentMessage>]) -> Result<Vec<u8>, WriteError> {
    let mut reader = TranscriptReader::new(original);
    let Some(reads) = reader.open()? else {
        return body::write(reader, original, windows);
    };
    let form = reads.first().map(|read| read.conversation.form);
    let mut pen: Box<dyn FormWriter> = match form {
        Some(TranscriptForm::ClaudeCode) => Box::<claude_code::ClaudeCodeWriter>::default(),
        Some(TranscriptForm::Codex) => Box::new(codex::CodexWriter),
        form => Box::new(message_per_line::MessagePerLineWriter(
            form.unwrap_or(TranscriptForm::Chat),
        )),
    };
    let lines: Vec<&str> = original
        .split_inclusive(|byte| *byte == b'\n')
        .map(readable)
        .collect();
    // Lines are numbered from 1.
    let unit = |number: usize| {
        lines
            .get(number.wrapping_sub(1))
            .map_or("", |line| line.trim())
    };
    let laid = lay_out(&reads, windows, &unit, pen.as_mut());
    let mut pieces = Vec::new();
    let mut gone = HashSet::new();
    for (at, line) in lines.iter().enumerate() {
        let number = at + 1;
        put_new(&mut pieces, laid.new.get(&number));
        match laid.fate(number) {
            UnitFate::Kept => pieces.push(kept((*line).to_owned())),
            UnitFate::Shown(text) => pieces.push(kept(text + "\n")),
            UnitFate::Removed | UnitFate::Rewritten => {
                if pen.has_links() {
                    gone.extend(links::id_of(unit(number)));
                }
            }
        }
    }
    put_new(&mut pieces, laid.new.get(&END));
    if pen.has_links() {
        gone.extend(links::missing_parents(&lines));
        // A rewritten unit may have kept its id.
        for piece in pieces.iter().filter(|piece| piece.is_new) {
            if let Some(id) = links::id_of(&piece.text) {
                gone.remove(&id);
            }
        }
        links::mend(&mut pieces, &gone);
    }
    Ok(joined(pieces))
}

/// A line, or nothing if it is broken: the reader has skipped it too.
fn readable(line: &[u8]) -> &str {
    let text = std::str::from_utf8(line).unwrap_or_default();
    let json = text.trim_start_matches('\u{feff}').trim_ascii();
    let is_readable = json.is_empty() || serde_json::from_str::<&RawValue>(json).is_ok();
    if is_readable { text } else { "" }
}

fn kept(text: String) -> LinkedUnit {
    let is_new = false;
    LinkedUnit { text, is_new }
}

fn put_new(pieces: &mut Vec<LinkedUnit>, new: Option<&Vec<String>>) {
    for text in new.into_iter().flatten() {
        pieces.push(LinkedUnit {
            text: format!("{text}\n"),
            is_new: true,
        });
    }
}

/// Joins the lines. A last line without a line break gets one if more follows.
fn joined(pieces: Vec<LinkedUnit>) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    for piece in pieces {
        if bytes.last().is_some_and(|last| *last != b'\n') {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(piece.text.as_bytes());
    }
    bytes
}
