//! The settings for old outputs.

use serde::{Deserialize, Serialize};

use crate::budget::percent;
use crate::view::trim::OutputBudget;

/// What happens to outputs that are already in the window. Of several ways that are enabled, the
/// first that has something to do is used at a moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ageing {
    /// The oldest become placeholders until all outputs fit a budget (design `refs`).
    pub placeholder: PlaceholderAgeing,
    /// All but the newest batch keep their first chars (design `retention`).
    pub prefix: PrefixAgeing,
    /// The oldest are archived, and a summary represents them (design `archive`).
    pub archive: ArchiveAgeing,
    /// At switch points the oldest rounds become a digest (ours).
    pub rewrite: RewriteAgeing,
}

impl Ageing {
    /// The size of the messages at which old outputs are shortened, and the size after that, for a
    /// room of `room` tokens.
    pub fn marks(&self, room: u64) -> (u64, u64) {
        if self.rewrite.enabled {
            (self.rewrite.high_mark(room), self.rewrite.low_mark(room))
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

/// Who writes the summary of an archived output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolSummaries {
    /// A model; an excerpt if it fails.
    #[default]
    Llm,
    /// An excerpt.
    Heuristic,
    /// Nobody; no output is archived.
    Off,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RewriteAgeing {
    /// True to enable it.
    pub enabled: bool,
    /// From 1 to 20: how many rewrites reading old text may cost before it is rewritten, and how
    /// much of it stays. Higher keeps more.
    pub economy: u64,
    /// The high-water mark: a window above this share of the room for messages is rewritten before
    /// it is sent, at any cost.
    pub high_percent: u64,
}

impl Default for RewriteAgeing {
    fn default() -> Self {
        Self {
            enabled: false,
            economy: 6,
            high_percent: 97,
        }
    }
}

/// The room for messages that the figures below refer to. They grow with the room up to another
/// one: a larger window is not filled only because it is there.
const SMALL_ROOM: u64 = 40_000;
const LARGE_ROOM: u64 = 100_000;
/// The tokens of the files and searches, per step of the economy.
const WHOLE_TOKENS: u64 = 850;
/// The tokens of the digest, and those per step of the economy.
const DIGEST_TOKENS: u64 = 600;
const DIGEST_STEP: u64 = 80;
/// The least tokens of a digest: less says nothing.
const LEAST_DIGEST: u64 = 250;
/// The limit of the digest, in percent of the room.
const DIGEST_PERCENT: u64 = 18;
/// The same for the files and searches.
const WHOLE_PERCENT: u64 = 25;

impl RewriteAgeing {
    /// The high-water mark of a room for messages, in tokens.
    pub fn high_mark(&self, room: u64) -> u64 {
        percent(room, self.high_percent)
    }

    /// The approximate size that a rewrite leaves.
    pub fn low_mark(&self, room: u64) -> u64 {
        self.whole_budget(room) + self.digest_budget(room)
    }

    /// The tokens of the files and searches that stay.
    pub(crate) fn whole_budget(&self, room: u64) -> u64 {
        let tokens = WHOLE_TOKENS.saturating_mul(self.economy);
        half_scaled(tokens, room).min(percent(room, WHOLE_PERCENT))
    }

    /// The tokens of the digest.
    pub(crate) fn digest_budget(&self, room: u64) -> u64 {
        let tokens = DIGEST_TOKENS + DIGEST_STEP.saturating_mul(self.economy);
        let tokens = scale_to_room(tokens, room).min(percent(room, DIGEST_PERCENT));
        tokens.max(LEAST_DIGEST)
    }

    /// How many rewrites reading old text may cost before it is rewritten, in thousandths.
    pub(crate) fn patience(&self, room: u64) -> u64 {
        scale_to_room(self.economy.saturating_mul(1_000), room)
    }
}

/// Scales half of a figure. What is needed again is mostly new, however large the window is.
fn half_scaled(figure: u64, room: u64) -> u64 {
    figure / 2 + scale_to_room(figure, room) / 2
}

/// Scales a figure for a small room to a larger one.
fn scale_to_room(figure: u64, room: u64) -> u64 {
    figure.saturating_mul(room.clamp(SMALL_ROOM, LARGE_ROOM)) / SMALL_ROOM
}
