//! Reads lines at a cost that depends only on the lines read.
//!
//! The line index finds the frame of a line, so only the frames with the requested lines are
//! decompressed. The retrieval tools and `trimtab output read` use it.

use std::borrow::Cow;

use crate::frames::{FRAME, frame_count};
use crate::source::{FrameSource, OpenOutput};
use crate::{Error, Result};

/// The lines to read, with size limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRange {
    /// The first line, counted from 0.
    pub offset: u64,
    /// The number of lines.
    pub limit: u64,
    /// Longer lines are clipped to this many bytes; [`OpenOutput::read_at`] reads the rest.
    pub max_line_bytes: usize,
    /// Reading stops after the line that reaches this many bytes in total.
    pub max_bytes: usize,
}

impl LineRange {
    /// `limit` lines from `offset`, lines clipped at 64 KiB, 1 MiB in all.
    pub fn new(offset: u64, limit: u64) -> Self {
        Self {
            offset,
            limit,
            max_line_bytes: FRAME,
            max_bytes: 1024 * 1024,
        }
    }
}

/// One line, without its newline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputLine {
    /// Its number, counted from 0.
    pub number: u64,
    /// Its position in the output.
    pub start: u64,
    /// Its length.
    pub byte_size: u64,
    /// The line, or the start of a clipped one.
    pub bytes: Vec<u8>,
}

impl OutputLine {
    /// True if `bytes` is only the start.
    pub fn is_clipped(&self) -> bool {
        (self.bytes.len() as u64) < self.byte_size
    }

    /// The line as text, without a trailing carriage return.
    pub fn text(&self) -> Cow<'_, str> {
        // In a clipped line, a final carriage return may be in the middle of the line.
        let bytes = match self.bytes.strip_suffix(b"\r") {
            Some(stripped) if !self.is_clipped() => stripped,
            _ => &self.bytes,
        };
        String::from_utf8_lossy(bytes)
    }
}

/// The lines of a [`LineRange`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputLines {
    /// The lines.
    pub lines: Vec<OutputLine>,
    /// The number of lines of the output.
    pub line_count: u64,
    /// The first line that was not returned, if there are more.
    pub next: Option<u64>,
}

impl OpenOutput {
    /// Reads lines. Text is split at each newline, so an empty line follows a final newline.
    pub fn lines(&self, range: LineRange) -> Result<OutputLines> {
        let line_count = self.line_count();
        if range.offset >= line_count {
            return Err(Error::PastEnd {
                offset: range.offset,
                line_count,
            });
        }
        let mut cursor = LineCursor::at_line(self.source(), range.offset)?;
        let end = range.offset.saturating_add(range.limit).min(line_count);
        let mut lines = Vec::new();
        let mut bytes = 0;
        let mut next = range.offset;
        while next < end && bytes < range.max_bytes {
            let line = cursor.line(next, range.max_line_bytes)?;
            // The newline counts too. Otherwise a million empty lines would cost nothing.
            bytes += line.bytes.len() + 1;
            lines.push(line);
            next += 1;
        }
        let next = (next < line_count).then_some(next);
        Ok(OutputLines {
            lines,
            line_count,
            next,
        })
    }
}

/// A position in an output, with its frame.
struct LineCursor<'a> {
    source: &'a dyn FrameSource,
    number: u64,
    frame: Vec<u8>,
    at: usize,
}

impl<'a> LineCursor<'a> {
    /// The first byte of `line`.
    fn at_line(source: &'a dyn FrameSource, line: u64) -> Result<Self> {
        let mut cursor = Self {
            source,
            number: 0,
            frame: Vec::new(),
            at: 0,
        };
        // Line n starts after newline n - 1. The first line has no newline before it.
        match line.checked_sub(1) {
            Some(newline) => cursor.skip_newline(newline)?,
            None => cursor.load(0)?,
        }
        Ok(cursor)
    }

    fn load(&mut self, number: u64) -> Result<()> {
        self.number = number;
        self.at = 0;
        if number < frame_count(self.source.byte_size()) {
            return self.source.frame(number, &mut self.frame);
        }
        self.frame.clear();
        Ok(())
    }

    /// Moves to the byte after newline `number`.
    fn skip_newline(&mut self, number: u64) -> Result<()> {
        let (frame, before) = self.source.frame_of_newline(number)?;
        self.load(frame)?;
        // The index leads to the frame only. Within it, newlines are counted.
        let nth = usize::try_from(number - before).unwrap_or(usize::MAX);
        let found = memchr::memchr_iter(b'\n', &self.frame).nth(nth);
        let found = found.ok_or_else(|| Error::damaged("the line index"))?;
        self.at = found + 1;
        Ok(())
    }

    fn position(&self) -> u64 {
        self.number * FRAME as u64 + self.at as u64
    }

    /// Reads the current line and moves after its newline.
    fn line(&mut self, number: u64, max: usize) -> Result<OutputLine> {
        let start = self.position();
        let mut bytes = Vec::new();
        let end = loop {
            let rest = self.frame.get(self.at..).unwrap_or_default();
            let newline = memchr::memchr(b'\n', rest);
            let piece = newline.map_or(rest, |at| rest.get(..at).unwrap_or_default());
            let room = max.saturating_sub(bytes.len()).min(piece.len());
            bytes.extend_from_slice(piece.get(..room).unwrap_or_default());
            if let Some(newline) = newline {
                self.at += newline + 1;
                break self.position() - 1;
            }
            self.at = self.frame.len();
            if self.position() >= self.source.byte_size() {
                break self.source.byte_size();
            }
            if bytes.len() < max {
                self.load(self.number + 1)?;
            } else if number < self.source.newlines() {
                // The end of a long line is looked up in the index, and the rest is not read.
                self.skip_newline(number)?;
                break self.position() - 1;
            } else {
                break self.source.byte_size();
            }
        };
        Ok(OutputLine {
            number,
            start,
            byte_size: end - start,
            bytes,
        })
    }
}
