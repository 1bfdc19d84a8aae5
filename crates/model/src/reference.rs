//! Refs: handles to stored outputs.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An opaque handle to something in the store.
///
/// Only a store creates refs, once the bytes are durable, so a placeholder can never name a missing
/// output.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ref {
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    byte_size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line_count: Option<u64>,
    /// The name of the tool that reads it, if it is not the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reader: Option<String>,
}

impl Ref {
    /// Creates a ref. For stores only; a lint bans it elsewhere.
    pub fn issue(id: impl Into<String>, byte_size: Option<u64>, line_count: Option<u64>) -> Self {
        Self {
            id: id.into(),
            byte_size,
            line_count,
            reader: None,
        }
    }

    /// Sets the number of lines as users count them: a newline ends a line. A store that splits
    /// text at newlines counts one more if the text ends with one.
    ///
    /// ```
    /// # let stored = trimtab_testkit::made_ref("r1", None, None);
    /// assert_eq!(stored.clone().with_lines_of("a\nb\n").line_count(), Some(2));
    /// assert_eq!(stored.clone().with_lines_of("a\nb").line_count(), Some(2));
    /// assert_eq!(stored.with_lines_of("").line_count(), Some(0));
    /// ```
    #[must_use]
    pub fn with_lines_of(mut self, text: &str) -> Self {
        let has_open_line = !text.is_empty() && !text.ends_with('\n');
        let lines = match self.line_count {
            // The store already counted the pieces between newlines. Text that ends with a newline,
            // and empty text, has one empty piece more than it has lines.
            Some(split) => split.saturating_sub(u64::from(!has_open_line)),
            None => text.lines().count() as u64,
        };
        self.line_count = Some(lines);
        self
    }

    /// Sets the tool with which the model reads it, because the usual name is taken in its
    /// conversation.
    #[must_use]
    pub fn read_with(mut self, reader: impl Into<String>) -> Self {
        self.reader = Some(reader.into());
        self
    }

    /// The tool with which the model reads it, if it is not the usual one.
    pub fn reader(&self) -> Option<&str> {
        self.reader.as_deref()
    }

    /// The id that the model passes to the retrieval tools.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The size of the stored bytes, if known.
    pub fn byte_size(&self) -> Option<u64> {
        self.byte_size
    }

    /// The number of lines of the stored text, if known.
    pub fn line_count(&self) -> Option<u64> {
        self.line_count
    }
}

impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)
    }
}
