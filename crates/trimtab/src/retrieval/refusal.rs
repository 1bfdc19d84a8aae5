//! The texts for the model if a call fails.

use trimtab_store::{Error, OpenOutput};

/// The answer to every ref that this session may not read. It does not distinguish unknown,
/// malformed and foreign refs.
pub const NOT_FOUND: &str = "No output is stored under this ref_id in this session. \
    Copy a ref_id exactly as it stands in an earlier output, or search all outputs of the \
    session with tool_output_cache_grep without a ref_id.";

/// Why a call failed, as a text for the model.
pub(super) struct RetrievalRefusal(pub(super) String);

impl RetrievalRefusal {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(super) fn binary(stored: &OpenOutput) -> Self {
        let metadata = stored.metadata();
        Self(format!(
            "This output is binary ({}, {} bytes): it has no lines to show or to search.",
            metadata.labels.media_type, metadata.byte_size,
        ))
    }
}

impl From<Error> for RetrievalRefusal {
    fn from(error: Error) -> Self {
        let text = match &error {
            Error::NotFound => return Self::new(NOT_FOUND),
            Error::Pattern { why } => {
                return Self(format!(
                    "The pattern cannot be used: {why}\n\
                     To search for the text as it stands, leave regex out; else correct or \
                     shorten the expression (no look-around, no back-references)."
                ));
            }
            Error::Damaged { .. } => {
                let text = "This output is damaged in the store and cannot be given back: \
                    if you still need it, run the tool again.";
                return Self::new(text);
            }
            error => format!("The output could not be read: {error}"),
        };
        // Error texts may have a hint for people on a line of its own. It does not help a model.
        let text = text.lines().next().unwrap_or_default();
        Self(format!(
            "{text}. Try once more; if it fails again, run the tool again."
        ))
    }
}
