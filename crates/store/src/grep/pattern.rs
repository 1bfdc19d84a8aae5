//! Patterns with a bounded cost.

use grep_regex::{RegexMatcher, RegexMatcherBuilder};

use super::Query;
use crate::{Error, Result};

/// Longest regular expression, in bytes.
const LONGEST_REGEX: usize = 256;
/// Longest literal, in bytes; windows of long lines overlap by as much.
pub(super) const LONGEST_LITERAL: usize = 4096;
/// Largest compiled program. At 128 KiB the worst pattern takes 0.3 ms for a line of 64 KiB; at
/// 256 KiB it takes seconds, and a match that has begun cannot be interrupted.
const PROGRAM_LIMIT: usize = 128 * 1024;
/// Memory in which the matcher may remember states.
const STATES_LIMIT: usize = 2 * 1024 * 1024;

/// True if the pattern can tell `\r\n` from `\n`, which costs speed to get right.
pub(super) fn minds_line_ends(query: &Query<'_>) -> bool {
    query.regex && query.pattern.contains('$')
}

pub(super) fn compile(query: &Query<'_>, crlf: bool) -> Result<RegexMatcher> {
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
    let mut builder = RegexMatcherBuilder::new();
    builder
        .multi_line(true)
        .crlf(crlf)
        .fixed_strings(!query.regex)
        .case_insensitive(query.ignore_case)
        // Unicode classes make programs ten times larger: only for patterns that need them.
        .unicode(!query.pattern.is_ascii())
        .size_limit(PROGRAM_LIMIT)
        .dfa_size_limit(STATES_LIMIT);
    if !crlf {
        // After `crlf`, which would take it away.
        builder.line_terminator(Some(b'\n'));
    }
    builder
        .build(&query.pattern)
        .map_err(|error| Error::pattern(error.to_string()))
}
