//! The settings for old outputs.

use serde::{Deserialize, Serialize};

use crate::budget::percent;
use crate::compaction::archive::ToolSummaries;
use crate::view::trim::OutputBudget;

/// What happens to outputs that are already in the window. The ways are independent and can be
/// combined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ageing {
    /// The oldest become placeholders until all outputs fit a budget (design `refs`).
    pub placeholder: PlaceholderAgeing,
    /// All but the newest batch keep their first chars (design `retention`).
    pub prefix: PrefixAgeing,
    /// The oldest are archived, and a summary represents them (design `archive`).
    pub archive: ArchiveAgeing,
    /// At switch points they become excerpts, and the oldest rounds a block of text (ours).
    pub cards: RewriteAgeing,
}

impl Ageing {
    /// The size of the messages at which old outputs are shortened, and the size after that, for a
    /// room of `room` tokens.
    pub fn marks(&self, room: u64) -> (u64, u64) {
        if self.cards.enabled {
            (self.cards.high_mark(room), self.cards.low_mark(room))
        } else {
            // The designs have no such marks. Cuts by room assume these.
            (room, room / 2)
        }
    }
}

/// The oldest outputs become placeholders until all outputs fit a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlaceholderAgeing {
    /// True to enable it.
    pub enabled: bool,
    /// The limit of all outputs of a window in tokens.
    pub budget: OutputBudget,
}

/// All outputs but the newest batch are cut to their first chars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PrefixAgeing {
    /// True to enable it.
    pub enabled: bool,
    /// The input tokens of the last call above which it happens; 0 for never.
    pub input_budget: u64,
    /// The number of chars that stay.
    pub chars: usize,
}

impl Default for PrefixAgeing {
    fn default() -> Self {
        Self {
            enabled: false,
            input_budget: 40_000,
            chars: 500,
        }
    }
}

/// The oldest visible outputs are archived, and a summary represents them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ArchiveAgeing {
    /// True to enable it.
    pub enabled: bool,
    /// The number of outputs that stay visible.
    pub cutoff: usize,
    /// Who writes the summaries.
    pub summaries: ToolSummaries,
}

impl Default for ArchiveAgeing {
    fn default() -> Self {
        Self {
            enabled: false,
            cutoff: 10,
            summaries: ToolSummaries::Llm,
        }
    }
}

/// What a rewrite at a switch point leaves.
///
/// Figures in tokens are per step of the economy, for a room of 40,000 tokens. They are multiplied
/// by the economy, grow with the room up to 100,000 tokens (a larger window is not filled only
/// because it is there), and never exceed a share of the room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RewriteAgeing {
    /// True to enable it.
    pub enabled: bool,
    /// From thrifty (1) to rich (20): how often the cost of a rewrite is spent on reading old text
    /// before it is rewritten, and how much of it stays.
    pub economy: u64,
    /// The high-water mark: a window above this share of the room for messages is rewritten before
    /// it is sent, at any cost.
    pub high_percent: u64,
    /// If the cache is cold anyway, a window above this share is rewritten.
    pub cold_percent: u64,
    /// The tokens of the newest rounds, which a rewrite leaves unchanged, per step of the economy.
    /// The two newest outputs are always among them.
    pub tail_tokens: u64,
    /// The tokens of older files and searches that stay in full, per step of the economy.
    pub whole_tokens: u64,
    /// The tokens of the newest shortened rounds, per step of the economy. The others are hidden.
    pub keep_tokens: u64,
    /// The tokens of the block about hidden rounds, per step of the economy, in addition to 1,200
    /// tokens.
    pub block_tokens: u64,
    /// The share of the model's own words in that block, in percent.
    pub words_percent: u64,
    /// The kept share of a file or a search, in percent.
    pub excerpt_percent: u64,
    /// The limit of that, in bytes.
    pub excerpt_bytes: usize,
    /// The share of names without their line in an excerpt, in percent.
    pub names_percent: u64,
    /// Files and searches of fewer bytes stay unchanged.
    pub small_bytes: usize,
    /// The limit of user messages before the block, in percent of the room for messages.
    pub user_percent: u64,
    /// The same in tokens.
    pub user_tokens: u64,
}

impl Default for RewriteAgeing {
    fn default() -> Self {
        Self {
            enabled: false,
            economy: 4,
            high_percent: 97,
            cold_percent: 60,
            tail_tokens: 150,
            whole_tokens: 600,
            keep_tokens: 110,
            block_tokens: 325,
            words_percent: 9,
            excerpt_percent: 45,
            excerpt_bytes: 4_800,
            names_percent: 80,
            small_bytes: 1_200,
            user_percent: 10,
            user_tokens: 8_000,
        }
    }
}

/// The room for messages that figures in tokens refer to.
const TOLD_FOR: u64 = 40_000;
/// Figures grow with the room up to this one.
const MOST_ROOM: u64 = 100_000;
/// The base size of a block in tokens.
const BLOCK_TOKENS: u64 = 1_200;
/// The additional share of the room above 40,000 tokens, per step of the economy: a larger window
/// has longer sessions to report.
const BLOCK_GROWTH_PERCENT: u64 = 1;
/// The limit of the block before it is scaled to the room.
const MOST_BLOCK_TOKENS: u64 = 6_000;
/// The limit of a block, in percent of the room for messages.
const BLOCK_PERCENT: u64 = 18;
/// The limit of old files that stay in full, per step of the economy: what is needed again is
/// mostly new, however large the window is.
const MOST_WHOLE_TOKENS: u64 = 1_080;
/// The limit of each of the other parts, in percent of the room.
const PART_PERCENT: u64 = 25;
/// What is kept of an output that was not requested to be read: in percent, and in bytes.
const RUN_PERCENT: usize = 5;
const RUN_BYTES: usize = 400;
/// The minimum that is kept of an output in bytes.
const LEAST_EXCERPT: usize = 120;

impl RewriteAgeing {
    /// The high-water mark of a room for messages, in tokens.
    pub fn high_mark(&self, room: u64) -> u64 {
        percent(room, self.high_percent)
    }

    /// The mark above which a window is rewritten if the cache is cold.
    pub fn cold_mark(&self, room: u64) -> u64 {
        // The cold mark must not be above the high-water mark, which forces a rewrite anyway.
        percent(room, self.cold_percent.min(self.high_percent))
    }

    /// The approximate size that a rewrite leaves.
    pub fn low_mark(&self, room: u64) -> u64 {
        self.tail_budget(room)
            + self.whole_output_limit(room)
            + self.keep_budget(room)
            + self.block_budget(room)
    }

    pub(crate) fn tail_budget(&self, room: u64) -> u64 {
        self.scaled_tokens(self.tail_tokens, room)
    }

    pub(crate) fn whole_output_limit(&self, room: u64) -> u64 {
        let most = MOST_WHOLE_TOKENS.saturating_mul(self.economy);
        self.scaled_tokens(self.whole_tokens, room).min(most)
    }

    pub(crate) fn keep_budget(&self, room: u64) -> u64 {
        self.scaled_tokens(self.keep_tokens, room)
    }

    pub(crate) fn block_budget(&self, room: u64) -> u64 {
        let tokens = BLOCK_TOKENS.saturating_add(self.block_tokens.saturating_mul(self.economy));
        let above = room.clamp(TOLD_FOR, MOST_ROOM) - TOLD_FOR;
        let growth = percent(above, BLOCK_GROWTH_PERCENT.saturating_mul(self.economy));
        let tokens = scale_to_room(tokens.min(MOST_BLOCK_TOKENS), room).saturating_add(growth);
        // In a small window the share is the limit.
        tokens.min(percent(room, BLOCK_PERCENT))
    }

    fn scaled_tokens(&self, tokens: u64, room: u64) -> u64 {
        let tokens = scale_to_room(tokens.saturating_mul(self.economy), room);
        tokens.min(percent(room, PART_PERCENT))
    }

    /// How often the cost of a rewrite may be spent on reading old text before it is rewritten, in
    /// thousandths.
    pub(crate) fn patience(&self, room: u64) -> u64 {
        scale_to_room(self.economy.saturating_mul(1_000), room)
    }

    /// The bytes that are kept of a file or a search of this size, in this room.
    pub(crate) fn excerpt_bytes(&self, bytes: usize, room: u64) -> usize {
        let share = percent(bytes as u64, self.excerpt_percent);
        let most = scale_to_room(self.excerpt_bytes as u64, room);
        let bytes = usize::try_from(share.min(most)).unwrap_or(usize::MAX);
        bytes.max(LEAST_EXCERPT)
    }

    /// The same for the output of a run.
    pub(crate) fn command_excerpt_bytes(bytes: usize) -> usize {
        (bytes / 100 * RUN_PERCENT).clamp(LEAST_EXCERPT, RUN_BYTES)
    }

    pub(crate) fn user_budget(&self, room: u64) -> u64 {
        percent(room, self.user_percent).min(self.user_tokens)
    }
}

/// Scales a figure for a room of 40,000 tokens to a larger one.
pub(crate) fn scale_to_room(figure: u64, room: u64) -> u64 {
    figure.saturating_mul(room.clamp(TOLD_FOR, MOST_ROOM)) / TOLD_FOR
}
