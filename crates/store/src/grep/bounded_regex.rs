//! Regular expressions with a bounded cost.
//!
//! A pattern is matched by a lazy DFA, whose states are built on demand and cached. Text that needs
//! ever new states fills the cache again and again, and costs a thousand times as much as other
//! text. The number of cache fills is therefore the measure of work at which a search stops.

use std::cell::{Cell, RefCell};

use regex_automata::hybrid::dfa;
use regex_automata::hybrid::regex::{Builder, Cache, Regex};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_automata::{Input, Span};

use super::Query;
use super::pattern::PROGRAM_LIMIT;
use crate::{Error, Result};

/// The size of the state cache.
const STATES_BYTES: usize = 2 * 1024 * 1024;
/// The maximum number of cache fills per search. One fill takes about 8 ms for any pattern, because
/// large states are few.
const FILLINGS: usize = 24;

/// A regular expression that gives up when it becomes too expensive.
pub(super) struct BoundedRegex {
    regex: Regex,
    cache: RefCell<Cache>,
    gave_up: Cell<bool>,
}

impl BoundedRegex {
    pub(super) fn new(query: &Query<'_>, crlf: bool) -> Result<Self> {
        let syntax = syntax::Config::new()
            .multi_line(true)
            .crlf(crlf)
            .case_insensitive(query.ignore_case)
            // Outputs may contain any bytes.
            .utf8(false)
            // Unicode classes make programs ten times larger, so enable them only if the pattern
            // needs them.
            .unicode(!query.pattern.is_ascii());
        let program = thompson::Config::new()
            .utf8(false)
            .nfa_size_limit(Some(PROGRAM_LIMIT));
        let states = dfa::Config::new()
            .cache_capacity(STATES_BYTES)
            .minimum_cache_clear_count(Some(FILLINGS));
        let built = Builder::new()
            .syntax(syntax)
            .thompson(program)
            .dfa(states)
            .build(&query.pattern);
        let regex = built.map_err(|error| explain(&query.pattern, &error))?;
        Ok(Self {
            cache: RefCell::new(regex.create_cache()),
            regex,
            gave_up: Cell::new(false),
        })
    }

    /// True if a search gave up.
    pub(super) fn gave_up(&self) -> bool {
        self.gave_up.get()
    }

    /// The first match at or after `at`; an error once it is too expensive.
    pub(super) fn find_at(
        &self,
        haystack: &[u8],
        at: usize,
    ) -> std::result::Result<Option<Span>, TooCostly> {
        let input = Input::new(haystack).range(at..);
        let found = self.regex.try_search(&mut self.cache.borrow_mut(), &input);
        found
            .map(|found| found.map(|found| found.span()))
            .map_err(|_| {
                self.gave_up.set(true);
                TooCostly
            })
    }
}

/// The search gave up.
#[derive(Debug)]
pub(super) struct TooCostly;

impl std::fmt::Display for TooCostly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the pattern costs too much on this text")
    }
}

/// The message of the innermost error.
fn explain(pattern: &str, error: &dyn std::error::Error) -> Error {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let text = innermost.to_string();
    if !pattern.is_ascii() && text.contains("word boundar") {
        let why = "\\b is not supported in a pattern with letters that are not ASCII; write (?-u:\\b) instead";
        return Error::pattern(why);
    }
    Error::pattern(text)
}
