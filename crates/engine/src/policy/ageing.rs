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
    pub placeholder: PlaceholderAgeing,
    /// All but the newest batch keep their first chars (design `retention`).
    pub prefix: PrefixAgeing,
    /// The oldest are archived and a summary stands for them (design `archive`).
    pub archive: ArchiveAgeing,
    /// At switch points they become excerpts, and the oldest rounds a block of text (ours).
    pub cards: RewriteAgeing,
}

impl Ageing {
    /// What messages may take of a room of so many tokens before old outputs are aged, and what
    /// they take after that.
    pub fn marks(&self, room: u64) -> (u64, u64) {
        if self.cards.enabled {
            (self.cards.high_mark(room), self.cards.low_mark(room))
        } else {
            (room, room / 2)
        }
    }
}

/// The oldest outputs become placeholders until all outputs fit a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlaceholderAgeing {
    /// True to do it.
    pub enabled: bool,
    /// How many tokens of output a window may hold.
    pub budget: OutputBudget,
}

/// All outputs but the newest batch are cut to their first chars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PrefixAgeing {
    /// True to do it.
    pub enabled: bool,
    /// Above this many input tokens of the last call; 0 for never.
    pub input_budget: u64,
    /// How many chars stay.
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

/// The oldest visible outputs are archived, and a summary stands for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ArchiveAgeing {
    /// True to do it.
    pub enabled: bool,
    /// How many outputs stay visible.
    pub cutoff: usize,
    /// Who writes what stands for them.
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
/// Figures in tokens are told for each step of the economy and for a room for messages of 40,000
/// tokens. They are multiplied by the economy, grow with the room up to 100,000 tokens (a larger
/// window is not used only because it is there), and are never more than a share of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RewriteAgeing {
    /// True to do it.
    pub enabled: bool,
    /// From thrifty (1) to rich (20): how often the cost of a rewrite is spent on reading old
    /// text before it is rewritten, and how much of it stays then.
    pub economy: u64,
    /// The high-water mark: a window above this share of the room for messages is rewritten
    /// before it is sent, whatever it costs.
    pub high_percent: u64,
    /// Where the cache is cold anyway, a window above this share is rewritten.
    pub cold_percent: u64,
    /// What the newest rounds may take that a rewrite leaves as they are, for each step of the
    /// economy, in tokens. The two newest outputs are always among them.
    pub tail_tokens: u64,
    /// What older files and searches may take that stay whole, for each step of the economy.
    pub whole_tokens: u64,
    /// What the newest of the shortened rounds may take, for each step of the economy. The others
    /// are hidden.
    pub keep_tokens: u64,
    /// What the block about hidden rounds may take, for each step of the economy, beside 1,200
    /// tokens.
    pub block_tokens: u64,
    /// What the model's own words may take of that block, in percent.
    pub words_percent: u64,
    /// What is kept of a file or a search, in percent of it.
    pub excerpt_percent: u64,
    /// The most that is kept of it, in bytes.
    pub excerpt_bytes: usize,
    /// What names without their line may take of an excerpt, in percent.
    pub names_percent: u64,
    /// Files and searches of fewer bytes stay as they are.
    pub small_bytes: usize,
    /// What the user's messages before the block may take, in percent of the room for messages.
    pub user_percent: u64,
    /// The same, in tokens.
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

/// The room for messages that figures in tokens are told for.
const TOLD_FOR: u64 = 40_000;
/// They follow the room up to this one.
const MOST_ROOM: u64 = 100_000;
/// A block has so many tokens, and so many more for each step of the economy.
const BLOCK_TOKENS: u64 = 1_200;
/// Of the room above 40,000 tokens it has this share more for each step: the larger the window, the
/// longer the session that it has to tell of.
const BLOCK_GROWTH_PERCENT: u64 = 1;
/// And at most so many.
const MOST_BLOCK_TOKENS: u64 = 6_000;
/// The most of the room for messages that a block may take, in percent.
const BLOCK_PERCENT: u64 = 18;
/// Old files that stay whole take at most so many tokens for each step: what is needed again is
/// mostly new, however large the window is.
const MOST_WHOLE_TOKENS: u64 = 1_080;
/// The most that each of the other parts may take of it.
const PART_PERCENT: u64 = 25;
/// What is kept of an output that was not asked for to be read: in percent, and in bytes.
const RUN_PERCENT: usize = 5;
const RUN_BYTES: usize = 400;
/// Something is kept of every output that has so many bytes.
const LEAST_EXCERPT: usize = 120;

impl RewriteAgeing {
    /// The high-water mark of a room for messages, in tokens.
    pub fn high_mark(&self, room: u64) -> u64 {
        percent(room, self.high_percent)
    }

    /// The mark above which a window is rewritten where the cache is cold.
    pub fn cold_mark(&self, room: u64) -> u64 {
        percent(room, self.cold_percent.min(self.high_percent))
    }

    /// What a rewrite leaves of a room for messages, about.
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
        let tokens = BLOCK_TOKENS + self.block_tokens.saturating_mul(self.economy);
        let above = room.clamp(TOLD_FOR, MOST_ROOM) - TOLD_FOR;
        let growth = percent(above, BLOCK_GROWTH_PERCENT.saturating_mul(self.economy));
        let tokens = scale_to_room(tokens.min(MOST_BLOCK_TOKENS), room).saturating_add(growth);
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

    /// Bytes that are kept of a file or a search of so many bytes, in such a room.
    pub(crate) fn excerpt_bytes(&self, bytes: usize, room: u64) -> usize {
        let share = percent(bytes as u64, self.excerpt_percent);
        let most = scale_to_room(self.excerpt_bytes as u64, room);
        let bytes = usize::try_from(share.min(most)).unwrap_or(usize::MAX);
        bytes.max(LEAST_EXCERPT)
    }

    /// The same of the output of something that was run.
    pub(crate) fn command_excerpt_bytes(bytes: usize) -> usize {
        (bytes / 100 * RUN_PERCENT).clamp(LEAST_EXCERPT, RUN_BYTES)
    }

    pub(crate) fn user_budget(&self, room: u64) -> u64 {
        percent(room, self.user_percent).min(self.user_tokens)
    }
}

/// A figure that is told for a room of 40,000 tokens, for a larger one.
pub(crate) fn scale_to_room(figure: u64, room: u64) -> u64 {
    figure.saturating_mul(room.clamp(TOLD_FOR, MOST_ROOM)) / TOLD_FOR
}
