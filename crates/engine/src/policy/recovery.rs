//! The reactions to a window that does not fit, and to an overflow.

use serde::{Deserialize, Serialize};

/// One way to make a window smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// Shorten outputs that were not sent yet.
    ShortenNew,
    /// Reserve less for the answer.
    LowerAnswer,
    /// Trim old outputs.
    Trim,
    /// Compact.
    Compact,
    /// Drop the oldest half of the turns, with a note.
    DropHalfOfTurns,
    /// Drop the oldest message with its counterparts.
    DropOldest,
}

/// Which ways are tried, and how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecoveryPolicy {
    /// The ways, in order. The last one is repeated.
    pub ladder: Vec<Rung>,
    /// The number of further calls.
    pub retries: u32,
}

impl Default for RecoveryPolicy {
    fn default() -> Self {
        Self {
            ladder: vec![Rung::LowerAnswer, Rung::Trim, Rung::Compact],
            retries: 2,
        }
    }
}
