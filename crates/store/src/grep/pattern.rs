//! Search patterns with a bounded cost.

use grep_matcher::{LineTerminator, Match, Matcher, NoCaptures};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};

use super::Query;
use super::bounded_regex::{BoundedRegex, TooCostly};
use crate::{Error, Result};

/// The longest regular expression in bytes.
const LONGEST_REGEX: usize = 256;
/// The longest literal in bytes; windows of long lines overlap by as much.
pub(super) const LONGEST_LITERAL: usize = 4096;
/// The largest compiled program in bytes. States are built from it, so it bounds the cost of a
/// state.
pub(super) const PROGRAM_LIMIT: usize = 128 * 1024;
/// The cost of searching a byte for a regular expression, relative to a literal.
const REGEX_COST: u64 = 4;

/// A compiled pattern.
pub(super) enum SearchPattern {
    Literal(RegexMatcher),
    Regex(Box<BoundedRegex>),
}

/// True if `$` occurs in the pattern. Only then does it matter whether a line ends in `\n` or
/// `\r\n`, and handling both is slower.
pub(super) fn needs_crlf_mode(query: &Query<'_>) -> bool {
    query.regex && query.pattern.contains('$')
}

impl SearchPattern {
    pub(super) fn new(query: &Query<'_>, crlf: bool) -> Result<Self> {
        let longest = if query.regex {
            LONGEST_REGEX
        } else {
            LONGEST_LITERAL
        };
        if query.pattern.is_empty() {
            return Err(Error::pattern("it is empty"));
        }
        if query.pattern.len() > longest {
            let len = query.pattern.len();
            return Err(Error::pattern(format!(
                "it has {len} bytes, the limit is {longest}"
            )));
        }
        if query.regex {
            return BoundedRegex::new(query, crlf).map(|regex| Self::Regex(Box::new(regex)));
        }
        RegexMatcherBuilder::new()
            .fixed_strings(true)
            .case_insensitive(query.ignore_case)
            .unicode(!query.pattern.is_ascii())
            .line_terminator(Some(b'\n'))
            .build(&query.pattern)
            .map(Self::Literal)
            .map_err(|error| Error::pattern(error.to_string()))
    }

    /// The cost of searching one byte.
    pub(super) fn cost(&self) -> u64 {
        match self {
            Self::Literal(_) => 1,
            Self::Regex(_) => REGEX_COST,
        }
    }

    /// True if a search gave up.
    pub(super) fn gave_up(&self) -> bool {
        match self {
            Self::Literal(_) => false,
            Self::Regex(regex) => regex.gave_up(),
        }
    }
}

impl Matcher for SearchPattern {
    type Captures = NoCaptures;
    type Error = TooCostly;

    fn find_at(
        &self,
        haystack: &[u8],
        at: usize,
    ) -> std::result::Result<Option<Match>, Self::Error> {
        match self {
            // Searching for a literal cannot fail.
            Self::Literal(literal) => literal.find_at(haystack, at).map_err(|_| TooCostly),
            Self::Regex(regex) => {
                let found = regex.find_at(haystack, at)?;
                Ok(found.map(|found| Match::new(found.start, found.end)))
            }
        }
    }

    fn new_captures(&self) -> std::result::Result<NoCaptures, Self::Error> {
        Ok(NoCaptures::new())
    }

    /// A regular expression may match a line end, so it gets one line at a time.
    fn line_terminator(&self) -> Option<LineTerminator> {
        match self {
            Self::Literal(literal) => literal.line_terminator(),
            Self::Regex(_) => None,
        }
    }
}
