//! Turns lines reported by the searcher into matches with context.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;

use grep_matcher::Matcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};

use super::pattern::SearchPattern;
use super::search_input::OVERLAP;
use super::{MOST_BYTES, MOST_CONTEXT, MatchLine, Query, SearchMatch, SearchResults, SearchStop};

pub(super) struct MatchCollector<'a> {
    pub query: &'a Query<'a>,
    pub pattern: &'a SearchPattern,
    pub id: &'a str,
    /// The positions of windows of long lines, in the searcher's input.
    pub breaks: &'a RefCell<Vec<u64>>,
    pub found: &'a mut SearchResults,
    /// The size of all lines found so far.
    pub bytes: &'a mut usize,
    /// The last reported lines: the context before the next match.
    pub recent: VecDeque<MatchLine>,
    /// Matches that still need context lines after them: index in `found`, and number of lines.
    pub open: Vec<(usize, usize)>,
}

/// A reported line with its position in the output.
struct ReportedLine<'b> {
    bytes: &'b [u8],
    number: u64,
    start: u64,
    /// Bytes at its start that repeat the end of the previous window.
    repeated: usize,
}

impl MatchCollector<'_> {
    fn place<'b>(&self, bytes: &'b [u8], number: Option<u64>, start: u64) -> ReportedLine<'b> {
        let breaks = self.breaks.borrow();
        // Inserted newlines before this position shift line numbers and offsets.
        let before = breaks.partition_point(|at| *at <= start) as u64;
        let is_window = breaks.binary_search(&start).is_ok();
        ReportedLine {
            bytes: bytes.strip_suffix(b"\n").unwrap_or(bytes),
            number: number.unwrap_or(1).saturating_sub(1 + before),
            // Each split inserted a newline and the repeated bytes.
            start: start.saturating_sub(before * (OVERLAP as u64 + 1)),
            repeated: if is_window { OVERLAP } else { 0 },
        }
    }

    /// The start of the first match that the previous window did not contain.
    fn first_match(&self, place: &ReportedLine<'_>) -> Option<usize> {
        let mut first = None;
        let found = self.pattern.find_iter(place.bytes, |found| {
            // A match inside the repeated bytes was already reported by the previous window.
            let new = place.repeated == 0 || found.end() > place.repeated;
            first = new.then_some(found.start());
            !new
        });
        // The searcher found a match in the line. If finding it again is too expensive, show the
        // start of the line rather than nothing.
        let show_start = found.is_err() || place.repeated == 0;
        first.or(show_start.then_some(0))
    }

    /// Clips a line around byte `around`.
    fn clip(&self, place: &ReportedLine<'_>, around: usize, matched: bool) -> MatchLine {
        let max = self.query.max_line_bytes.max(1);
        let bytes = place.bytes.strip_suffix(b"\r").unwrap_or(place.bytes);
        let len = bytes.len();
        let latest = len.saturating_sub(max);
        // Show a quarter of the clip before the match, and more after it.
        let from = around.saturating_sub(max / 4).min(latest);
        let from = if around < max { 0 } else { from };
        let shown = bytes.get(from..len.min(from + max)).unwrap_or_default();
        MatchLine {
            number: place.number,
            start: place.start + from as u64,
            bytes: shown.to_vec(),
            clipped: shown.len() < len || place.repeated > 0,
            matched,
        }
    }

    /// Adds a line to the matches that need it, and remembers it for the next ones.
    fn add_context(&mut self, line: &MatchLine) {
        for (at, lacking) in &mut self.open {
            let Some(found) = self.found.matches.get_mut(*at) else {
                continue;
            };
            // Further windows of a line that is already shown are not context.
            if found
                .lines
                .last()
                .is_some_and(|last| last.number == line.number)
            {
                continue;
            }
            *self.bytes += line.bytes.len();
            found.lines.push(MatchLine {
                matched: false,
                ..line.clone()
            });
            *lacking -= 1;
        }
        self.open.retain(|(_, lacking)| *lacking > 0);
        if self
            .recent
            // A later window of the same line replaces the earlier one as context.
            .back()
            .is_some_and(|last| last.number == line.number)
        {
            self.recent.pop_back();
        }
        self.recent.push_back(MatchLine {
            matched: false,
            ..line.clone()
        });
        while self.recent.len() > self.query.before.min(MOST_CONTEXT) {
            self.recent.pop_front();
        }
    }

    fn add(&mut self, line: MatchLine) {
        let from = line.number.saturating_sub(self.query.before as u64);
        let before = self.recent.iter();
        let before = before.filter(|other| (from..line.number).contains(&other.number));
        let mut lines: Vec<MatchLine> = before.cloned().collect();
        // The line may also be context of the matches before it.
        self.add_context(&line);
        let after = self.query.after.min(MOST_CONTEXT);
        if after > 0 {
            self.open.push((self.found.matches.len(), after));
        }
        let number = line.number;
        lines.push(line);
        *self.bytes += lines.iter().map(|line| line.bytes.len()).sum::<usize>();
        self.found.matches.push(SearchMatch {
            id: self.id.to_owned(),
            line: number,
            lines,
        });
    }

    /// True to continue. Once stopped, only to complete open matches.
    fn continues(&mut self) -> bool {
        if *self.bytes >= MOST_BYTES {
            self.found.stopped = Some(SearchStop::Bytes);
            return false;
        }
        self.found.stopped.is_none() || !self.open.is_empty()
    }
}

impl Sink for MatchCollector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let start = found.absolute_byte_offset();
        let place = self.place(found.bytes(), found.line_number(), start);
        let Some(at) = self.first_match(&place) else {
            return Ok(self.continues());
        };
        let line = self.clip(&place, at, true);
        if self.found.skipped < self.query.skip_matches {
            self.found.skipped += 1;
            self.add_context(&line);
            return Ok(self.continues());
        }
        // Only one match more than requested shows that there are more.
        if self.found.matches.len() >= self.query.max_matches {
            self.found.stopped = Some(SearchStop::Matches);
        }
        if self.found.stopped.is_some() {
            self.add_context(&line);
        } else {
            self.add(line);
        }
        Ok(self.continues())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let start = context.absolute_byte_offset();
        let place = self.place(context.bytes(), context.line_number(), start);
        let line = self.clip(&place, 0, false);
        self.add_context(&line);
        Ok(self.continues())
    }
}
