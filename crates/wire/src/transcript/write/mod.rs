//! Writes transcripts back in the form in which they were read.
//!
//! Unchanged messages keep their bytes, including unknown fields; messages that are not sent are
//! removed; our own messages are written as user messages of that form.

mod atif;
mod body;
mod claude_code;
mod codex;
mod copilot;
mod elements;
mod form_writer;
mod gemini;
mod layout;
mod links;
mod message_per_line;
mod opencode;
mod opencode_parts;
mod patch;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;

use serde_json::value::RawValue;

use super::thread::ReadConversation;
use super::{ReadError, TranscriptForm, TranscriptReader};
use crate::splice::SentMessage;
use form_writer::FormWriter;
use layout::{END, TranscriptLayout, UnitFate, lay_out};
use links::LinkedUnit;

/// The reasons why a transcript could not be written.
#[derive(Debug)]
#[non_exhaustive]
pub enum WriteError {
    /// The original cannot be read.
    Read(ReadError),
    /// A conversation has a form that cannot be changed without loss.
    Spelling {
        /// Line in the file, from 1.
        line: u64,
        /// The reason.
        why: String,
    },
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Spelling { line, why } => {
                write!(f, "line {line} cannot be changed without loss: {why}")
            }
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) => Some(error),
            Self::Spelling { .. } => None,
        }
    }
}

impl From<ReadError> for WriteError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
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
    // The reader has checked that it is UTF-8.
    let text = String::from_utf8_lossy(original);
    if let Some(list) = gemini::document(&text) {
        return Ok(elements::write(
            &text,
            list,
            &reads,
            windows,
            &mut gemini::GeminiWriter::default(),
        ));
    }
    let form = reads.first().map(|read| read.conversation.form);
    let mut pen: Box<dyn FormWriter> = match form {
        Some(TranscriptForm::ClaudeCode) => Box::<claude_code::ClaudeCodeWriter>::default(),
        Some(TranscriptForm::Codex) => Box::new(codex::CodexWriter),
        Some(TranscriptForm::CopilotCli) => Box::<copilot::CopilotWriter>::default(),
        Some(TranscriptForm::GeminiCli) => Box::<gemini::GeminiWriter>::default(),
        form => Box::new(message_per_line::MessagePerLineWriter(
            form.unwrap_or(TranscriptForm::Chat),
        )),
    };
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    // Lines are numbered from 1.
    let unit = |number: usize| {
        lines
            .get(number.wrapping_sub(1))
            .map_or("", |line| line.trim())
    };
    let laid = lay_out_all(&reads, windows, &unit, pen.as_mut());
    let mut pieces = Vec::new();
    let mut gone = HashSet::new();
    for (at, line) in lines.iter().enumerate() {
        let number = at + 1;
        // With something new behind it, a cut line would be a broken line in the middle.
        if is_cut(line) {
            continue;
        }
        put_new(&mut pieces, laid.new.get(&number));
        match laid.fate(number) {
            UnitFate::Kept => pieces.push(kept((*line).to_owned())),
            UnitFate::Shown(text) => pieces.push(kept(text + "\n")),
            UnitFate::Removed | UnitFate::Rewritten => {
                gone.extend(
                    pen.links()
                        .and_then(|(name, _)| links::name_of(unit(number), name)),
                );
            }
        }
    }
    put_new(&mut pieces, laid.new.get(&END));
    if let Some(fields) = pen.links() {
        // A rewritten unit may have kept its id.
        for piece in pieces.iter().filter(|piece| piece.is_new) {
            if let Some(name) = links::name_of(&piece.text, fields.0) {
                gone.remove(&name);
            }
        }
        links::mend(&mut pieces, &gone, fields);
    }
    Ok(joined(pieces))
}

/// True for a last line that is cut off: the reader left it out too.
fn is_cut(line: &str) -> bool {
    let is_last = !line.ends_with('\n');
    is_last && serde_json::from_str::<&RawValue>(line).is_err_and(|error| error.is_eof())
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

/// The layout of all conversations of a file.
struct FileLayout {
    fates: BTreeMap<usize, UnitFate>,
    new: BTreeMap<usize, Vec<String>>,
    /// The units of unchanged conversations.
    others: BTreeSet<usize>,
}

impl FileLayout {
    /// The fate of a unit. A unit without messages goes if its neighbours do.
    fn fate(&self, unit: usize) -> UnitFate {
        if let Some(fate) = self.fates.get(&unit) {
            return fate.clone();
        }
        if self.others.contains(&unit) {
            return UnitFate::Kept;
        }
        let before = self.fates.range(..unit).next_back();
        let after = self.fates.range(unit..).next();
        let is_gone =
            |found: Option<(&usize, &UnitFate)>| matches!(found, Some((_, UnitFate::Removed)));
        let behind_all = after.is_none();
        // Snapshots and notes between removed messages would refer to something that is gone.
        if is_gone(before) && (is_gone(after) || behind_all) {
            UnitFate::Removed
        } else {
            UnitFate::Kept
        }
    }
}

fn lay_out_all<'a>(
    reads: &'a [ReadConversation],
    windows: &'a [Vec<SentMessage>],
    unit: &impl Fn(usize) -> &'a str,
    pen: &mut dyn FormWriter,
) -> FileLayout {
    let mut laid = FileLayout {
        fates: BTreeMap::new(),
        new: BTreeMap::new(),
        others: BTreeSet::new(),
    };
    for (at, read) in reads.iter().enumerate() {
        // Without a new window the conversation stays, also if others in the same file change.
        let Some(sent) = windows.get(at) else {
            let units = read.origins.iter().map(|origin| origin.unit);
            laid.others.extend(units);
            continue;
        };
        let TranscriptLayout { fates, new } = lay_out(read, sent, unit, pen);
        laid.fates.extend(fates);
        // If the line that takes messages back stayed, the client would apply it to others.
        for unit in &read.taken_back {
            laid.fates.entry(*unit).or_insert(UnitFate::Removed);
        }
        for (before, texts) in new {
            laid.new.entry(before).or_default().extend(texts);
        }
    }
    laid
}
