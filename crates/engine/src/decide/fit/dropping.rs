//! Removes messages without a summary, once they are stored.

use std::borrow::Borrow;
use std::collections::BTreeSet;

use trimtab_model::estimate::Measure;
use trimtab_model::{Message, Role, turns};

use crate::decide::compact::Survivors;
use crate::decide::compact::keep_rules::KeptMessages;
use crate::decide::compact::{CompactionDraft, CompactionRequest, DraftContent};
use crate::decide::must_stay::MustStay;
use crate::decide::{ConversationState, is_ours};
use crate::normalise::Slot;
use crate::plan::PlanReason;
use crate::removal::{RoundGroups, safe_cut};

/// The approximate tokens of the line about dropped messages.
const LINE_TOKENS: u64 = 60;

/// Drops the oldest messages with their counterparts, until `excess` tokens are free; none if
/// nothing can go.
pub(in crate::decide) fn drop_oldest(
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
    let survivors = Survivors {
        slots: conversation.slots.to_vec(),
        kept,
        replaced,
        content,
    };
    CompactionDraft::new(
        conversation,
        CompactionRequest::new(reason.clone()),
        survivors,
    )
}

/// Drops the oldest half of the turns; none if nothing can go.
pub(in crate::decide) fn drop_half_of_turns(
    conversation: &ConversationState<'_>,
    reason: &PlanReason,
) -> Option<CompactionDraft> {
    let slots = conversation.slots;
    let said = slots
        .iter()
        .enumerate()
        .filter(|(_, slot)| is_conversation(slot));
    let (said, messages): (Vec<usize>, Vec<&Message>) =
        said.map(|(at, slot)| (at, &*slot.message)).unzip();
    let (gone, stays) = said.split_at_checked(half_of_turns(&messages)?)?;
    let must = MustStay::of(conversation, slots);
    // The indexes in `gone` rise.
    let goes = |at: &usize| gone.binary_search(at).is_ok();
    let before: BTreeSet<usize> = must.task.into_iter().filter(goes).collect();
    // The newest question stays even if its turn is dropped, because the model is about to answer
    // it.
    let question = must.question;
    let question = question.filter(|at| goes(at) && !before.contains(at));
    let must_stay =
        |at: &usize| Some(*at) == question || before.contains(at) || must.of_provider.contains(at);
    let gone: Vec<usize> = gone.iter().copied().filter(|at| !must_stay(at)).collect();
    if gone.is_empty() {
        return None;
    }
    let kept = KeptMessages {
        after_summary: question.into_iter().chain(stays.iter().copied()).collect(),
        before_summary: before,
        system_stays: conversation.system_stays(),
        ..KeptMessages::default()
    };
    let content = DraftContent::PreviousSummary;
    Some(dropped(conversation, reason, gone, kept, content))
}

fn is_conversation(slot: &Slot) -> bool {
    slot.message.role != Role::System && !is_ours(&slot.message)
}

/// The oldest messages with their counterparts, until `excess` tokens are free; never the task, the
/// newest question or the newest round.
fn oldest(conversation: &ConversationState<'_>, excess: u64) -> Vec<usize> {
    let slots = conversation.slots;
    let must = MustStay::of(conversation, slots);
    let (gone, freed) = oldest_but(conversation, excess, &must, &must.newest(slots));
    if freed >= excess {
        return gone;
    }
    // The pages that the model has read in its last rounds can alone exceed the window. It can read
    // them again, so all but the newest may go.
    oldest_but(conversation, excess, &must, &must.newest_round(slots)).0
}

/// The same, and the tokens that are freed. The `newest` messages stay too.
fn oldest_but(
    conversation: &ConversationState<'_>,
    excess: u64,
    must: &MustStay,
    newest: &BTreeSet<usize>,
) -> (Vec<usize>, u64) {
    let slots = conversation.slots;
    let kept = [newest, &must.task, &must.of_provider];
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
            || kept.iter().any(|kept| kept.contains(&at))
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

/// The cut that removes the oldest half of the turns. None if nothing can go: there are at most two
/// messages, or no safe boundary. If there are only rounds, whole rounds go.
pub fn half_of_turns<M: Borrow<Message>>(messages: &[M]) -> Option<usize> {
    if messages.len() <= 2 {
        return None;
    }
    let starts = turns::boundaries(messages);
    let middle = match starts.get(starts.len() / 2) {
        Some(start) if starts.len() >= 2 => *start,
        _ => turns::nearest_safe_boundary(messages, messages.len() / 2),
    };
    // A turn can begin between a call and a late output.
    let middle = safe_cut(messages, middle);
    (0 < middle && middle < messages.len()).then_some(middle)
}

/// A summary with the note that says how much was dropped.
pub fn with_note(summary: &str, dropped: usize) -> String {
    let note =
        format!("[Emergency compression dropped {dropped} oldest messages due to context limit]");
    if summary.is_empty() {
        note
    } else {
        format!("{summary}\n\n{note}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_model::Call;

    #[test]
    fn a_round_is_not_split_where_there_is_no_user() {
        let call = |id: &str| Message::assistant("").with_call(Call::new(id, "read", "{}"));
        let log = [
            call("a"),
            Message::output("a", "1"),
            call("b"),
            Message::output("b", "2"),
        ];
        assert_eq!(half_of_turns(&log), Some(2));
        assert_eq!(half_of_turns(&log[..3]), Some(2));
        let one = [
            call("a").with_call(Call::new("b", "read", "{}")),
            Message::output("a", "1"),
            Message::output("b", "2"),
        ];
        assert_eq!(half_of_turns(&one), None);
    }
}
