//! Text that is never shown.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

/// What stands for a secret wherever it is shown.
const HIDDEN: &str = "***";

/// A key or token: read from settings, compared, sent; never shown, logged or written.
///
/// ```
/// # use trimtab_proxy::Secret;
/// let secret = Secret::new("opensesame");
/// assert_eq!(format!("{secret:?}"), "***");
/// ```
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Keeps `text` secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// True if there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text, for sending it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// True if `presented` is the same, in a time that does not depend on where they differ.
    pub(crate) fn matches(&self, presented: &[u8]) -> bool {
        // Equality of two hashes is compared in constant time.
        blake3::hash(self.0.as_bytes()) == blake3::hash(presented)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(HIDDEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_written() {
        let secret = Secret::new("opensesame");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"***\"");
        assert!(secret.matches(b"opensesame") && !secret.matches(b"opensesamE"));
    }
}
