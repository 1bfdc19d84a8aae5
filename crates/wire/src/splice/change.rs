//! What can be changed in a body.

use std::fmt;
use std::sync::Arc;

use trimtab_model::{Message, Output, RawJson};

use crate::scan::MarkerName;

/// One change of a body. Positions are those of the scan, before any change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// An output is shown as something else. Only its content changes, and only if that
    /// makes the body no longer.
    Show {
        /// Position of the message.
        message: usize,
        /// Index of the part in it.
        part: usize,
        /// What is shown instead.
        output: Output,
    },
    /// A message is left out.
    Remove {
        /// Position of the message.
        message: usize,
    },
    /// A part is left out, and its message with it if nothing else is in that.
    RemovePart {
        /// Position of the message.
        message: usize,
        /// Index of the part in it.
        part: usize,
    },
    /// A message is written anew.
    Replace {
        /// Position of the message.
        message: usize,
        /// What stands there instead.
        with: Arc<Message>,
    },
    /// A message is put in. In Messages a system message goes to the system's field.
    Insert {
        /// The position that it stands before; the number of messages for the end.
        before: usize,
        /// The message.
        message: Arc<Message>,
    },
    /// All reasoning before a position is left out.
    StripReasoning {
        /// The first position whose reasoning stays.
        before: usize,
    },
    /// A call, or an output, gets another id.
    Rename {
        /// Position of the message.
        message: usize,
        /// Index of the part in it.
        part: usize,
        /// The id.
        id: String,
    },
    /// Tools are defined behind those that are there, in the dialect's own form.
    AddTools {
        /// The definitions.
        tools: Vec<RawJson>,
    },
    /// Tools are no longer defined; the field goes too where none is left, which is refused.
    RemoveTools {
        /// Their names.
        names: Vec<String>,
    },
    /// The answer is limited to a number of tokens, in the fields that limit it already or
    /// else in the dialect's own.
    SetLimit {
        /// The limit.
        tokens: u64,
    },
    /// The model answers without thinking, in Messages: what asks the provider to clear
    /// thoughts goes as well, because it is refused then. Other dialects stay as they are.
    StopThinking,
}

/// A cache marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Marker {
    /// Which one it is.
    pub(super) name: MarkerName,
    /// Its value.
    pub(super) value: RawJson,
}

/// A change that cannot be carried out on this body. Nothing was changed; the caller sends
/// the body as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Index of the change in the list.
    pub change: usize,
    /// Why it does not fit.
    pub why: &'static str,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "change {} does not fit the body: {}",
            self.change, self.why
        )
    }
}

impl std::error::Error for Refused {}
