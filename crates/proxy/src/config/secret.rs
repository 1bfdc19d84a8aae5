//! Text that is never shown.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

/// The replacement of a secret wherever it would be shown.
const HIDDEN: &str = "***";

/// A key or token. It is sent or hashed, but never shown, logged or written.
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

    /// The text, for sending or hashing it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
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
    }
}
