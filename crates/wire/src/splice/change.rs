//! The changes that can be made to a body.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use trimtab_model::{Message, Output, RawJson};

use crate::scan::MarkerName;

/// One change of a body. Positions are those of the scan, before any change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyChange {
    /// Shows an output differently. Only its content changes, and only if the body does not become
    /// longer.
    Show {
        /// Position of the message.
        message: usize,
        /// Index of the part in it.
        part: usize,
        /// The new output.
        output: Output,
    },
    /// Removes messages in a row.
    Remove {
        /// Their positions.
        messages: Range<usize>,
    },
    /// Removes a part, and its message if nothing else is in it.
    RemovePart {
        /// Position of the message.
        message: usize,
        /// Index of the part in it.
        part: usize,
    },
    /// Rewrites a message.
    Replace {
        /// Position of the message.
        message: usize,
        /// The new message.
        with: Arc<Message>,
    },
    /// Inserts a message. A system message of ours goes to the field of the system prompt: in
    /// Messages, and in Responses if the body has one.
    Insert {
        /// The position before which it is inserted; the number of messages for the end.
        before: usize,
        /// The message.
        message: Arc<Message>,
    },
    /// Removes all reasoning before a position.
    StripReasoning {
        /// The first position whose reasoning stays.
        before: usize,
    },
    /// Changes the id of a call or an output.
    Rename {
        /// Position of the message.
        message: usize,
        /// Index of the part in it.
        part: usize,
        /// The id.
        id: String,
    },
    /// Adds tools after the existing ones, in the dialect's form.
    AddTools {
        /// The definitions.
        tools: Vec<RawJson>,
    },
    /// Asks for an answer without calls. The tools stay in the request, because reasoning and
    /// prompt caches depend on their list.
    CallNoTools,
    /// Sets the output limit, in the existing fields, or else in the dialect's own.
    SetLimit {
        /// The limit.
        tokens: u64,
    },
    /// Lets a provider of Messages drop reasoning that is bound to other messages, instead of
    /// rejecting the request. Only adaptive thinking has this setting; other bodies are unchanged.
    DropStaleReasoning,
}

/// A cache marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CacheMarker {
    /// Its kind.
    pub(super) name: MarkerName,
    /// Its value.
    pub(super) value: RawJson,
}

/// A change that cannot be made to this body. Nothing was changed; the caller sends the body
/// unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedChange {
    /// Index of the change in the list.
    pub change: usize,
    /// The reason.
    pub why: &'static str,
}

impl fmt::Display for RefusedChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "change {} does not fit the body: {}",
            self.change, self.why
        )
    }
}

impl std::error::Error for RefusedChange {}
