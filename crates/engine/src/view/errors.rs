//! Finds the lines of errors in an output.

use std::ops::Range;

use super::structure::errors::{find_errors, trace_length};
use super::structure::lines::TextLines;

/// The byte ranges of each error with the lines of its trace.
pub(crate) fn error_lines(text: &str) -> Vec<Range<usize>> {
    let lines = TextLines::new(text);
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for at in find_errors(&lines) {
        let last = at + trace_length(&lines, at);
        let start = lines.end(at) - lines.line_with_newline(at).len();
        let end = lines.end(last);
        match ranges.last_mut() {
            Some(before) if before.end >= start => before.end = before.end.max(end),
            _ => ranges.push(start..end),
        }
    }
    ranges
}
