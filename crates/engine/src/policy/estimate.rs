//! How tokens are estimated.

use serde::{Deserialize, Serialize};
use trimtab_model::Message;
use trimtab_model::estimate::{Heuristic, Measure};

/// Whose estimate a policy goes by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EstimateBy {
    /// Ours: by class of text, corrected by what the provider reports.
    #[default]
    Ours,
    /// A quarter of the bytes, rounded up.
    Refs,
    /// Chars and a flat share of each message, at 3.5 a token.
    Checkpoint,
    /// Chars at 2.5 a token, with what a message costs besides.
    Turns,
    /// A quarter of the chars, rounded up; an image is 1,200.
    Archive,
}

impl EstimateBy {
    /// The tokens of what was measured, where it is a design's own estimate.
    fn heuristic(self) -> Option<&'static Heuristic> {
        match self {
            Self::Ours => None,
            Self::Refs => Some(&Heuristic::REFS),
            Self::Checkpoint => Some(&Heuristic::CHECKPOINT),
            Self::Turns => Some(&Heuristic::TURNS),
            Self::Archive => Some(&Heuristic::ARCHIVE),
        }
    }

    /// The tokens of what was measured; `ours` gives our own estimate.
    pub fn tokens(self, measure: &Measure, ours: impl Fn(&Measure) -> u64) -> u64 {
        self.heuristic()
            .map_or_else(|| ours(measure), |design| design.sizes(measure.sizes()))
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
