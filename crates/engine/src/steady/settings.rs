//! The settings, with the figures that were measured best.

use serde::{Deserialize, Serialize};

/// Settings of our own policy. Shares are of the room for messages, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Steady {
    /// True to age outputs this way.
    pub enabled: bool,
    /// The high-water mark: a window above it is rewritten before it is sent.
    pub high_percent: u64,
    /// Where the cache is cold anyway, a window above this share is rewritten.
    pub cold_percent: u64,
    /// The low-water mark: what a rewrite brings the window down to.
    pub low_percent: u64,
    /// What the newest rounds may take that a rewrite leaves as they are.
    pub tail_percent: u64,
    /// The most one output may take when it comes in.
    pub cap_percent: u64,
    /// The same where the window is at its high-water mark.
    pub near_percent: u64,
    /// The most one output may take, in tokens.
    pub cap_tokens: u64,
    /// What the names in the part that was cut off may take of that, in percent.
    pub names_percent: u64,
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

impl Default for Steady {
    fn default() -> Self {
        Self {
            enabled: false,
            high_percent: 97,
            cold_percent: 60,
            low_percent: 36,
            tail_percent: 8,
            cap_percent: 8,
            near_percent: 2,
            names_percent: 55,
            cap_tokens: 20_000,
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

impl Steady {
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

    pub(super) fn tail(&self, room: u64) -> u64 {
        percent(room, self.tail_percent.min(self.low_percent))
    }

    pub(super) fn block(&self, room: u64) -> u64 {
        percent(room, self.block_percent).min(self.block_tokens)
    }

    /// Bytes of names on the card of an output of so many bytes.
    pub(super) fn names(&self, bytes: usize) -> usize {
        let share = usize::try_from(percent(bytes as u64, self.card_percent));
        let share = share.unwrap_or(usize::MAX).max(LEAST_NAMES.min(bytes));
        share.min(self.card_bytes)
    }

    pub(super) fn user(&self, room: u64) -> u64 {
        percent(room, self.user_percent).min(self.user_tokens)
    }
}

pub(super) fn percent(whole: u64, percent: u64) -> u64 {
    let share = u128::from(whole) * u128::from(percent) / 100;
    u64::try_from(share).unwrap_or(u64::MAX)
}
