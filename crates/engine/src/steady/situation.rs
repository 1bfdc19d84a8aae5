//! What is known at a switch point.

use std::fmt;

use serde::{Deserialize, Serialize};
use trimtab_model::estimate::Measure;

use super::arithmetic::Rates;

/// Why bytes that were sent may change now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Switch {
    /// The window is above its high-water mark, or will be soon.
    HighWater,
    /// The cache is cold: rewriting costs nothing extra.
    Cold,
    /// The next call would be billed at a higher price for its length.
    PriceCliff,
    /// The provider said that the window was too large.
    Overflow,
    /// Somebody asked for it.
    ByHand,
}

impl fmt::Display for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HighWater => "the high-water mark",
            Self::Cold => "a cold cache",
            Self::PriceCliff => "a higher price ahead",
            Self::Overflow => "an overflow",
            Self::ByHand => "by hand",
        })
    }
}

/// What is known at a switch point.
#[derive(Clone, Copy)]
pub struct Situation<'a> {
    /// Why there is one.
    pub switch: Switch,
    /// The room for messages, in tokens: the window without tools and the answer's reserve.
    pub room: u64,
    /// How many messages of the log stand before the first answer: what the user says among
    /// them is the task.
    pub opening: usize,
    /// The tokens of a measure, by the caller's estimate. Measures add up, so this should too.
    pub weigh: &'a dyn Fn(&Measure) -> u64,
    /// What cached and uncached tokens cost.
    pub rates: Rates,
    /// How many further calls are expected.
    pub calls: u64,
    /// True where reasoning is only valid behind the exact bytes that it was made behind: what
    /// stands behind the first change is left out.
    pub bound_reasoning: bool,
}

impl fmt::Debug for Situation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Situation")
            .field("switch", &self.switch)
            .field("room", &self.room)
            .field("opening", &self.opening)
            .field("rates", &self.rates)
            .field("calls", &self.calls)
            .field("bound_reasoning", &self.bound_reasoning)
            .finish_non_exhaustive()
    }
}
