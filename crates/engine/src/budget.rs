//! What fills a window, and how much of it is left.

use std::ops::Sub;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use trimtab_model::estimate::Measure;
use trimtab_model::{Message, MessageKind, Role};

/// The answer that is reserved where nobody says how long it may be.
pub(crate) const DEFAULT_MAX_OUTPUT: u64 = 8_192;

/// The measures of the regions that messages fill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionMeasures {
    /// System messages.
    pub system: Measure,
    /// Summaries and what was retained with them.
    pub summary: Measure,
    /// Everything else that was said.
    pub log: Measure,
}

impl RegionMeasures {
    /// Adds a message that measures `measure`.
    pub fn add(&mut self, message: &Message, measure: Measure) {
        *self.region(message) += measure;
    }

    /// A message that measured `old` measures `new` now, and stands where it stood.
    pub(crate) fn replace(&mut self, message: &Message, old: Measure, new: Measure) {
        let region = self.region(message);
        *region -= old;
        *region += new;
    }

    /// All regions together.
    pub fn total(&self) -> Measure {
        self.system + self.summary + self.log
    }

    fn region(&mut self, message: &Message) -> &mut Measure {
        match (message.meta.kind, message.role) {
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
        }
    }
}

/// So many percent of `whole`.
pub fn percent(whole: u64, percent: u64) -> u64 {
    let share = u128::from(whole) * u128::from(percent) / 100;
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// The part of a window that no plan may remove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Floor {
    /// System messages.
    pub system: u64,
    /// Tool definitions.
    pub tools: u64,
    /// The task: what the user said before the first answer.
    pub task: u64,
    /// The newest turn: its user message and what must stay with it.
    pub newest_turn: u64,
    /// The newest round of that turn: its outputs are what the next answer is about.
    pub open_calls: u64,
    /// The least that an answer needs.
    pub answer: u64,
}

/// The floor alone is more than the budget: no plan can make the window fit.
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

impl Floor {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.parts()
            .into_iter()
            .fold(0, |sum, (_, tokens)| sum.saturating_add(tokens))
    }

    /// An error that names the largest part if the floor is more than `budget`.
    pub fn check(&self, budget: u64) -> Result<(), FloorTooLarge> {
        let floor = self.total();
        let largest = self.parts().into_iter().max_by_key(|(_, tokens)| *tokens);
        match largest {
            Some((part, tokens)) if floor > budget => Err(FloorTooLarge {
                part,
                tokens,
                floor,
                budget,
            }),
            _ => Ok(()),
        }
    }

    fn parts(&self) -> [(&'static str, u64); 6] {
        [
            ("the system messages", self.system),
            ("the tool definitions", self.tools),
            (
                "the task, which the user gave before the first answer,",
                self.task,
            ),
            ("the newest turn", self.newest_turn),
            ("the open calls", self.open_calls),
            ("the answer's reserve", self.answer),
        ]
    }
}

/// The level to which sizes have to be cut so that they come to `wanted` together.
pub(crate) fn cut_level(mut sizes: Vec<usize>, wanted: usize) -> usize {
    sizes.sort_unstable();
    let mut left = wanted;
    let count = sizes.len();
    for (at, size) in sizes.iter().enumerate() {
        let share = left / (count - at);
        if *size > share {
            return share;
        }
        left -= size;
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_names_what_alone_is_too_large() {
        let floor = Floor {
            system: 10,
            tools: 900,
            newest_turn: 200,
            ..Floor::default()
        };
        assert_eq!(floor.check(1_110), Ok(()));
        let error = floor.check(1_000).unwrap_err();
        assert_eq!(
            error.to_string(),
            "what must stay in the window takes 1110 of 1000 tokens; \
             most of it is the tool definitions with 900"
        );
    }
}
