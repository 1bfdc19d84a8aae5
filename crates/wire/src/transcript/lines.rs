//! The lines of a transcript, one in memory at a time.

use std::io::{BufRead, Cursor, Read as _};

use super::ReadError;

/// The mark that some editors write at the start of a file; meaningless in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The longest line or document in bytes, far more than any window holds.
const LONGEST: u64 = 256 << 20;

/// The lines of a transcript, without blank ones.
#[derive(Debug)]
pub(super) struct TranscriptLines<R> {
    /// Lines that were read too early. They come before the input.
    returned: Cursor<Vec<u8>>,
    input: R,
    buffer: Vec<u8>,
    /// Number of the current line, from 1.
    pub(super) number: u64,
}

impl<R: BufRead> TranscriptLines<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            returned: Cursor::default(),
            input,
            buffer: Vec::new(),
            number: 0,
        }
    }

    /// Moves to the next line; false at the end.
    pub(super) fn advance(&mut self) -> Result<bool, ReadError> {
        loop {
            // The buffer is reused, so only the longest line takes memory.
            self.buffer.clear();
            if self.returned.read_until(b'\n', &mut self.buffer)? == 0 {
                let mut input = (&mut self.input).take(LONGEST);
                if input.read_until(b'\n', &mut self.buffer)? == 0 {
                    return Ok(false);
                }
                self.check_length(self.buffer.len())?;
            }
            self.number += 1;
            if self.number == 1 && self.buffer.starts_with(BYTE_ORDER_MARK) {
                self.buffer.drain(..BYTE_ORDER_MARK.len());
            }
            if !self.buffer.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    /// Appends all further lines to the current one.
    pub(super) fn take_rest(&mut self) -> Result<(), ReadError> {
        let rest = (&mut self.input).take(LONGEST);
        let read = { rest }.read_to_end(&mut self.buffer)?;
        self.check_length(read)
    }

    /// Fails if so many bytes were read that the limit ended them.
    fn check_length(&self, read: usize) -> Result<(), ReadError> {
        if (read as u64) < LONGEST || self.buffer.ends_with(b"\n") {
            return Ok(());
        }
        let line = self.number + 1;
        Err(ReadError::TooLong { line })
    }

    /// Undoes [`take_rest`](Self::take_rest).
    pub(super) fn return_rest(&mut self) {
        let end = memchr::memchr(b'\n', &self.buffer).map_or(self.buffer.len(), |at| at + 1);
        self.returned = Cursor::new(self.buffer.split_off(end));
    }

    /// The current line.
    pub(super) fn text(&self) -> Result<&str, ReadError> {
        self.utf8(self.buffer.trim_ascii_end())
    }

    /// The current line with its line break.
    pub(super) fn whole(&self) -> Result<&str, ReadError> {
        self.utf8(&self.buffer)
    }

    fn utf8<'a>(&self, text: &'a [u8]) -> Result<&'a str, ReadError> {
        std::str::from_utf8(text).map_err(|error| {
            let valid = self.buffer.get(..error.valid_up_to()).unwrap_or_default();
            let before = memchr::memchr_iter(b'\n', valid).count();
            let line_start = memchr::memrchr(b'\n', valid).map_or(0, |at| at + 1);
            ReadError::Utf8 {
                line: self.number.saturating_add(before as u64),
                column: (valid.len() - line_start) as u64 + 1,
            }
        })
    }

    /// True if the current line has no line break: it is the last of the file, and may still be
    /// being written.
    pub(super) fn is_unfinished(&self) -> bool {
        self.buffer.last() != Some(&b'\n')
    }
}
