//! Searching outputs, in bounded time and memory for any pattern.
//!
//! - The pattern is literal unless it says otherwise; a regular expression is compiled within a
//!   size limit, and gives up when it has cost too much (see `bounded`).
//! - Outputs are streamed frame by frame. Lines longer than a window are searched window by
//!   window (see `feed`).
//! - Matches, bytes of the answer, work and time are capped, and the answer says so.

mod ahead;
mod bounded;
mod feed;
#[cfg(unix)]
mod file;
mod found;
mod pattern;

use std::cell::{Cell, RefCell};

use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};

use crate::source::{Source, Stored};
use crate::{Error, Line, LineRange, Result};
use feed::{Feed, Work};
use found::Collector;
use pattern::Pattern;

/// Most lines of context before or after a match.
const MOST_CONTEXT: usize = 50;
/// An answer stops growing at this size: more than any window would take.
const MOST_BYTES: usize = 1024 * 1024;

/// What to search for.
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
    /// The text, or the regular expression.
    pub pattern: String,
    /// True if the pattern is a regular expression.
    pub regex: bool,
    /// True if upper and lower case are the same.
    pub ignore_case: bool,
    /// Lines shown before each match, at most 50.
    pub before: usize,
    /// Lines shown behind each match, at most 50.
    pub after: usize,
    /// So many matches are passed over before the first one that is given.
    pub skip_matches: usize,
    /// The search stops after this many matches.
    pub max_matches: usize,
    /// True to leave out outputs that are not text; the answer names them.
    pub text_only: bool,
    /// Longer lines are clipped to this many bytes around the match.
    pub max_line_bytes: usize,
    /// The search stops when it has cost this much. A byte that is searched for a literal
    /// costs 1, for a regular expression 4.
    pub max_work: u64,
    /// Asked now and then; the search stops when it says true.
    pub expired: Option<&'a dyn Fn() -> bool>,
}

impl<'a> Query<'a> {
    /// Searches for `text` as it stands.
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

    /// The same query with lines of context.
    #[must_use]
    pub fn context(mut self, before: usize, after: usize) -> Self {
        self.before = before;
        self.after = after;
        self
    }

    /// The same query with a cap on matches.
    #[must_use]
    pub fn max_matches(mut self, max: usize) -> Self {
        self.max_matches = max;
        self
    }

    /// The same query with a limit in time: `expired` is asked every few frames.
    #[must_use]
    pub fn until(mut self, expired: &'a dyn Fn() -> bool) -> Self {
        self.expired = Some(expired);
        self
    }

    /// Says what is wrong with the pattern, if something is.
    pub fn check(&self) -> Result<()> {
        Pattern::new(self, pattern::minds_line_ends(self)).map(drop)
    }

    /// Takes the lines around a match from the line index.
    fn reread_context(&self, stored: &Stored, found: &mut Match) -> Result<()> {
        let line = found.line;
        let first = line.saturating_sub(self.before.min(MOST_CONTEXT) as u64);
        let last = stored
            .line_count()
            .min(line + 1 + self.after.min(MOST_CONTEXT) as u64);
        let mut range = LineRange::new(first, line - first);
        range.max_line_bytes = self.max_line_bytes;
        let before = stored.lines(range)?.lines;
        let mut lines: Vec<FoundLine> = before.into_iter().map(context).collect();
        lines.extend(found.lines.drain(..).filter(|line| line.matched));
        range.offset = line + 1;
        range.limit = last.saturating_sub(range.offset);
        if range.limit > 0 {
            lines.extend(stored.lines(range)?.lines.into_iter().map(context));
        }
        found.lines = lines;
        Ok(())
    }

    pub(crate) fn start(&self) -> Result<Search<'_>> {
        let crlf = pattern::minds_line_ends(self);
        let mut searcher = SearcherBuilder::new();
        searcher
            .binary_detection(BinaryDetection::none())
            .bom_sniffing(false)
            .line_number(true)
            .before_context(self.before.min(MOST_CONTEXT))
            .after_context(self.after.min(MOST_CONTEXT));
        if crlf {
            searcher.line_terminator(grep_matcher::LineTerminator::crlf());
        }
        Ok(Search {
            query: self,
            pattern: Pattern::new(self, crlf)?,
            searcher: searcher.build(),
            found: Found::default(),
            bytes: 0,
            work_left: Cell::new(self.max_work),
        })
    }
}

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The matches, in order.
    pub matches: Vec<Match>,
    /// Why the search stopped before its end, if it did.
    pub stopped: Option<Stop>,
    /// How many matches were passed over.
    pub skipped: usize,
    /// Outputs that were left out because they are not text.
    pub binary: Vec<String>,
    /// Outputs that could not be searched to their end because they are damaged.
    pub damaged: Vec<String>,
}

/// Why a search stopped before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stop {
    /// There are more matches than were asked for.
    Matches,
    /// The answer has grown too large.
    Bytes,
    /// Time is up.
    Expired,
    /// It has cost too much.
    Work,
}

/// One match with its context. Contexts of neighbouring matches may overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// The ref's id of the output it is in.
    pub id: String,
    /// The number of the matching line, counted from 0.
    pub line: u64,
    /// The matching line, with the lines before and behind it.
    pub lines: Vec<FoundLine>,
}

/// A line of a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundLine {
    /// Its number, counted from 0.
    pub number: u64,
    /// Where `bytes` begin in the output.
    pub start: u64,
    /// The line without its end, or a clip of it.
    pub bytes: Vec<u8>,
    /// True if something of the line is missing before or behind `bytes`.
    pub clipped: bool,
    /// True for the line that matched, false for context.
    pub matched: bool,
}

impl FoundLine {
    /// As text; what is not UTF-8 is shown as the replacement character.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

fn context(line: Line) -> FoundLine {
    FoundLine {
        number: line.number,
        start: line.start,
        clipped: line.is_clipped(),
        bytes: line.bytes,
        matched: false,
    }
}

/// A search on its way through one or more outputs.
pub(crate) struct Search<'q> {
    query: &'q Query<'q>,
    pattern: Pattern,
    searcher: Searcher,
    found: Found,
    bytes: usize,
    work_left: Cell<u64>,
}

impl Search<'_> {
    pub(crate) fn output(&mut self, stored: &Stored) -> Result<()> {
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
        // What the searcher took for lines were windows of longer ones.
        let found = self.found.matches.iter_mut().skip(first);
        found
            .into_iter()
            .try_for_each(|found| self.query.reread_context(stored, found))
    }

    /// Searches what `source` gives; true if it has lines that were searched in windows.
    fn source(&mut self, id: &str, source: &dyn Source) -> Result<bool> {
        let breaks = RefCell::new(Vec::new());
        let expired = Cell::new(false);
        let mut collector = Collector {
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
        let work = Work {
            cost: pattern.cost(),
            left: &self.work_left,
        };
        let outcome = ahead::with_frames(source, |frames| {
            let feed = Feed::new(frames, &breaks, (query.expired, &expired), work);
            searcher.search_reader(pattern, feed, &mut collector)
        });
        if self.pattern.gave_up() || self.work_left.get() == 0 {
            self.found.stopped = self.found.stopped.or(Some(Stop::Work));
        } else {
            outcome.map_err(Error::from_read)?;
        }
        if expired.get() {
            self.found.stopped = self.found.stopped.or(Some(Stop::Expired));
        }
        let has_long_lines = !breaks.borrow().is_empty();
        Ok(has_long_lines)
    }

    /// Notes that an output could not be searched to its end.
    pub(crate) fn damaged(&mut self, id: &str) {
        self.found.damaged.push(id.to_owned());
    }

    pub(crate) fn is_over(&self) -> bool {
        self.found.stopped.is_some()
    }

    pub(crate) fn finish(self) -> Found {
        self.found
    }
}
