//! What happens to old outputs.

use serde::{Deserialize, Serialize};

use crate::budget::percent;
use crate::compaction::archive::ToolSummaries;
use crate::view::trim::OutputBudget;

/// What happens to outputs that are in the window already. Each way can be switched on by
/// itself; several go together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ageing {
    /// The oldest become placeholders until all outputs fit a budget (design `refs`).
    pub placeholder: Placeholders,
    /// All but the newest batch keep their first chars (design `retention`).
    pub prefix: Prefixes,
    /// The oldest are archived and a summary stands for them (design `archive`).
    pub archive: Archiving,
    /// At switch points they become index cards, and the oldest rounds a block of facts (ours).
    pub cards: Rewriting,
}

impl Ageing {
    /// What messages may take of a room of so many tokens before old outputs are aged, and what
    /// they take after that.
    pub fn marks(&self, room: u64) -> (u64, u64) {
        if self.cards.enabled {
            (self.cards.high(room), self.cards.low(room))
        } else {
            (room, room / 2)
        }
    }
}

/// The oldest outputs become placeholders until all outputs fit a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Placeholders {
    /// True to do it.
    pub enabled: bool,
    /// How many tokens of output a window may hold.
    pub budget: OutputBudget,
}

/// All outputs but the newest batch are cut to their first chars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prefixes {
    /// True to do it.
    pub enabled: bool,
    /// Above this many input tokens of the last call.
    pub input_budget: u64,
    /// How many chars stay.
    pub chars: usize,
}

impl Default for Prefixes {
    fn default() -> Self {
        Self {
            enabled: false,
            input_budget: 40_000,
            chars: 500,
        }
    }
}

/// The oldest visible outputs are archived, and a summary stands for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Archiving {
    /// True to do it.
    pub enabled: bool,
    /// How many outputs stay visible.
    pub cutoff: usize,
    /// Who writes what stands for them.
    pub summaries: ToolSummaries,
}

impl Default for Archiving {
    fn default() -> Self {
        Self {
            enabled: false,
            cutoff: 10,
            summaries: ToolSummaries::Llm,
        }
    }
}

/// What a rewrite at a switch point leaves. Shares are of the room for messages, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rewriting {
    /// True to do it.
    pub enabled: bool,
    /// The high-water mark: a window above it is rewritten before it is sent.
    pub high_percent: u64,
    /// Where the cache is cold anyway, a window above this share is rewritten.
    pub cold_percent: u64,
    /// The low-water mark: what a rewrite brings the window down to.
    pub low_percent: u64,
    /// What the newest rounds may take that a rewrite leaves as they are.
    pub tail_percent: u64,
    /// The most the block of facts about the oldest rounds may take.
    pub block_percent: u64,
    /// The same, in tokens.
    pub block_tokens: u64,
    /// What the model's own words may take of that block, in percent.
    pub words_percent: u64,
    /// What the names on an index card may take of the output, in percent.
    pub card_percent: u64,
    /// The most they may take, in bytes.
    pub card_bytes: usize,
    /// The most the names of one hidden output may take in the block, in bytes.
    pub line_bytes: usize,
    /// Outputs of fewer bytes stay as they are.
    pub small_bytes: usize,
    /// What the user's messages before the block may take.
    pub user_percent: u64,
    /// The same, in tokens.
    pub user_tokens: u64,
}

/// The names of a short output may take so many bytes, if it has them.
const LEAST_NAMES: usize = 240;

impl Default for Rewriting {
    fn default() -> Self {
        Self {
            enabled: false,
            high_percent: 97,
            cold_percent: 60,
            low_percent: 36,
            tail_percent: 8,
            block_percent: 30,
            block_tokens: 15_000,
            words_percent: 20,
            card_percent: 30,
            card_bytes: 3_000,
            line_bytes: 2_400,
            small_bytes: 600,
            user_percent: 10,
            user_tokens: 8_000,
        }
    }
}

impl Rewriting {
    /// The high-water mark of a room for messages, in tokens.
    pub fn high(&self, room: u64) -> u64 {
        percent(room, self.high_percent)
    }

    /// The mark above which a window is rewritten where the cache is cold.
    pub fn cold(&self, room: u64) -> u64 {
        percent(room, self.cold_percent.min(self.high_percent))
    }

    /// The low-water mark.
    pub fn low(&self, room: u64) -> u64 {
        percent(room, self.low_percent.min(self.high_percent))
    }

    pub(crate) fn tail(&self, room: u64) -> u64 {
        percent(room, self.tail_percent.min(self.low_percent))
    }

    pub(crate) fn block(&self, room: u64) -> u64 {
        percent(room, self.block_percent).min(self.block_tokens)
    }

    /// Bytes of names on the card of an output of so many bytes.
    pub(crate) fn names(&self, bytes: usize) -> usize {
        let share = usize::try_from(percent(bytes as u64, self.card_percent));
        let share = share.unwrap_or(usize::MAX).max(LEAST_NAMES.min(bytes));
        share.min(self.card_bytes)
    }

    pub(crate) fn user(&self, room: u64) -> u64 {
        percent(room, self.user_percent).min(self.user_tokens)
    }
}
