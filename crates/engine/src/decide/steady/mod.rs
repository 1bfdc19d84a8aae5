//! Our own policy: rewrites the window at a switch point.
//!
//! Rewriting text that was sent before costs money: everything behind the first change must be
//! written to the provider's cache again. Reading old text with every call also costs money. So
//! nothing changes until a [`SwitchPoint`], and then everything at once: what must stay stays, with
//! the newest files and searches up to a budget, and one digest replaces the rest.

mod account;
mod survey;
mod switch_point;

use std::collections::BTreeSet;

use crate::budget::percent;
use crate::decide::ConversationState;
use crate::decide::compact::Survivors;
use crate::decide::compact::keep_rules::KeptMessages;
use crate::decide::compact::{CompactionDraft, CompactionRequest, DraftContent};
use crate::digest::is_digest;
use crate::normalise::Slot;
use crate::plan::PlanReason;
use crate::policy::RewriteAgeing;
use survey::{Segment, SegmentKind, survey};
use switch_point::{
    SwitchPoint, SwitchReason, overfull, possible_switch_point, switch_point, was_read_too_often,
};

pub(in crate::decide) use account::RewriteAccount;
pub use switch_point::{PriceCliff, TokenRates};

/// The minimum gain of a rewrite, in percent of the window.
const LEAST_GAIN: u64 = 5;
/// A session is expected to continue for this share of its calls so far, in percent.
const EXPECTED_PERCENT: u64 = 60;

/// Drafts the rewrite that removes old text from the window; none if this is not a switch point, or
/// if it is not worth it.
pub(in crate::decide) fn rewrite(conversation: &ConversationState<'_>) -> Option<CompactionDraft> {
    let settings = &conversation.policy.ageing.rewrite;
    if !settings.enabled {
        return None;
    }
    let total = conversation.window.measures().total();
    let (calls, since) = calls(conversation);
    // Decided without calibration, so that all processes that serve this conversation decide alike.
    // Only a window that would not fit by what this process has learned is decided by that.
    let uncalibrated = ConversationState {
        call: conversation.uncalibrated,
        ..*conversation
    };
    let plain = uncalibrated.call;
    let weight = plain.weigh(&total);
    let optional = || {
        // The reasoning of the loop is worth more than what these reads cost.
        if plain.in_bound_loop {
            return None;
        }
        let newest = conversation.projection.journal().newest_compaction();
        let left = newest.map_or(0, |plan| plan.tokens_after);
        possible_switch_point(settings, plain, weight, (since, left))
    };
    let (due, conversation) = if let Some(due) = switch_point(settings, plain, weight) {
        (due, &uncalibrated)
    } else if let Some(due) = overfull(conversation.call, &total) {
        (due, conversation)
    } else {
        (optional()?, &uncalibrated)
    };
    let segments = survey(conversation);
    let total = segments.iter().map(|segment| segment.tokens).sum();
    let hidden = Hidden::of(settings, &segments, due.room);
    if !hidden.gains_enough(total, due.room) {
        return None;
    }
    let tokens = (total, hidden.left, hidden.suffix);
    let account = RewriteAccount::new(&due, tokens, percent(calls, EXPECTED_PERCENT));
    if !is_worth_it(settings, &due, &account, since) {
        return None;
    }
    let trigger = due.switch.to_string();
    let request = CompactionRequest::new(PlanReason::Triggered { trigger });
    let survivors = hidden.survivors(conversation.slots, account);
    Some(CompactionDraft::new(conversation, request, survivors))
}

/// The number of calls to the model, and of those since the last rewrite. If nothing was sent yet,
/// none of them was a read that we caused.
fn calls(conversation: &ConversationState<'_>) -> (u64, u64) {
    let calls = conversation.log.answers_since(0) as u64;
    if conversation.sent == 0 {
        return (calls, 0);
    }
    let since = conversation.compacted_at.unwrap_or(0);
    (calls, conversation.log.answers_since(since) as u64)
}

fn is_worth_it(
    settings: &RewriteAgeing,
    switch_point: &SwitchPoint,
    account: &RewriteAccount,
    since: u64,
) -> bool {
    match switch_point.switch {
        SwitchReason::HighWater | SwitchReason::Cold => true,
        // A rewrite for a price cliff must get below it, and must cost less than it saves.
        SwitchReason::PriceCliff => account.after <= switch_point.room && account.pays(),
        SwitchReason::ReadTooOften => {
            account.pays() && was_read_too_often(settings, switch_point, account, since)
        }
    }
}

/// True for the digest of an earlier rewrite.
fn is_digest_slot(slot: &Slot) -> bool {
    let is_inserted = slot.source.in_log().is_none();
    is_inserted && slot.message.is_summary() && is_digest(&slot.message.text())
}

/// What a rewrite hides.
struct Hidden {
    /// The hidden slots.
    slots: BTreeSet<usize>,
    /// The tokens of the window with a digest in their place.
    left: u64,
    /// Those from the first hidden slot on. The others stay in the provider's cache.
    suffix: u64,
    /// The limit of the digest in tokens.
    digest: u64,
}

impl Hidden {
    /// Hides everything but what must stay and the newest files and searches within their budget.
    fn of(settings: &RewriteAgeing, segments: &[Segment], room: u64) -> Self {
        let fixed = segments
            .iter()
            .filter(|segment| segment.kind == SegmentKind::Stays);
        let fixed: u64 = fixed.map(|segment| segment.tokens).sum();
        let flexible = room.saturating_sub(fixed);
        let digest = settings.digest_budget(flexible);
        let mut whole = settings.whole_budget(flexible);
        let mut slots = BTreeSet::new();
        let mut left = digest;
        let mut stays = |segment: &Segment| match segment.kind {
            SegmentKind::Stays => true,
            // An older, smaller file may still fit.
            SegmentKind::Reads => {
                let rest = whole.checked_sub(segment.tokens);
                whole = rest.unwrap_or(whole);
                rest.is_some()
            }
            SegmentKind::Goes | SegmentKind::Digest => false,
        };
        for segment in segments.iter().rev() {
            if stays(segment) {
                left += segment.tokens;
            } else {
                slots.extend(segment.start..segment.end);
            }
        }
        let first = slots.first().copied().unwrap_or(usize::MAX);
        let before = segments.iter().filter(|segment| segment.end <= first);
        let before: u64 = before.map(|segment| segment.tokens).sum();
        Self {
            suffix: left.saturating_sub(before),
            slots,
            left,
            digest,
        }
    }

    /// True if a window of `total` tokens becomes so much smaller that a rewrite is justified, or
    /// fits its `room`.
    fn gains_enough(&self, total: u64, room: u64) -> bool {
        let makes_it_fit = total > room && self.left <= room;
        !self.slots.is_empty() && (makes_it_fit || self.left + percent(total, LEAST_GAIN) <= total)
    }

    /// What stays. The digest stands where the hidden slots end.
    fn survivors(self, slots: &[Slot], account: RewriteAccount) -> Survivors {
        let end = self.slots.last().map_or(0, |last| last + 1);
        let stays = (0..slots.len()).filter(|at| !self.slots.contains(at));
        let (before, behind): (Vec<usize>, Vec<usize>) = stays.partition(|at| *at < end);
        Survivors {
            slots: slots.to_vec(),
            kept: KeptMessages {
                before_summary: before.into_iter().collect(),
                after_summary: behind,
                system_stays: true,
                ..KeptMessages::default()
            },
            replaced: self.slots.into_iter().collect(),
            content: DraftContent::Digest {
                account,
                tokens: self.digest,
            },
        }
    }
}
