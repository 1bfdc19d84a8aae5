//! Finds the matches in a line, to highlight them.

use std::ops::Range;

use regex::bytes::{Regex, RegexBuilder};
use trimtab::store::Query;

/// The same limit as in the search itself.
const PROGRAM_LIMIT: usize = 128 * 1024;

/// Repeats the search on lines that are shown.
pub(super) struct Highlight(Option<Regex>);

impl Highlight {
    /// Highlights matches of `query`; does nothing without `colour`.
    pub(super) fn new(query: &Query<'_>, colour: bool) -> Self {
        if !colour {
            return Self(None);
        }
        let pattern = if query.regex {
            query.pattern.clone()
        } else {
            regex::escape(&query.pattern)
        };
        let regex = RegexBuilder::new(&pattern)
            .multi_line(true)
            .case_insensitive(query.ignore_case)
            // As in the search itself.
            .unicode(!query.pattern.is_ascii())
            .size_limit(PROGRAM_LIMIT)
            .build();
        Self(regex.ok())
    }

    /// The matches in `line`, in order.
    pub(super) fn in_line(&self, line: &[u8]) -> Vec<Range<usize>> {
        let found = self.0.iter().flat_map(|regex| regex.find_iter(line));
        found
            .map(|found| found.range())
            .filter(|range| !range.is_empty())
            .collect()
    }
}
