//! Removes messages without a summary, once they are stored.

use std::collections::BTreeSet;

use trimtab_model::estimate::Measure;
use trimtab_model::{Message, Role};

use super::draft::{CompactionDraft, CompactionRequest, DraftContent};
use super::survivors::{NEWEST_ROUNDS, Survivors, must_stay, staying, task};
use super::{ConversationState, is_ours};
use crate::compaction::keep_rules::KeptMessages;
use crate::compaction::recovery::half_of_turns;
use crate::normalise::Slot;
use crate::plan::PlanReason;
use crate::removal::RoundGroups;

/// The approximate tokens of the line about dropped messages.
const LINE_TOKENS: u64 = 60;

/// Drops the oldest half of the turns; none if nothing can go.
pub(super) fn drop_half_of_turns(
    conversation: &ConversationState<'_>,
    reason: &PlanReason,
) -> Option<CompactionDraft> {
    let (gone, kept) = oldest_half(conversation)?;
    let content = DraftContent::PreviousSummary;
    Some(dropped(conversation, reason, gone, kept, content))
}

/// Drops the oldest messages with their counterparts, until `excess` tokens are free; none if
/// nothing can go.
pub(super) fn drop_oldest(
    conversation: &ConversationState<'_>,
    excess: u64,
    reason: &PlanReason,
) -> Option<CompactionDraft> {
    let call = conversation.call;
    // The line about them names a ref, and the first ref in a window adds the retrieval tools.
    let line = if call.can_retrieve {
        LINE_TOKENS.saturating_add(call.first_ref)
    } else {
        0
    };
    let gone = oldest(conversation, excess.saturating_add(line));
    let (kept, content) = (KeptMessages::default(), DraftContent::LineInPlace);
    (!gone.is_empty()).then(|| dropped(conversation, reason, gone, kept, content))
}

fn dropped(
    conversation: &ConversationState<'_>,
    reason: &PlanReason,
    replaced: Vec<usize>,
    kept: KeptMessages,
    content: DraftContent,
) -> CompactionDraft {
    let request = CompactionRequest {
        reason: reason.clone(),
        ..CompactionRequest::default()
    };
    let survivors = Survivors {
        slots: conversation.slots.to_vec(),
        kept,
        replaced,
        content,
    };
    CompactionDraft::new(conversation, request, survivors)
}

/// The messages of the oldest half of the turns, and what stays.
fn oldest_half(conversation: &ConversationState<'_>) -> Option<(Vec<usize>, KeptMessages)> {
    let slots = conversation.slots;
    let said = slots
        .iter()
        .enumerate()
        .filter(|(_, slot)| is_conversation(slot));
    let (said, messages): (Vec<usize>, Vec<&Message>) =
        said.map(|(at, slot)| (at, &*slot.message)).unzip();
    let (gone, stays) = said.split_at_checked(half_of_turns(&messages)?)?;
    let before: BTreeSet<usize> = task(slots, conversation.opening)
        // The indexes in `gone` rise.
        .filter(|at| gone.binary_search(at).is_ok())
        .collect();
    // The newest question stays even if its turn is dropped, because the model is about to answer
    // it.
    let question = slots.iter().rposition(|slot| slot.message.is_real_user());
    let question = question.filter(|at| gone.binary_search(at).is_ok() && !before.contains(at));
    let staying = staying(slots, conversation.log);
    let goes = |at: &usize| Some(*at) != question && !before.contains(at) && !staying.contains(at);
    let gone: Vec<usize> = gone.iter().copied().filter(goes).collect();
    if gone.is_empty() {
        return None;
    }
    let kept = KeptMessages {
        after_summary: question.into_iter().chain(stays.iter().copied()).collect(),
        before_summary: before,
        system_stays: conversation.system_stays(),
        ..KeptMessages::default()
    };
    Some((gone, kept))
}

fn is_conversation(slot: &Slot) -> bool {
    slot.message.role != Role::System && !is_ours(&slot.message)
}

/// The oldest messages with their counterparts, until `excess` tokens are free; never the task, the
/// newest question or the newest round.
fn oldest(conversation: &ConversationState<'_>, excess: u64) -> Vec<usize> {
    let (gone, freed) = oldest_before_newest(conversation, excess, NEWEST_ROUNDS);
    if freed >= excess {
        return gone;
    }
    // The pages that the model has read in its last rounds can alone exceed the window. It can read
    // them again, so all but the newest may go.
    oldest_before_newest(conversation, excess, 1).0
}

/// The same, and the tokens that are freed. The newest rounds stay, at most `rounds` of them.
fn oldest_before_newest(
    conversation: &ConversationState<'_>,
    excess: u64,
    rounds: usize,
) -> (Vec<usize>, u64) {
    let slots = conversation.slots;
    let mut must = must_stay(slots, conversation.opening, rounds);
    must.extend(staying(slots, conversation.log));
    let groups = RoundGroups::of(slots);
    let mut gone: BTreeSet<usize> = BTreeSet::new();
    let mut freed = 0u64;
    for (at, slot) in slots.iter().enumerate() {
        // At least one group goes, even for an excess of 0.
        if freed >= excess && !gone.is_empty() {
            break;
        }
        // System messages stay, and so do messages of our own: they represent what was removed
        // earlier.
        if !is_conversation(slot)
            || slot.source.in_log().is_none()
            || must.contains(&at)
            || gone.contains(&at)
        {
            continue;
        }
        // A call without its output is invalid, and so is an output without its call.
        for one in groups.with_counterparts([at]) {
            if let Some(slot) = slots.get(one).filter(|_| gone.insert(one)) {
                // Our estimate decides whether the window fits. A design that counts more would
                // free too little, so the smaller figure counts.
                let by_design = conversation.policy.estimate.message(&slot.message);
                let ours = (conversation.call.tokens)(&Measure::of(&slot.message));
                freed = freed.saturating_add(by_design.min(ours));
            }
        }
    }
    (gone.into_iter().collect(), freed)
}
