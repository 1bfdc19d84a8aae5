//! Detects the form of a transcript and reads its conversations one by one.

use std::collections::VecDeque;
use std::io::BufRead;

use serde_json::value::RawValue;
use trimtab_model::work;

use super::form::{LineContent, recognise};
use super::lines::TranscriptLines;
use super::message_per_line::MessagePerLine;
use super::thread::ReadConversation;
use super::{
    Conversation, ReadError, TranscriptWarning, claude_code, codex, document, private_marks,
};

/// The maximum number of lines before one must be recognised, because logs start with lines of
/// their own.
const LINES_TO_RECOGNISE: u64 = 32;

/// A log whose lines together form conversations.
pub(super) trait TranscriptLog {
    /// Reads line `number` of the file; fails if it is not JSON.
    fn line(&mut self, number: usize, line: &str) -> Result<(), serde_json::Error>;
    /// Returns the conversations.
    fn finish(self: Box<Self>) -> Vec<ReadConversation>;
}

/// Reads the conversations of one transcript.
///
/// The iterator ends after the first error. A file with one conversation per line is read line by
/// line; a log is one session and is read as a whole.
pub struct TranscriptReader<R> {
    lines: TranscriptLines<R>,
    state: ReaderState,
    warnings: Vec<TranscriptWarning>,
}

enum ReaderState {
    Start,
    /// The current line is a conversation, and so are all further ones.
    Each,
    Read(VecDeque<Conversation>),
}

impl<R: BufRead> TranscriptReader<R> {
    /// A reader of `input`, which is opened when the first conversation is requested.
    pub fn new(input: R) -> Self {
        Self {
            lines: TranscriptLines::new(input),
            state: ReaderState::Start,
            warnings: Vec::new(),
        }
    }

    /// Everything that was skipped so far.
    pub fn warnings(&self) -> &[TranscriptWarning] {
        &self.warnings
    }

    fn start(&mut self) -> Result<Option<Conversation>, ReadError> {
        let Some(read) = self.open()? else {
            self.state = ReaderState::Each;
            return self.current().map(Some);
        };
        if read.is_empty() {
            return Err(ReadError::Empty);
        }
        let conversations = read.into_iter().map(|read| read.conversation);
        self.state = ReaderState::Read(conversations.collect());
        self.step()
    }

    /// Detects the form of the file and reads it if it is a log; none if each line is a
    /// conversation, starting with the current one.
    pub(super) fn open(&mut self) -> Result<Option<Vec<ReadConversation>>, ReadError> {
        if !self.lines.advance()? {
            return Err(ReadError::Empty);
        }
        // A document may be pretty-printed over many lines.
        let fault = self.join_document().err();
        let log: Box<dyn TranscriptLog> = match self.recognise(fault)? {
            LineContent::Conversation => return Ok(None),
            LineContent::ClaudeCode => Box::<claude_code::ClaudeCodeSession>::default(),
            LineContent::Codex => Box::<codex::CodexRollout>::default(),
            LineContent::Message => Box::<MessagePerLine>::default(),
        };
        let mut reads = self.read_log(log)?;
        for read in &mut reads {
            private_marks::take_behind_marks(&mut read.conversation);
        }
        Ok(Some(reads))
    }

    /// If the first line starts a document that spans several lines, reads all of it.
    fn join_document(&mut self) -> Result<(), ReadError> {
        match serde_json::from_str::<&RawValue>(self.lines.text()?) {
            Ok(_) => return Ok(()),
            // The end of the line came before the end of the value.
            Err(error) if error.is_eof() => self.lines.take_rest()?,
            Err(error) => return Err(ReadError::syntax(&error, self.lines.number)),
        }
        let joined = self.raw().map(drop);
        // It may be a log whose first line is broken.
        if joined.is_err() {
            self.lines.return_rest();
        }
        joined
    }

    /// Finds the first line of a known form. `fault` is the fault of the first line, if it has one.
    fn recognise(&mut self, mut fault: Option<ReadError>) -> Result<LineContent, ReadError> {
        let first = self.lines.number;
        loop {
            match self.raw().map(recognise) {
                // A message behind a broken line may be an inner line of a broken document.
                Ok(Some(content)) if fault.is_none() || content.is_log() => return Ok(content),
                Ok(_) => {}
                Err(error) => {
                    self.warn_of_skipped(&error);
                    fault.get_or_insert(error);
                }
            }
            // Give up early, so that a large file of another kind is not read completely.
            if self.lines.number - first >= LINES_TO_RECOGNISE || !self.lines.advance()? {
                self.warnings.clear();
                return Err(fault.unwrap_or(ReadError::Form { line: first }));
            }
        }
    }

    fn raw(&self) -> Result<&RawValue, ReadError> {
        serde_json::from_str(self.lines.text()?)
            .map_err(|error| ReadError::syntax(&error, self.lines.number))
    }

    /// The number and trimmed text of the current line.
    pub(super) fn current_text(&self) -> Result<(u64, &str), ReadError> {
        Ok((self.lines.number, self.lines.whole()?))
    }

    /// Moves to the next line; false at the end.
    pub(super) fn next_line(&mut self) -> Result<bool, ReadError> {
        self.lines.advance()
    }

    /// The conversation on the current line.
    pub(super) fn current(&self) -> Result<Conversation, ReadError> {
        let line = self.lines.number;
        let read = document::read(self.lines.text()?);
        let read = read.map_err(|error| ReadError::syntax(&error, line))?;
        read.ok_or(ReadError::Form { line })
    }

    fn read_log(
        &mut self,
        mut log: Box<dyn TranscriptLog>,
    ) -> Result<Vec<ReadConversation>, ReadError> {
        loop {
            if let Err(error) = self.read_line(log.as_mut()) {
                self.warn_of_skipped(&error);
            }
            if !self.lines.advance()? {
                return Ok(log.finish());
            }
        }
    }

    fn read_line(&self, log: &mut dyn TranscriptLog) -> Result<(), ReadError> {
        let text = self.lines.text()?;
        work::step_text(text);
        let number = usize::try_from(self.lines.number).unwrap_or(usize::MAX);
        match log.line(number, text) {
            Err(error) if !error.is_data() => Err(ReadError::syntax(&error, self.lines.number)),
            // JSON that is not an object has no meaning in any log.
            _ => Ok(()),
        }
    }

    /// Records that the current line is skipped. A log has broken lines after a crash, and an
    /// incomplete last line while it is written.
    fn warn_of_skipped(&mut self, error: &ReadError) {
        let is_cut = match error {
            ReadError::Syntax { message, .. } => message.starts_with("EOF"),
            // It may be cut within a character.
            ReadError::Utf8 { .. } => true,
            _ => false,
        };
        let message = if is_cut && self.lines.is_unfinished() {
            "the last line is cut off: the agent may still be writing".to_owned()
        } else {
            format!("the line is skipped: {error}")
        };
        self.warnings.push(TranscriptWarning {
            line: self.lines.number,
            message,
        });
    }

    fn step(&mut self) -> Result<Option<Conversation>, ReadError> {
        match &mut self.state {
            ReaderState::Start => self.start(),
            ReaderState::Each if self.lines.advance()? => self.current().map(Some),
            ReaderState::Each => Ok(None),
            ReaderState::Read(read) => Ok(read.pop_front()),
        }
    }
}

impl<R: BufRead> Iterator for TranscriptReader<R> {
    type Item = Result<Conversation, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        // An empty state ends the iterator, as it promises.
        if step.is_err() {
            self.state = ReaderState::Read(VecDeque::new());
        }
        step.transpose()
    }
}
