//! Is this a moment at which bytes that were sent may change?

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::budget::percent;
use crate::planner::CallConditions;
use crate::policy::RewriteAgeing;

/// Whether a rewrite pays is looked at with every so many calls.
const CALLS_BETWEEN_LOOKS: u64 = 3;
/// After so many calls since the last rewrite a window counts as long.
const CALLS_OF_EARLY_LOOKS: u64 = 48;
/// A rewrite leaves at least so much of what the one before it left, in percent.
const LEFT_AGAIN: u64 = 85;
/// What is left of the room below a price cliff, in percent: counts differ.
const BELOW_CLIFF: u64 = 98;

/// Why bytes that were sent may change now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SwitchReason {
    /// The window is above its high-water mark.
    HighWater,
    /// Reading what a rewrite would take out has cost as much as the rewrite.
    ReadTooOften,
    /// The cache is cold: rewriting costs nothing extra.
    Cold,
    /// The next call would be billed at a higher price for its length.
    PriceCliff,
}

impl fmt::Display for SwitchReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HighWater => "the high-water mark",
            Self::ReadTooOften => "old text was read too often",
            Self::Cold => "a cold cache",
            Self::PriceCliff => "a higher price ahead",
        })
    }
}

/// What a token costs, as a multiple of one that touches no cache, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRates {
    /// Read from the cache.
    pub read: u64,
    /// Written to the cache.
    pub write: u64,
    /// What every token costs as long as the prompt stays as long as it is: more than 1,000
    /// above a price cliff.
    pub rise: u64,
}

impl Default for TokenRates {
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
pub struct PriceCliff {
    /// Above so many tokens.
    pub above: u64,
    /// What a token costs then, in thousandths of what it costs below.
    pub rise: u64,
}

/// A switch point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SwitchPoint {
    /// Why it is one.
    pub(super) switch: SwitchReason,
    /// The room for messages that the window has to be brought into.
    pub(super) room: u64,
    /// What tokens cost.
    pub(super) rates: TokenRates,
}

/// The switch point that this is for a window of `total` tokens; none if it is none.
pub(super) fn switch_point(
    settings: &RewriteAgeing,
    conditions: &CallConditions<'_>,
    total: u64,
) -> Option<SwitchPoint> {
    conditions.window?;
    let room = conditions.messages_room();
    let due = |switch| SwitchPoint {
        switch,
        room,
        rates: conditions.rates,
    };
    if total > settings.high_mark(room) {
        return Some(due(SwitchReason::HighWater));
    }
    let cold = conditions.cold && total > settings.cold_mark(room);
    cliff(conditions, total).or_else(|| cold.then(|| due(SwitchReason::Cold)))
}

/// The switch point that old text makes which may have been read too often in `calls` calls since
/// a rewrite left `left` tokens. Whether it was is only known once it is known what a rewrite
/// would take out: see [`was_read_too_often`].
pub(super) fn possible_switch_point(
    settings: &RewriteAgeing,
    conditions: &CallConditions<'_>,
    total: u64,
    (calls, left): (u64, u64),
) -> Option<SwitchPoint> {
    // Where nobody knows the window, money is still a reason.
    let known = conditions.window.map(|_| conditions.messages_room());
    let switch_point = SwitchPoint {
        switch: SwitchReason::ReadTooOften,
        room: known.unwrap_or(u64::MAX),
        rates: conditions.rates,
    };
    // A rewrite seldom leaves less than this. What it would really leave is looked up only now
    // and then, because that costs a walk over the window.
    let least = settings.low_mark(switch_point.room);
    // In a long window the walk is long too. There, a look must promise more.
    let is_long = calls > CALLS_OF_EARLY_LOOKS;
    let expected = least.max(if is_long {
        percent(left, LEFT_AGAIN)
    } else {
        0
    });
    let read = read_in_vain(total, expected, calls, &switch_point.rates);
    let may_be = total >= least.saturating_mul(2)
        && calls.is_multiple_of(CALLS_BETWEEN_LOOKS)
        && read >= cost_limit(settings, expected, &switch_point);
    may_be.then_some(switch_point)
}

/// True if reading what a rewrite would take out has cost as much as writing the rest again, in
/// `calls` calls since the last rewrite. That is when it is cheapest, whether or not the session
/// goes on for long. `suffix` is what is written again.
pub(super) fn was_read_too_often(
    settings: &RewriteAgeing,
    switch_point: &SwitchPoint,
    (before, after, suffix): (u64, u64, u64),
    calls: u64,
) -> bool {
    let read = read_in_vain(before, after, calls, &switch_point.rates);
    read >= cost_limit(settings, suffix, switch_point)
}

/// What it cost to read a window beyond `after` tokens that grew from there to `before`.
fn read_in_vain(before: u64, after: u64, calls: u64, rates: &TokenRates) -> u64 {
    let grown = before.saturating_sub(after) / 2;
    grown.saturating_mul(calls).saturating_mul(rates.read)
}

/// What writing `suffix` tokens again may have cost in vain before it is done.
fn cost_limit(settings: &RewriteAgeing, suffix: u64, switch_point: &SwitchPoint) -> u64 {
    let extra = switch_point
        .rates
        .write
        .saturating_sub(switch_point.rates.read);
    let cost = suffix.saturating_mul(extra);
    cost.saturating_mul(settings.patience(switch_point.room)) / 1_000
}

/// The cliff that the next call would go over.
fn cliff(conditions: &CallConditions<'_>, total: u64) -> Option<SwitchPoint> {
    let room =
        |cliff: &PriceCliff| cliff.above.saturating_sub(conditions.tools) * BELOW_CLIFF / 100;
    let ahead = |cliff: &&PriceCliff| total > room(cliff);
    let cliff = conditions.cliffs.iter().rev().find(ahead)?;
    Some(SwitchPoint {
        switch: SwitchReason::PriceCliff,
        room: room(cliff),
        rates: TokenRates {
            rise: cliff.rise,
            ..conditions.rates
        },
    })
}
