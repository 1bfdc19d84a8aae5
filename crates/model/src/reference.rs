//! Handles to what the store holds.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An opaque handle to something in the store.
///
/// Only a store makes one, after the bytes are durable: a placeholder that names a ref can
/// therefore never point at nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ref {
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    byte_size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line_count: Option<u64>,
    /// The tool that reads it, where that is not called by its usual name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reader: Option<String>,
}

impl Ref {
    /// Makes a ref. For stores only; a lint bans it elsewhere.
    pub fn issue(id: impl Into<String>, byte_size: Option<u64>, line_count: Option<u64>) -> Self {
        Self {
            id: id.into(),
            byte_size,
            line_count,
            reader: None,
        }
    }

    /// The same ref with the number of lines that a person counts in `text`: a newline ends a
    /// line. A store that splits text at newlines finds one more where it ends with one.
    ///
    /// ```
    /// # let stored = trimtab_testkit::made_ref("r1", None, None);
    /// assert_eq!(stored.clone().with_lines_of("a\nb\n").line_count(), Some(2));
    /// assert_eq!(stored.clone().with_lines_of("a\nb").line_count(), Some(2));
    /// assert_eq!(stored.with_lines_of("").line_count(), Some(0));
    /// ```
    #[must_use]
    pub fn with_lines_of(mut self, text: &str) -> Self {
        self.line_count = Some(text.lines().count() as u64);
        self
    }

    /// The same ref, which the model reads with the tool `reader`: the usual name of the tool is
    /// taken in its conversation.
    #[must_use]
    pub fn read_with(mut self, reader: impl Into<String>) -> Self {
        self.reader = Some(reader.into());
        self
    }

    /// The tool that the model reads it with, where that is not called by its usual name.
    pub fn reader(&self) -> Option<&str> {
        self.reader.as_deref()
    }

    /// What the model passes to the retrieval tools.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Size of the stored bytes, where it is known.
    pub fn byte_size(&self) -> Option<u64> {
        self.byte_size
    }

    /// Number of lines in the stored text, where it is known.
    pub fn line_count(&self) -> Option<u64> {
        self.line_count
    }
}

impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)
    }
}
