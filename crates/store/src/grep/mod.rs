//! Searches outputs in bounded time and memory for any pattern.
//!
//! - A pattern is literal by default. A regular expression is compiled within a size limit, and
//!   gives up when it becomes too expensive (see `bounded_regex`).
//! - Outputs are streamed frame by frame. Lines longer than a window are searched window by window
//!   (see `search_input`).
//! - Matches, answer size, work and time are limited, and the answer reports a limit that was
//!   reached.

mod bounded_regex;
#[cfg(unix)]
mod file;
mod frame_prefetch;
mod match_collector;
mod pattern;
mod search_input;

use std::cell::{Cell, RefCell};

use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};

use crate::source::{FrameSource, OpenOutput};
use crate::{Error, LineRange, OutputLine, Result};
use match_collector::MatchCollector;
use pattern::SearchPattern;
use search_input::{SearchInput, WorkBudget};

/// The maximum number of context lines before or after a match.
const MOST_CONTEXT: usize = 50;
/// The maximum size of an answer, more than any window could use.
const MOST_BYTES: usize = 1024 * 1024;

/// A search query.
///
/// ```
/// # use trimtab_store::{MemoryStore, Put, Query, SessionId, Store};
/// # let (store, session) = (MemoryStore::new(), SessionId::new("s")?);
/// let output = store.put(&session, Put::new("c1", "alpha\nbeta\ngamma"))?;
/// let found = store.grep(&session, Some(output.id()), &Query::literal("et").context(0, 1))?;
/// let lines: Vec<_> = found.matches[0].lines.iter().map(|line| line.text()).collect();
/// assert_eq!(lines, ["beta", "gamma"]);
/// # Ok::<_, trimtab_store::Error>(())
/// ```
#[derive(Clone)]
pub struct Query<'a> {
    /// The text or the regular expression.
    pub pattern: String,
    /// True if the pattern is a regular expression.
    pub regex: bool,
    /// True to ignore case.
    pub ignore_case: bool,
    /// Context lines before each match, at most 50.
    pub before: usize,
    /// Context lines after each match, at most 50.
    pub after: usize,
    /// The number of matches to skip.
    pub skip_matches: usize,
    /// The search stops after this many matches.
    pub max_matches: usize,
    /// True to skip binary outputs; the answer lists them.
    pub text_only: bool,
    /// Longer lines are clipped to this many bytes around the match.
    pub max_line_bytes: usize,
    /// The search stops at this cost. A searched byte costs 1 for a literal and 4 for a regular
    /// expression.
    pub max_work: u64,
    /// Called now and then; the search stops when it returns true.
    pub expired: Option<&'a dyn Fn() -> bool>,
}

impl<'a> Query<'a> {
    /// Searches for `text` literally.
    pub fn literal(text: impl Into<String>) -> Self {
        Self {
            pattern: text.into(),
            regex: false,
            ignore_case: false,
            before: 0,
            after: 0,
            skip_matches: 0,
            max_matches: 200,
            text_only: false,
            max_line_bytes: 2_000,
            max_work: u64::MAX,
            expired: None,
        }
    }

    /// Searches for a regular expression.
    pub fn regex(pattern: impl Into<String>) -> Self {
        Self {
            regex: true,
            ..Self::literal(pattern)
        }
    }

    /// Adds context lines.
    #[must_use]
    pub fn context(mut self, before: usize, after: usize) -> Self {
        self.before = before;
        self.after = after;
        self
    }

    /// Limits the number of matches.
    #[must_use]
    pub fn max_matches(mut self, max: usize) -> Self {
        self.max_matches = max;
        self
    }

    /// Limits the time: `expired` is called every few frames.
    #[must_use]
    pub fn until(mut self, expired: &'a dyn Fn() -> bool) -> Self {
        self.expired = Some(expired);
        self
    }

    /// Checks the pattern.
    pub fn check(&self) -> Result<()> {
        SearchPattern::new(self, pattern::needs_crlf_mode(self)).map(drop)
    }

    /// Reads the context of a match from the line index.
    fn reread_context(&self, stored: &OpenOutput, found: &mut SearchMatch) -> Result<()> {
        let line = found.line;
        let first = line.saturating_sub(self.before.min(MOST_CONTEXT) as u64);
        let last = stored
            .line_count()
            .min(line + 1 + self.after.min(MOST_CONTEXT) as u64);
        let mut range = LineRange::new(first, line - first);
        range.max_line_bytes = self.max_line_bytes;
        let before = stored.lines(range)?.lines;
        let mut lines: Vec<MatchLine> = before.into_iter().map(context_line).collect();
        lines.extend(found.lines.drain(..).filter(|line| line.matched));
        range.offset = line + 1;
        range.limit = last.saturating_sub(range.offset);
        if range.limit > 0 {
            lines.extend(stored.lines(range)?.lines.into_iter().map(context_line));
        }
        found.lines = lines;
        Ok(())
    }

    pub(crate) fn start(&self) -> Result<OutputSearch<'_>> {
        let crlf = pattern::needs_crlf_mode(self);
        let mut searcher = SearcherBuilder::new();
        searcher
            // Binary outputs are detected by our own rule before the search.
            .binary_detection(BinaryDetection::none())
            .bom_sniffing(false)
            .line_number(true)
            .before_context(self.before.min(MOST_CONTEXT))
            .after_context(self.after.min(MOST_CONTEXT));
        if crlf {
            searcher.line_terminator(grep_matcher::LineTerminator::crlf());
        }
        Ok(OutputSearch {
            query: self,
            pattern: SearchPattern::new(self, crlf)?,
            searcher: searcher.build(),
            found: SearchResults::default(),
            bytes: 0,
            work_left: Cell::new(self.max_work),
        })
    }
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchResults {
    /// The matches, in order.
    pub matches: Vec<SearchMatch>,
    /// The limit at which the search stopped, if any.
    pub stopped: Option<SearchStop>,
    /// The number of skipped matches.
    pub skipped: usize,
    /// Outputs that were skipped because they are binary.
    pub binary: Vec<String>,
    /// Outputs that could not be searched completely because they are damaged.
    pub damaged: Vec<String>,
}

/// The limit at which a search stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SearchStop {
    /// There are more matches than requested.
    Matches,
    /// The answer is too large.
    Bytes,
    /// The time is up.
    Expired,
    /// The search became too expensive.
    Work,
}

/// A match with its context. Contexts of adjacent matches may overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchMatch {
    /// The id of the output's ref.
    pub id: String,
    /// The number of the matching line, counted from 0.
    pub line: u64,
    /// The matching line with its context.
    pub lines: Vec<MatchLine>,
}

/// A line of a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchLine {
    /// Its number, counted from 0.
    pub number: u64,
    /// The position of `bytes` in the output.
    pub start: u64,
    /// The line without its line end, possibly clipped.
    pub bytes: Vec<u8>,
    /// True if the line is clipped before or after `bytes`.
    pub clipped: bool,
    /// True for the line that matched, false for context.
    pub matched: bool,
}

impl MatchLine {
    /// The line as text, with replacement characters for invalid UTF-8.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

fn context_line(line: OutputLine) -> MatchLine {
    MatchLine {
        number: line.number,
        start: line.start,
        clipped: line.is_clipped(),
        bytes: line.bytes,
        matched: false,
    }
}

/// A search through one or more outputs.
pub(crate) struct OutputSearch<'q> {
    query: &'q Query<'q>,
    pattern: SearchPattern,
    searcher: Searcher,
    found: SearchResults,
    bytes: usize,
    work_left: Cell<u64>,
}

impl OutputSearch<'_> {
    pub(crate) fn output(&mut self, stored: &OpenOutput) -> Result<()> {
        if self.is_over() {
            return Ok(());
        }
        let first = self.found.matches.len();
        let id = stored.metadata().reference.id();
        if self.query.text_only && stored.is_binary()? {
            self.found.binary.push(id.to_owned());
            return Ok(());
        }
        let has_long_lines = self.source(id, stored.source())?;
        if !has_long_lines {
            return Ok(());
        }
        // The searcher saw windows instead of whole lines, so its context is wrong.
        let found = self.found.matches.iter_mut().skip(first);
        found
            .into_iter()
            .try_for_each(|found| self.query.reread_context(stored, found))
    }

    /// Searches `source`. Returns true if it has lines that were searched in windows.
    fn source(&mut self, id: &str, source: &dyn FrameSource) -> Result<bool> {
        let breaks = RefCell::new(Vec::new());
        let expired = Cell::new(false);
        let mut collector = MatchCollector {
            query: self.query,
            pattern: &self.pattern,
            id,
            breaks: &breaks,
            found: &mut self.found,
            bytes: &mut self.bytes,
            recent: std::collections::VecDeque::new(),
            open: Vec::new(),
        };
        let (searcher, pattern) = (&mut self.searcher, &self.pattern);
        let query = self.query;
        let work = WorkBudget {
            cost: pattern.cost(),
            remaining: &self.work_left,
        };
        let outcome = frame_prefetch::with_frames(source, |frames| {
            let feed = SearchInput::new(frames, &breaks, (query.expired, &expired), work);
            searcher.search_reader(pattern, feed, &mut collector)
        });
        // A search that gave up ends with an error of the matcher, which is not a failure.
        if self.pattern.gave_up() || self.work_left.get() == 0 {
            self.found.stopped = self.found.stopped.or(Some(SearchStop::Work));
        } else {
            outcome.map_err(Error::from_read)?;
        }
        if expired.get() {
            self.found.stopped = self.found.stopped.or(Some(SearchStop::Expired));
        }
        let has_long_lines = !breaks.borrow().is_empty();
        Ok(has_long_lines)
    }

    /// Records that an output could not be searched completely.
    pub(crate) fn damaged(&mut self, id: &str) {
        self.found.damaged.push(id.to_owned());
    }

    pub(crate) fn is_over(&self) -> bool {
        self.found.stopped.is_some()
    }

    pub(crate) fn finish(self) -> SearchResults {
        self.found
    }
}
