//! Removes messages without a summary, once they are stored.

use std::collections::BTreeSet;
use std::sync::Arc;

use trimtab_model::estimate::Measure;
use trimtab_model::{Message, MessageKind, Ref, Role};

use super::ageing::position;
use super::survivors::{must_stay, task};
use super::{CallConditions, ConversationState, is_ours, plan_without};
use crate::compaction::keep_rules::KeptMessages;
use crate::compaction::rebuild::{Replacement, SummaryPlacement, rebuild};
use crate::compaction::recovery::{half_of_turns, with_note};
use crate::normalise::Slot;
use crate::plan::{Edit, Plan, PlanReason};
use crate::policy::Policy;
use crate::removal::RoundGroups;
use crate::view::placeholder::way_back_to_messages;

/// The approximate tokens of the line about dropped messages.
const LINE_TOKENS: u64 = 60;

/// Messages to drop without a summary. Store them, then ask for the [`plan`](Self::plan).
#[derive(Clone, Debug)]
pub struct DropDraft {
    policy: Policy,
    reason: PlanReason,
    slots: Vec<Slot>,
    /// The dropped slots, in order.
    dropped: Vec<usize>,
    method: DropMethod,
    can_retrieve: bool,
}

/// How messages are dropped.
#[derive(Clone, Debug)]
enum DropMethod {
    /// The oldest half of the turns, with a note in the summary. Contains what stays.
    HalfOfTurns(KeptMessages),
    /// The oldest messages with their counterparts.
    Oldest,
}

impl DropDraft {
    /// Drops the oldest half of the turns; none if nothing can go.
    pub(super) fn half_of_turns(
        conversation: &ConversationState<'_>,
        conditions: &CallConditions<'_>,
        reason: &PlanReason,
    ) -> Option<Self> {
        let (gone, kept) = oldest_half(conversation)?;
        Some(Self {
            policy: conversation.policy.clone(),
            reason: reason.clone(),
            slots: conversation.slots.to_vec(),
            dropped: gone,
            method: DropMethod::HalfOfTurns(kept),
            can_retrieve: conditions.can_retrieve,
        })
    }

    /// Drops the oldest messages with their counterparts, until `excess` tokens are free; none if
    /// nothing can go.
    pub(super) fn oldest(
        conversation: &ConversationState<'_>,
        conditions: &CallConditions<'_>,
        (excess, reason): (u64, &PlanReason),
    ) -> Option<Self> {
        // The line about them names a ref, and the first ref in a window adds the retrieval tools.
        let line = if conditions.can_retrieve {
            LINE_TOKENS.saturating_add(conditions.first_ref)
        } else {
            0
        };
        let gone = oldest(conversation, conditions, excess.saturating_add(line));
        (!gone.is_empty()).then(|| Self {
            policy: conversation.policy.clone(),
            reason: reason.clone(),
            slots: conversation.slots.to_vec(),
            dropped: gone,
            method: DropMethod::Oldest,
            can_retrieve: conditions.can_retrieve,
        })
    }

    /// The dropped messages.
    pub fn messages(&self) -> impl Iterator<Item = &Arc<Message>> {
        let gone = self.dropped.iter().filter_map(|at| self.slots.get(*at));
        gone.map(|slot| &slot.message)
    }

    /// The plan, with a line that names the ref of the messages.
    pub fn plan(&self, stored: Option<&Ref>) -> Plan {
        let line = stored.filter(|_| self.can_retrieve);
        let line = line.map(|stored| way_back_to_messages(self.dropped.len(), stored));
        let edits = match &self.method {
            DropMethod::HalfOfTurns(kept) => self.with_summary(kept, line),
            DropMethod::Oldest => self.hidden(line),
        };
        let bound = self.policy.compaction.bound_reasoning;
        let reason = self.reason.clone();
        let mut plan = plan_without(reason, edits, &self.slots, &self.dropped, bound);
        plan.refs.extend(stored.cloned());
        plan
    }

    /// Replaces everything except `kept`; the previous summary stays, with a note.
    fn with_summary(&self, kept: &KeptMessages, line: Option<String>) -> Vec<Edit> {
        let mut summary = with_note(
            &previous_summary(&self.slots, &self.policy),
            self.dropped.len(),
        );
        if let Some(line) = line {
            summary.push('\n');
            summary.push_str(&line);
        }
        let replacement = Replacement {
            retain: newest_of_kind(&self.slots, MessageKind::Retain, ""),
            summary,
            note: String::new(),
        };
        let placement = &self.policy.compaction.placement;
        rebuild(&self.slots, kept, &replacement, placement)
    }

    /// Hides the dropped messages, and inserts a line before the first of them.
    fn hidden(&self, line: Option<String>) -> Vec<Edit> {
        let gone = self.dropped.iter().filter_map(|at| self.slots.get(*at));
        let positions: Vec<usize> = gone.filter_map(position).collect();
        // One edit per message. Runs that touch are joined when the edits are applied.
        let hide = |at: &usize| Edit::Hide {
            from: *at,
            to: at + 1,
        };
        let mut edits: Vec<Edit> = positions.iter().map(hide).collect();
        if let (Some(line), Some(first)) = (line, positions.first()) {
            edits.push(Edit::Insert {
                before: *first,
                message: Arc::new(Message::user(line).with_kind(MessageKind::Note)),
            });
        }
        edits
    }
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
    let goes = |at: &usize| Some(*at) != question && !before.contains(at);
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

/// The text of the current summary, without our prefix.
fn previous_summary(slots: &[Slot], policy: &Policy) -> String {
    let prefix = match &policy.compaction.placement {
        SummaryPlacement::Message { prefix } | SummaryPlacement::System { prefix } => prefix,
    };
    newest_of_kind(slots, MessageKind::Summary, prefix)
}

/// The text of the newest message of a kind that we inserted, without `prefix`.
pub(super) fn newest_of_kind(slots: &[Slot], kind: MessageKind, prefix: &str) -> String {
    let mut said = slots.iter().rev().map(|slot| &slot.message);
    let said = said.find(|message| message.meta.kind == Some(kind));
    let text = said.map(|message| message.text()).unwrap_or_default();
    text.strip_prefix(prefix).unwrap_or(&text).to_owned()
}

/// The oldest messages with their counterparts, until `excess` tokens are free; never the task, the
/// newest question or the newest round.
fn oldest(
    conversation: &ConversationState<'_>,
    conditions: &CallConditions<'_>,
    excess: u64,
) -> Vec<usize> {
    let slots = conversation.slots;
    let must = must_stay(slots, conversation.opening);
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
            || position(slot).is_none()
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
                let ours = (conditions.tokens)(&Measure::of(&slot.message));
                freed = freed.saturating_add(by_design.min(ours));
            }
        }
    }
    gone.into_iter().collect()
}
