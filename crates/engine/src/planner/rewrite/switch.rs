//! Is this a moment at which bytes that were sent may change?

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::planner::Conditions;
use crate::policy::Rewriting;

/// What is left of the room below a price cliff, in percent: counts differ.
const BELOW_CLIFF: u64 = 98;

/// Why bytes that were sent may change now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Switch {
    /// The window is above its high-water mark.
    HighWater,
    /// The cache is cold: rewriting costs nothing extra.
    Cold,
    /// The next call would be billed at a higher price for its length.
    PriceCliff,
}

impl fmt::Display for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HighWater => "the high-water mark",
            Self::Cold => "a cold cache",
            Self::PriceCliff => "a higher price ahead",
        })
    }
}

/// What a token costs, as a multiple of one that touches no cache, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    /// Read from the cache.
    pub read: u64,
    /// Written to the cache.
    pub write: u64,
    /// What every token costs as long as the prompt stays as long as it is: more than 1,000
    /// above a price cliff.
    pub rise: u64,
}

impl Default for Rates {
    /// A tenth for reading, a quarter more for writing: what most providers ask.
    fn default() -> Self {
        Self {
            read: 100,
            write: 1_250,
            rise: 1_000,
        }
    }
}

/// A length of the prompt from which on every token costs more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cliff {
    /// Above so many tokens.
    pub above: u64,
    /// What a token costs then, in thousandths of what it costs below.
    pub rise: u64,
}

/// A switch point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    /// Why it is one.
    pub(super) switch: Switch,
    /// The room for messages that the window has to be brought into.
    pub(super) room: u64,
    /// What tokens cost.
    pub(super) rates: Rates,
}

/// The switch point that this is for a window of `total` tokens; none if it is none.
pub(super) fn due(settings: &Rewriting, conditions: &Conditions<'_>, total: u64) -> Option<Due> {
    conditions.window?;
    let room = conditions.messages_room();
    let due = |switch| Due {
        switch,
        room,
        rates: conditions.rates,
    };
    if total > settings.high(room) {
        return Some(due(Switch::HighWater));
    }
    let cold = conditions.cold && total > settings.cold(room);
    cliff(conditions, total).or_else(|| cold.then(|| due(Switch::Cold)))
}

/// The cliff that the next call would go over.
fn cliff(conditions: &Conditions<'_>, total: u64) -> Option<Due> {
    let room = |cliff: &Cliff| cliff.above.saturating_sub(conditions.tools) * BELOW_CLIFF / 100;
    let ahead = |cliff: &&Cliff| total > room(cliff);
    let cliff = conditions.cliffs.iter().rev().find(ahead)?;
    Some(Due {
        switch: Switch::PriceCliff,
        room: room(cliff),
        rates: Rates {
            rise: cliff.rise,
            ..conditions.rates
        },
    })
}
