//! Writes the answers of the two retrieval tools.
//!
//! Lines and matches are pushed as they are read, and the answer says when it is full: a store can
//! stream a large output through it and stop early.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;

use super::figures::{first_bytes, grouped};

/// The limits of an answer. Answers of the retrieval tools are never cut afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerLimits {
    /// An answer stops before the line that would exceed this many bytes, but has at least one
    /// line.
    pub max_bytes: usize,
    /// A longer line is shown up to this many bytes, with the call that returns its next part.
    pub max_line_bytes: usize,
}

/// The minimum room for an answer in bytes, because less is of no use.
const LEAST_BYTES: usize = 1_024;

/// The maximum length of the line after an answer that stopped early: what is shown, and the call
/// that returns the rest.
pub(crate) const LONGEST_REST_LINE: usize = 256;

impl AnswerLimits {
    /// The limits of each of `calls` answers to one request, in a window with room for `tokens`.
    /// That many bytes take about a third of the room.
    ///
    /// ```
    /// # use trimtab_engine::view::retrieval::AnswerLimits;
    /// assert_eq!(AnswerLimits::for_room(200_000, 1), AnswerLimits::default());
    /// assert_eq!(AnswerLimits::for_room(24_000, 3).max_bytes, 8_000);
    /// ```
    pub fn for_room(tokens: u64, calls: usize) -> Self {
        let tokens = usize::try_from(tokens).unwrap_or(usize::MAX);
        Self::of_bytes(tokens / calls.max(1))
    }

    /// The limits of an answer of at most `bytes`, within the usual limits.
    pub fn of_bytes(bytes: usize) -> Self {
        let usual = Self::default();
        let max_bytes = bytes.clamp(LEAST_BYTES, usual.max_bytes);
        Self {
            max_bytes,
            // At least two lines must fit an answer.
            max_line_bytes: usual.max_line_bytes.min(max_bytes / 2),
        }
    }
}

impl Default for AnswerLimits {
    fn default() -> Self {
        Self {
            max_bytes: 51_200,
            max_line_bytes: 8_192,
        }
    }
}

/// One line of an output, or the part of it that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerLine<'a> {
    /// The text, without its line end.
    pub text: &'a str,
    /// Bytes of the line after `text` that were not read.
    pub unread: u64,
}

impl<'a> From<&'a str> for AnswerLine<'a> {
    fn from(text: &'a str) -> Self {
        Self { text, unread: 0 }
    }
}

/// Writes a line with its number: `%5d` and two spaces, as tools that read files do.
fn number(out: &mut String, line: usize, text: &str) {
    // Writing to a string cannot fail.
    let _ = write!(out, "{line:>5}  {text}");
}

/// The answer of `tool_output_cache`, as it is written.
///
/// ```
/// use trimtab_engine::view::retrieval::{AnswerLimits, ReadAnswer};
///
/// let mut answer = ReadAnswer::new("r1", "tool_output_cache", 1, 0, 3, AnswerLimits::default());
/// for line in ["beta", "gamma"] {
///     assert!(answer.push(line).is_continue());
/// }
/// assert_eq!(answer.finish(), "    2  beta\n    3  gamma");
/// ```
#[derive(Clone, Debug)]
pub struct ReadAnswer<'a> {
    ref_id: &'a str,
    /// The tool that reads the rest.
    tool: &'a str,
    text: String,
    first: usize,
    next: usize,
    column: u64,
    stopped: bool,
    total: u64,
    limits: AnswerLimits,
}

impl<'a> ReadAnswer<'a> {
    /// An answer that starts at line `offset`, counted from 0, and `column` bytes into it. The
    /// output has `total` lines, and `tool` reads the rest.
    pub fn new(
        ref_id: &'a str,
        tool: &'a str,
        offset: usize,
        column: u64,
        total: u64,
        limits: AnswerLimits,
    ) -> Self {
        Self {
            ref_id,
            tool,
            text: String::new(),
            first: offset,
            next: offset,
            column,
            stopped: false,
            total,
            limits,
        }
    }

    fn is_empty(&self) -> bool {
        self.next == self.first
    }

    /// Adds the next line. Breaks if the answer is full; the line was then not added.
    pub fn push<'l>(&mut self, line: impl Into<AnswerLine<'l>>) -> ControlFlow<()> {
        let line = line.into();
        let shown = first_bytes(line.text, self.limits.max_line_bytes);
        // Eight bytes for the number, its spaces and the newline.
        let full = self.text.len() + shown.len() + 8 > self.limits.max_bytes;
        // The first line is always shown, or the model could never read on.
        if full && !self.is_empty() {
            self.stopped = true;
            return ControlFlow::Break(());
        }
        if !self.is_empty() {
            self.text.push('\n');
        }
        // Lines are numbered from 1 for the model, and counted from 0 in calls.
        number(&mut self.text, self.next + 1, shown);
        let more = (line.text.len() - shown.len()) as u64 + line.unread;
        if more > 0 {
            let column = self.column + shown.len() as u64;
            self.text.push_str(&self.rest_of_line(more, column));
        }
        // Only the first line starts in its middle.
        self.column = 0;
        self.next += 1;
        ControlFlow::Continue(())
    }

    fn rest_of_line(&self, more: u64, column: u64) -> String {
        let id = serde_json::Value::from(self.ref_id);
        let offset = self.next;
        format!(
            " [… {} bytes more in this line: \
             {}({{\"ref_id\":{id},\"offset\":{offset},\"limit\":1,\"column\":{column}}})]",
            grouped(more),
            self.tool,
        )
    }

    /// The complete answer, once all lines were pushed or [`push`](Self::push) broke.
    pub fn finish(mut self) -> String {
        if self.is_empty() {
            return "Offset exceeds output length.".to_owned();
        }
        if self.stopped {
            let id = serde_json::Value::from(self.ref_id);
            let (first, next) = (self.first + 1, self.next);
            let of = grouped(self.total);
            let _ = write!(
                self.text,
                "\n[trimtab: lines {first} to {next} of {of} are shown; \
                 next: {}({{\"ref_id\":{id},\"offset\":{next}}})]",
                self.tool
            );
        }
        self.text
    }
}

/// The answer of `tool_output_cache_grep`, as it is written: the ref stands once above the matches
/// of an output, and no line is repeated.
///
/// ```
/// use trimtab_engine::view::retrieval::{AnswerLimits, GrepAnswer};
///
/// let mut answer = GrepAnswer::new(50, AnswerLimits::default());
/// assert!(answer.push("r1", 0, ["alpha", "beta"]).is_continue());
/// assert!(answer.push("r1", 1, ["beta", "gamma"]).is_continue());
/// assert!(answer.push("r2", 4, ["alpha.2"]).is_continue());
/// assert_eq!(
///     answer.finish("a"),
///     "ref:r1\n    1  alpha\n    2  beta\n    3  gamma\nref:r2\n    5  alpha.2"
/// );
/// ```
#[derive(Clone, Debug)]
pub struct GrepAnswer {
    text: String,
    matches: usize,
    max: usize,
    full: bool,
    limits: AnswerLimits,
    /// The output of the last match, and its shown lines by number.
    last: (String, BTreeMap<usize, String>),
}

impl GrepAnswer {
    /// An answer of at most `max` matches.
    pub fn new(max: usize, limits: AnswerLimits) -> Self {
        Self {
            text: String::new(),
            matches: 0,
            max,
            full: max == 0,
            limits,
            last: (String::new(), BTreeMap::new()),
        }
    }

    /// The number of matches in the answer.
    pub fn matches(&self) -> usize {
        self.matches
    }

    /// Adds one match with the lines around it, the first of which is line `first` (counted from 0)
    /// of the output `ref_id`. Breaks if the answer is full, so that the search can end.
    ///
    /// A line that is too long is shown from its start. If the match is further in, pass the part
    /// of the line around it.
    pub fn push<'l, L: Into<AnswerLine<'l>>>(
        &mut self,
        ref_id: &str,
        first: usize,
        lines: impl IntoIterator<Item = L>,
    ) -> ControlFlow<()> {
        if self.full {
            return ControlFlow::Break(());
        }
        let lines = lines.into_iter().enumerate();
        let lines = lines.map(|(at, line)| (first + at, self.written(first + at, line.into())));
        let lines: BTreeMap<usize, String> = lines.collect();
        let found = self.grouped(ref_id, &lines);
        // The first match is always shown, or the search could never continue.
        if self.matches > 0 && self.text.len() + found.len() > self.limits.max_bytes {
            self.full = true;
            return ControlFlow::Break(());
        }
        self.text.push_str(&found);
        self.last = (ref_id.to_owned(), lines);
        self.matches += 1;
        self.full = self.matches >= self.max;
        if self.full {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Formats a line with its number, counted from 0.
    fn written(&self, at: usize, line: AnswerLine<'_>) -> String {
        let shown = first_bytes(line.text, self.limits.max_line_bytes);
        let mut written = String::new();
        number(&mut written, at + 1, shown);
        let more = (line.text.len() - shown.len()) as u64 + line.unread;
        if more > 0 {
            let _ = write!(written, " [… {} bytes more in this line]", grouped(more));
        }
        written
    }

    fn grouped(&self, ref_id: &str, lines: &BTreeMap<usize, String>) -> String {
        let (last_ref, shown) = &self.last;
        let is_same = self.matches > 0 && last_ref == ref_id;
        let mut found = String::new();
        if !is_same {
            let gap = if self.matches > 0 { "\n" } else { "" };
            found = format!("{gap}ref:{ref_id}");
        }
        // The contexts of neighbouring matches overlap. A line that was cut around another match is
        // shown again, because its text differs.
        let is_new = |(at, line): &(&usize, &String)| !is_same || shown.get(at) != Some(line);
        for (_, line) in lines.iter().filter(is_new) {
            found.push('\n');
            found.push_str(line);
        }
        found
    }

    /// The complete answer. The caller says whether there are more matches.
    pub fn finish(self, pattern: &str) -> String {
        if self.matches == 0 {
            return format!("No matches for: {pattern}");
        }
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tools::READ;

    const SMALL: AnswerLimits = AnswerLimits {
        max_bytes: 30,
        max_line_bytes: 10,
    };

    #[test]
    fn a_full_answer_says_where_to_go_on() {
        let mut answer = ReadAnswer::new("r", READ, 0, 0, 1_234, SMALL);
        assert!(answer.push("one").is_continue());
        assert!(answer.push("two").is_continue());
        assert!(answer.push("three three").is_break());
        assert_eq!(
            answer.finish(),
            "    1  one\n    2  two\n\
             [trimtab: lines 1 to 2 of 1,234 are shown; next: tool_output_cache({\"ref_id\":\"r\",\"offset\":2})]"
        );
    }

    #[test]
    fn a_long_line_is_paged() {
        let mut answer = ReadAnswer::new("r", READ, 3, 100, 9, SMALL);
        let line = AnswerLine {
            text: "ééééééé",
            unread: 1_000,
        };
        assert!(answer.push(line).is_continue());
        assert_eq!(
            answer.finish(),
            "    4  ééééé [… 1,004 bytes more in this line: \
             tool_output_cache({\"ref_id\":\"r\",\"offset\":3,\"limit\":1,\"column\":110})]"
        );
    }

    #[test]
    fn empty_result_is_stated() {
        let read = ReadAnswer::new("r", READ, 3, 0, 3, SMALL);
        assert_eq!(read.finish(), "Offset exceeds output length.");
        assert_eq!(
            GrepAnswer::new(5, SMALL).finish("a.b"),
            "No matches for: a.b"
        );
    }

    #[test]
    fn a_grep_answer_stays_within_its_bytes() {
        let mut answer = GrepAnswer::new(9, SMALL);
        assert!(answer.push("r", 0, ["first"]).is_continue());
        assert!(answer.push("r", 7, ["second one"]).is_break());
        assert_eq!(answer.matches(), 1);
        assert_eq!(answer.finish("s"), "ref:r\n    1  first");
    }

    #[test]
    fn grouped_matches_repeat_neither_refs_nor_lines() {
        let limits = AnswerLimits::default();
        let mut answer = GrepAnswer::new(9, limits);
        let _ = answer.push("r", 0, ["one", "two"]);
        let _ = answer.push("r", 0, ["one", "two", "three"]);
        // Another part of a long line is no repetition.
        let _ = answer.push("r", 2, ["[… column 9] three"]);
        assert_eq!(
            answer.finish("o"),
            "ref:r\n    1  one\n    2  two\n    3  three\n    3  [… column 9] three"
        );
    }
}
