//! The regions of a window, and arithmetic on shares.

use std::ops::Sub;

use thiserror::Error;
use trimtab_model::estimate::Measure;
use trimtab_model::{Message, MessageKind, Role, Treatment};

/// The reserve for the answer if the request sets no limit.
pub(crate) const DEFAULT_MAX_OUTPUT: u64 = 8_192;

/// The measures of a window's messages, by region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionMeasures {
    /// System messages.
    pub system: Measure,
    /// Summaries and what was retained with them.
    pub summary: Measure,
    /// All other messages.
    pub log: Measure,
    /// The share of both that the provider ignores, because its own summary follows.
    pub ignored: Measure,
}

impl RegionMeasures {
    /// Adds a message with its measure.
    pub fn add(&mut self, message: &Message, measure: Measure) {
        if message.has_part_with(Treatment::Boundary) {
            self.ignored = self.summary + self.log;
        }
        *self.region(message) += measure;
    }

    /// Replaces the measure of a message that stays in its region.
    pub(crate) fn replace(&mut self, message: &Message, old: Measure, new: Measure) {
        let region = self.region(message);
        *region -= old;
        *region += new;
    }

    /// All regions together, without what the provider ignores.
    pub fn total(&self) -> Measure {
        self.system + self.summary + self.log - self.ignored
    }

    fn region(&mut self, message: &Message) -> &mut Measure {
        match (message.meta.kind, message.role) {
            // The kind comes before the role: the design `turns` puts its summary into a system
            // message.
            (Some(MessageKind::Summary | MessageKind::Retain | MessageKind::ToolSummary), _) => {
                &mut self.summary
            }
            (_, Role::System) => &mut self.system,
            _ => &mut self.log,
        }
    }
}

impl Sub for RegionMeasures {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            system: self.system - other.system,
            summary: self.summary - other.summary,
            log: self.log - other.log,
            ignored: self.ignored - other.ignored,
        }
    }
}

/// `percent` percent of `whole`, rounded down.
pub fn percent(whole: u64, percent: u64) -> u64 {
    // The product can exceed 64 bits, because both figures can come from settings.
    let share = u128::from(whole) * u128::from(percent) / 100;
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// The floor alone exceeds the budget: no plan can make the window fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "what must stay in the window takes {floor} of {budget} tokens; \
     most of it is {part} with {tokens}"
)]
pub struct FloorTooLarge {
    /// The largest part of the floor, in words.
    pub part: &'static str,
    /// Its size in tokens.
    pub tokens: u64,
    /// The size of the whole floor.
    pub floor: u64,
    /// The tokens that the budget allows.
    pub budget: u64,
}

/// The length to which sizes must be cut so that their sum is at most `wanted`; smaller ones stay.
pub(crate) fn cut_level(mut sizes: Vec<usize>, wanted: usize) -> usize {
    // From the smallest on: a size below the equal share leaves its rest to the larger ones.
    sizes.sort_unstable();
    let mut left = wanted;
    let count = sizes.len();
    for (at, size) in sizes.iter().enumerate() {
        // `at` is below `count`, so this never divides by zero.
        let share = left / (count - at);
        if *size > share {
            return share;
        }
        left -= size;
    }
    usize::MAX
}
