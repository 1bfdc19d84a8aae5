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
}

impl Ref {
    /// Makes a ref. For stores only; a lint bans it elsewhere.
    pub fn issue(id: impl Into<String>, byte_size: Option<u64>, line_count: Option<u64>) -> Self {
        Self {
            id: id.into(),
            byte_size,
            line_count,
        }
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
