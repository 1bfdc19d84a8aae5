//! Decides whether this is a switch point: a moment at which sent bytes may change.

use std::fmt;

use trimtab_model::estimate::Measure;

use super::RewriteAccount;
use crate::budget::percent;
use crate::decide::CallConditions;
use crate::policy::RewriteAgeing;

/// The calls between two checks whether a rewrite pays.
const CALLS_BETWEEN_LOOKS: u64 = 3;
/// After this many calls since the last rewrite, a window counts as long.
const CALLS_OF_EARLY_LOOKS: u64 = 48;
/// A rewrite that is not forced must at least halve the window.
const LEAST_RATIO: u64 = 2;
/// A rewrite is expected to leave at least this share of what the previous one left, in percent.
const LEFT_AGAIN: u64 = 85;
/// The usable share of the room below a price cliff, in percent, because counts differ.
const BELOW_CLIFF: u64 = 98;

/// Why sent bytes may change now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SwitchReason {
    /// The window is above its high-water mark.
    HighWater,
    /// Reading what a rewrite would remove has cost as much as several rewrites.
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

/// Prices of tokens, in thousandths of the price of an uncached token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenRates {
    /// Read from the cache.
    pub read: u64,
    /// Written to the cache.
    pub write: u64,
    /// The factor of the current prompt length: more than 1,000 above a price cliff.
    pub rise: u64,
}

impl Default for TokenRates {
    /// A tenth for reading and a quarter more for writing, as most providers charge.
    fn default() -> Self {
        Self {
            read: 100,
            write: 1_250,
            rise: 1_000,
        }
    }
}

/// A prompt length above which every token costs more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriceCliff {
    /// The length in tokens.
    pub above: u64,
    /// The price above it, in thousandths of the price below.
    pub rise: u64,
}

/// A switch point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SwitchPoint {
    /// The reason.
    pub(super) switch: SwitchReason,
    /// The room for messages that the window must fit into.
    pub(super) room: u64,
    /// The prices.
    pub(super) rates: TokenRates,
}

impl SwitchPoint {
    fn new(switch: SwitchReason, conditions: &CallConditions<'_>) -> Self {
        // Money is a reason even if the window is unknown.
        let known = conditions.window.map(|_| conditions.messages_room());
        Self {
            switch,
            room: known.unwrap_or(u64::MAX),
            rates: conditions.rates,
        }
    }
}

/// The switch point of a window of `total` tokens; none if nothing forces one.
pub(super) fn switch_point(
    settings: &RewriteAgeing,
    conditions: &CallConditions<'_>,
    total: u64,
) -> Option<SwitchPoint> {
    // The marks below are shares of the window.
    conditions.window?;
    let due = |switch| SwitchPoint::new(switch, conditions);
    let room = conditions.messages_room();
    // A rewrite costs the reasoning of an open loop, so it waits for the end of the loop if the
    // window still fits.
    let may_wait = conditions.in_bound_loop;
    if total > settings.high_mark(room) && !(may_wait && total <= room) {
        return Some(due(SwitchReason::HighWater));
    }
    // A cold cache makes a rewrite free, but what leaves the window may be needed again.
    let cold = conditions.cold
        && !may_wait
        && total >= settings.low_mark(room).saturating_mul(LEAST_RATIO);
    // A price cliff first: it costs money with the very next call.
    cliff(conditions, total).or_else(|| cold.then(|| due(SwitchReason::Cold)))
}

/// The switch point of a window that does not fit; none if it fits.
pub(super) fn overfull(conditions: &CallConditions<'_>, total: &Measure) -> Option<SwitchPoint> {
    conditions.window?;
    let due = SwitchPoint::new(SwitchReason::HighWater, conditions);
    (conditions.weigh(total) > due.room).then_some(due)
}

/// A switch point because old text may have been read too often, in `calls` calls since a rewrite
/// left `left` tokens. Whether it was is known only when it is known what a rewrite would remove:
/// see [`was_read_too_often`].
pub(super) fn possible_switch_point(
    settings: &RewriteAgeing,
    conditions: &CallConditions<'_>,
    total: u64,
    (calls, left): (u64, u64),
) -> Option<SwitchPoint> {
    let switch_point = SwitchPoint::new(SwitchReason::ReadTooOften, conditions);
    // A rewrite rarely leaves less than this. What it would really leave is computed only now and
    // then, because that walks the window.
    let least = settings.low_mark(switch_point.room);
    // In a long window the walk is long too, so it must promise more.
    let is_long = calls > CALLS_OF_EARLY_LOOKS;
    let expected = least.max(if is_long {
        percent(left, LEFT_AGAIN)
    } else {
        0
    });
    let read = read_in_vain(total, expected, calls, &switch_point.rates);
    let may_be = total >= least.saturating_mul(LEAST_RATIO)
        && calls.is_multiple_of(CALLS_BETWEEN_LOOKS)
        && read >= cost_limit(settings, expected, &switch_point);
    may_be.then_some(switch_point)
}

/// True if reading what a rewrite would remove has cost as much as writing the rest again, in
/// `calls` calls since the last rewrite. This is the cheapest moment, however long the session
/// continues.
pub(super) fn was_read_too_often(
    settings: &RewriteAgeing,
    switch_point: &SwitchPoint,
    account: &RewriteAccount,
    calls: u64,
) -> bool {
    let read = read_in_vain(account.before, account.after, calls, &switch_point.rates);
    read >= cost_limit(settings, account.suffix, switch_point)
}

/// The cost of reading the part beyond `after` tokens of a window that grew from there to `before`.
fn read_in_vain(before: u64, after: u64, calls: u64, rates: &TokenRates) -> u64 {
    // The window grew about evenly, so on average half of the growth was read with each call.
    let grown = before.saturating_sub(after) / 2;
    grown.saturating_mul(calls).saturating_mul(rates.read)
}

/// The cost of unnecessary reads at which `suffix` tokens are written again.
fn cost_limit(settings: &RewriteAgeing, suffix: u64, switch_point: &SwitchPoint) -> u64 {
    // Text that stays would be read from the cache anyway, so only the difference counts.
    let extra = switch_point
        .rates
        .write
        .saturating_sub(switch_point.rates.read);
    let cost = suffix.saturating_mul(extra);
    cost.saturating_mul(settings.patience(switch_point.room)) / 1_000
}

/// The price cliff that the next call would exceed.
fn cliff(conditions: &CallConditions<'_>, total: u64) -> Option<SwitchPoint> {
    let room =
        |cliff: &PriceCliff| cliff.above.saturating_sub(conditions.tools) * BELOW_CLIFF / 100;
    let ahead = |cliff: &&PriceCliff| total > room(cliff);
    // From the highest on: the prompt pays the price of the last cliff that it exceeds.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_window_waits_for_the_end_of_a_loop_whose_reasoning_it_would_cost() {
        let tokens = |measure: &Measure| measure.tokens();
        let settings = RewriteAgeing::default();
        let reason = |in_bound_loop: bool, total: u64| {
            let conditions = CallConditions {
                window: Some(100_000),
                max_output: Some(10_000),
                in_bound_loop,
                ..CallConditions::new(&tokens)
            };
            switch_point(&settings, &conditions, total).map(|due| due.switch)
        };
        assert_eq!(reason(false, 89_000), Some(SwitchReason::HighWater));
        assert_eq!(reason(true, 89_000), None);
        assert_eq!(reason(true, 91_000), Some(SwitchReason::HighWater));
    }
}
