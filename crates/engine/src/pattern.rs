//! Regular expressions that are part of the program.

use std::borrow::Cow;
use std::sync::OnceLock;

use regex::{Captures, Match, Regex};

/// A regular expression of our own, compiled at its first use.
///
/// One that cannot be compiled matches nothing, because the program must not panic. Every pattern
/// needs a test of what it matches.
pub(crate) struct LazyRegex {
    text: &'static str,
    compiled: OnceLock<Option<Regex>>,
}

impl LazyRegex {
    pub(crate) const fn new(text: &'static str) -> Self {
        let compiled = OnceLock::new();
        Self { text, compiled }
    }

    fn regex(&self) -> Option<&Regex> {
        let compile = || Regex::new(self.text).ok();
        self.compiled.get_or_init(compile).as_ref()
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.regex().is_some_and(|regex| regex.is_match(text))
    }

    /// The first match at or after byte `from`.
    pub(crate) fn find_at<'t>(&self, text: &'t str, from: usize) -> Option<Match<'t>> {
        self.regex()?.find_at(text, from)
    }

    pub(crate) fn find_iter<'t>(&self, text: &'t str) -> impl Iterator<Item = Match<'t>> {
        let regex = self.regex().into_iter();
        regex.flat_map(move |regex| regex.find_iter(text))
    }

    /// `text` without its matches.
    pub(crate) fn remove<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let regex = self.regex();
        regex.map_or(Cow::Borrowed(text), |regex| regex.replace_all(text, ""))
    }

    pub(crate) fn captures<'t>(&self, text: &'t str) -> Option<Captures<'t>> {
        self.regex()?.captures(text)
    }
}
