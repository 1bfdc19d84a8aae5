//! The lines of a text with their byte positions.

use std::ops::Range;

use trimtab_model::work;

use crate::view::errors::error_lines;

/// The lines of a text, with their ends.
pub(super) struct TextLines<'a> {
    text: &'a str,
    /// The start of each line, and the end of the text.
    starts: Vec<usize>,
}

impl<'a> TextLines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        work::step_text(text);
        let mut starts = vec![0];
        starts.extend(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1));
        // A final newline ends the last line and starts no further one.
        if starts.last() != Some(&text.len()) {
            starts.push(text.len());
        }
        Self { text, starts }
    }

    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Line `at` with its newline; empty past the end.
    pub(super) fn line_with_newline(&self, at: usize) -> &'a str {
        let bounds = self.starts.get(at).zip(self.starts.get(at + 1));
        bounds
            .and_then(|(&from, &to)| self.text.get(from..to))
            .unwrap_or_default()
    }

    /// Line `at` without its newline; a carriage return stays.
    pub(super) fn get(&self, at: usize) -> &'a str {
        let line = self.line_with_newline(at);
        line.strip_suffix('\n').unwrap_or(line)
    }

    /// The end of line `at`, including its newline.
    pub(super) fn end(&self, at: usize) -> usize {
        self.starts.get(at + 1).copied().unwrap_or(self.text.len())
    }

    /// The errors, each with the lines of its trace.
    pub(super) fn errors(&self) -> Vec<Range<usize>> {
        let found = error_lines(self.text).into_iter();
        found
            .map(|bytes| self.line_at_byte(bytes.start)..self.line_at_byte(bytes.end - 1) + 1)
            .collect()
    }

    /// The line that contains byte `byte`.
    pub(super) fn line_at_byte(&self, byte: usize) -> usize {
        self.starts
            .partition_point(|start| *start <= byte)
            .saturating_sub(1)
    }
}
