//! A pattern that is compiled on first use.

use std::sync::{Arc, OnceLock};

use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;

/// The maximum compiled size of a pattern, in bytes.
const PROGRAM: usize = 1 << 20;

/// A regular expression over the bytes of a text.
///
/// Most answers are decided by a few of many rules, so a pattern is compiled on first use. Clones
/// share the compiled form.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "String")]
pub(super) struct OverflowPattern(Arc<PatternInner>);

#[derive(Debug)]
struct PatternInner {
    text: String,
    compiled: OnceLock<Option<Regex>>,
}

impl From<String> for OverflowPattern {
    fn from(text: String) -> Self {
        Self(Arc::new(PatternInner {
            text,
            compiled: OnceLock::new(),
        }))
    }
}

impl OverflowPattern {
    /// The source of the pattern.
    pub(super) fn as_str(&self) -> &str {
        &self.0.text
    }

    /// The error of an invalid pattern.
    pub(super) fn problem(&self) -> Option<String> {
        compile(&self.0.text).err().map(|error| error.to_string())
    }

    /// The compiled form; none for an invalid pattern that was never checked.
    pub(super) fn regex(&self) -> Option<&Regex> {
        self.0
            .compiled
            .get_or_init(|| compile(&self.0.text).ok())
            .as_ref()
    }

    /// True if it occurs in the text.
    pub(super) fn is_in(&self, text: &str) -> bool {
        self.regex()
            .is_some_and(|regex| regex.is_match(text.as_bytes()))
    }
}

fn compile(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text)
        .multi_line(true)
        // Bytes are enough for these texts, and the compiled patterns are much smaller.
        .unicode(false)
        .size_limit(PROGRAM)
        .build()
}
