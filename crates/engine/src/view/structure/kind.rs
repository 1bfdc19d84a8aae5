//! What a text is.

use serde::de::IgnoredAny;

use super::{code, diff, hits, log, table};

/// What an output turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// One JSON object or array.
    Json,
    /// Rows under a header.
    Table {
        /// How many lines the header has.
        header: usize,
    },
    /// A unified diff.
    Diff,
    /// What a test run or a build prints.
    Log,
    /// A source file, with or without line numbers.
    Code,
    /// Lines that a search found, each with its path and number.
    Hits,
    /// Anything else that has lines.
    Plain,
}

/// Lines at the start that are looked at.
pub(super) const SAMPLE: usize = 80;

/// What `text` is, judged by its first and last lines; JSON is parsed whole.
///
/// ```
/// use trimtab_engine::view::structure::{Kind, detect};
///
/// assert_eq!(detect(r#"{"a": [1, 2]}"#), Kind::Json);
/// assert_eq!(detect("id,name\n1,a\n2,b\n"), Kind::Table { header: 1 });
/// assert_eq!(detect("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"), Kind::Diff);
/// assert_eq!(detect("running 2 tests\ntest a ... ok\ntest b ... FAILED\n"), Kind::Log);
/// assert_eq!(detect("a.rs:1:x\na.rs:7:x\nb.rs:2:x\nb.rs:3:x\n"), Kind::Hits);
/// assert_eq!(detect("hello"), Kind::Plain);
/// ```
pub fn detect(text: &str) -> Kind {
    if is_json(text) {
        return Kind::Json;
    }
    let head: Vec<&str> = text.split('\n').take(SAMPLE).collect();
    if diff::is_diff(&head) {
        return Kind::Diff;
    }
    if hits::is_hits(&head) {
        return Kind::Hits;
    }
    if code::is_listing(&head) {
        return Kind::Code;
    }
    if let Some(header) = table::header(&head) {
        return Kind::Table { header };
    }
    let tail = text.rsplit('\n').take(SAMPLE);
    if log::is_log(head.iter().copied().chain(tail)) {
        return Kind::Log;
    }
    if code::is_source(&head) {
        return Kind::Code;
    }
    Kind::Plain
}

fn is_json(text: &str) -> bool {
    let inner = text.trim_matches([' ', '\t', '\n', '\r']);
    let bracketed = (inner.starts_with('{') && inner.ends_with('}'))
        || (inner.starts_with('[') && inner.ends_with(']'));
    bracketed && serde_json::from_str::<IgnoredAny>(inner).is_ok()
}
