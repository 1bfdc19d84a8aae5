//! A pattern that is compiled when it is first needed.

use std::sync::{Arc, OnceLock};

use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;

/// Bound on the compiled size of one pattern, in bytes.
const PROGRAM: usize = 1 << 20;

/// A regular expression over the bytes of a text.
///
/// Most answers are judged by a few rules out of many, so a pattern is compiled when it is first
/// searched for. Clones share the compiled form.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "String")]
pub(super) struct Pattern(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    text: String,
    compiled: OnceLock<Option<Regex>>,
}

impl From<String> for Pattern {
    fn from(text: String) -> Self {
        Self(Arc::new(Inner {
            text,
            compiled: OnceLock::new(),
        }))
    }
}

impl Pattern {
    /// The pattern as it was written.
    pub(super) fn as_str(&self) -> &str {
        &self.0.text
    }

    /// What is wrong with it, if anything is.
    pub(super) fn problem(&self) -> Option<String> {
        compile(&self.0.text).err().map(|error| error.to_string())
    }

    /// The compiled form; `None` for a pattern that was never checked and is wrong.
    pub(super) fn regex(&self) -> Option<&Regex> {
        self.0
            .compiled
            .get_or_init(|| compile(&self.0.text).ok())
            .as_ref()
    }

    /// Whether it occurs in the text.
    pub(super) fn is_in(&self, text: &str) -> bool {
        self.regex()
            .is_some_and(|regex| regex.is_match(text.as_bytes()))
    }
}

fn compile(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text)
        .multi_line(true)
        .unicode(false)
        .size_limit(PROGRAM)
        .build()
}
