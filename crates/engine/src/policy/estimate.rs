//! The estimates that a policy can use.

use serde::{Deserialize, Serialize};
use trimtab_model::Message;
use trimtab_model::estimate::{Heuristic, Measure};

/// The estimate that a policy uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EstimateBy {
    /// Ours: by class of text, calibrated by reported usage.
    #[default]
    Ours,
    /// A quarter of the bytes, rounded up.
    Refs,
    /// Chars at 3.5 per token, with a flat amount per message.
    Checkpoint,
    /// Chars at 2.5 per token, with a flat amount per message.
    Turns,
    /// A quarter of the chars, rounded up; an image is 1,200.
    Archive,
}

impl EstimateBy {
    /// The heuristic of a design; none for our own estimate.
    fn heuristic(self) -> Option<Heuristic> {
        match self {
            Self::Ours => None,
            Self::Refs => Some(Heuristic::Refs),
            Self::Checkpoint => Some(Heuristic::Checkpoint),
            Self::Turns => Some(Heuristic::Turns),
            Self::Archive => Some(Heuristic::Archive),
        }
    }

    /// The tokens of a measure; `ours` returns our own estimate.
    pub fn tokens(self, measure: &Measure, ours: impl Fn(&Measure) -> u64) -> u64 {
        self.heuristic()
            .map_or_else(|| ours(measure), |design| design.sizes(measure.sizes()))
    }

    /// The tokens of tool definitions; none for our own estimate.
    pub fn tools(self, tools: &Measure) -> Option<u64> {
        self.heuristic().map(|design| design.tools(tools.sizes()))
    }

    /// The tokens of a text alone.
    pub fn text(self, text: &str) -> u64 {
        self.heuristic().map_or_else(
            || Measure::of_text(text).tokens(),
            |design| design.text(text),
        )
    }

    /// The tokens of one message.
    pub fn message(self, message: &Message) -> u64 {
        self.heuristic().map_or_else(
            || Measure::of(message).tokens(),
            |design| design.message(message),
        )
    }
}
