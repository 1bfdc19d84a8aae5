//! Errors of reading a transcript.

use std::io;

use thiserror::Error;

use super::TranscriptForm;

/// The reasons why a transcript could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Reading the bytes failed.
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
    /// It is empty.
    #[error("empty: there is no conversation in it")]
    Empty,
    /// It is not JSON.
    #[error("broken JSON: {message}")]
    Syntax {
        /// Line in the file, from 1.
        line: u64,
        /// Byte in the line, from 1.
        column: u64,
        /// The expected syntax.
        message: String,
    },
    /// It is not UTF-8.
    #[error("not UTF-8 text")]
    Utf8 {
        /// Line in the file, from 1.
        line: u64,
        /// Byte in the line, from 1.
        column: u64,
    },
    /// A line or a document is longer than any conversation.
    #[error("a line of more than 256 MiB")]
    TooLong {
        /// Line in the file, from 1.
        line: u64,
    },
    /// It is JSON, but in no known form.
    #[error("JSON, but not a transcript in a form that is understood")]
    Form {
        /// Line in the file, from 1.
        line: u64,
    },
}

impl ReadError {
    /// Line and column of the fault, if it has a position.
    pub fn position(&self) -> Option<(u64, u64)> {
        match *self {
            Self::Io(_) | Self::Empty => None,
            Self::Syntax { line, column, .. } | Self::Utf8 { line, column } => Some((line, column)),
            Self::Form { line } | Self::TooLong { line } => Some((line, 1)),
        }
    }

    /// How to fix it, in one line.
    pub fn hint(&self) -> String {
        match self {
            Self::Io(_) => "check that the file is there and may be read".to_owned(),
            Self::Empty | Self::Form { .. } | Self::TooLong { .. } => {
                let forms: Vec<String> = TranscriptForm::ALL
                    .iter()
                    .map(ToString::to_string)
                    .collect();
                format!("supported formats: {}", forms.join("; "))
            }
            Self::Syntax { .. } => {
                "a transcript is one JSON document, or one on each line; in a file with one on each \
                 line, remove the broken line"
                    .to_owned()
            }
            Self::Utf8 { .. } => "save the file as UTF-8".to_owned(),
        }
    }

    /// A syntax error at `line` of the file.
    pub(super) fn syntax(error: &serde_json::Error, line: u64) -> Self {
        // The parser counts lines within the text that it was given, which may start later in the
        // file.
        let inside = u64::try_from(error.line()).unwrap_or(1).max(1);
        let full = error.to_string();
        let message = full
            .rsplit_once(" at line ")
            .map_or(full.as_str(), |(message, _)| message);
        Self::Syntax {
            line: line.saturating_add(inside - 1),
            column: u64::try_from(error.column()).unwrap_or(1).max(1),
            message: message.to_owned(),
        }
    }
}

/// Something that was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptWarning {
    /// Line in the file, from 1.
    pub line: u64,
    /// A description.
    pub message: String,
}
