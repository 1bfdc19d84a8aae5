//! Selects what survives a compaction: what the policy keeps, and what must stay.

use std::collections::BTreeSet;
use std::sync::Arc;

use trimtab_model::{Message, MessageKind, Role, rounds};

use crate::budget::percent;
use crate::decide::compact::keep_rules::{KeptMessages, kept_messages};
use crate::decide::compact::{CompactionRequest, DraftContent, summary_tokens};
use crate::decide::must_stay::MustStay;
use crate::decide::{ConversationState, is_ours, is_summary};
use crate::normalise::Slot;
use crate::observation::outputs_of;
use crate::plan::PlanReason;
use crate::policy::{CompactionPolicy, KeepRule, Strategy};
use crate::removal::{SafeCuts, with_counterparts};

/// Below this many messages, the automatic strategy deletes without a summary.
const FEW_MESSAGES: usize = 5;

/// The survivors and the replaced messages, by slot index.
#[derive(Clone, Debug)]
pub(in crate::decide) struct Survivors {
    /// The slots, with summaries of other tools marked as summaries.
    pub(in crate::decide) slots: Vec<Slot>,
    /// The survivors.
    pub(in crate::decide) kept: KeptMessages,
    /// The replaced slots, in order.
    pub(in crate::decide) replaced: Vec<usize>,
    /// What takes the place of the replaced messages.
    pub(in crate::decide) content: DraftContent,
}

/// Selects what survives under the policy; none if only messages of our own would be replaced.
pub(in crate::decide) fn survivors(
    conversation: &ConversationState<'_>,
    request: &CompactionRequest,
) -> Option<Survivors> {
    let policy = conversation.policy;
    let compaction = &policy.compaction;
    let slots = with_marked_summaries(conversation.slots, &compaction.summary_prefixes);
    let deletes = deletes(compaction.strategy, &slots);
    let rules = if deletes {
        vec![KeepRule::OpenCalls]
    } else {
        rules(compaction, conversation.call.window, request.keep_turns)
    };
    let weigh = |message: &Message| policy.estimate.message(message);
    let mut chosen = kept_messages(&slots, &rules, weigh);
    let must = MustStay::of(conversation, &slots);
    keep_newest_question(&slots, &rules, &must, &mut chosen);
    keep_current_round(conversation, &slots, &mut chosen);
    // A user who asks for a number of turns gets all of them, unless the window would then not
    // fit.
    if request.keep_turns.is_none() || request.excess > 0 {
        let must = must.newest(&slots);
        cut_inside(conversation, request, &slots, &mut chosen, &must);
    }
    keep_task(must, &mut chosen);
    chosen.system_stays = conversation.system_stays();
    let replaced = replaced(&slots, &chosen);
    // Replacing a summary by a summary of itself loses details and saves nothing.
    (!are_summaries(&slots, &replaced)).then_some(Survivors {
        slots,
        kept: chosen,
        replaced,
        content: if deletes {
            DraftContent::Line
        } else {
            DraftContent::Summary
        },
    })
}

/// Marks messages that begin like a summary of another tool.
fn with_marked_summaries(slots: &[Slot], prefixes: &[String]) -> Vec<Slot> {
    let mut slots = slots.to_vec();
    // A summary of our own has its kind already.
    let said =
        |slot: &&mut Slot| slot.message.role == Role::User && slot.message.meta.kind.is_none();
    for slot in slots.iter_mut().filter(said) {
        let text = slot.message.text();
        if prefixes.iter().any(|prefix| text.starts_with(prefix)) {
            // Only for this decision: the log and its slots stay as they are.
            let summary = Message::clone(&slot.message).with_kind(MessageKind::Summary);
            slot.message = Arc::new(summary);
        }
    }
    slots
}

/// True if nothing but the newest question and open calls stays, without a summary.
fn deletes(strategy: Strategy, slots: &[Slot]) -> bool {
    let said = slots
        .iter()
        .filter(|slot| slot.message.role != Role::System);
    match strategy {
        Strategy::Deletion => true,
        Strategy::Automatic => {
            let has_calls = slots.iter().any(|slot| slot.message.has_calls());
            !has_calls && said.count() < FEW_MESSAGES
        }
        Strategy::Summary | Strategy::SlidingWindow | Strategy::Selective => false,
    }
}

fn rules(
    compaction: &CompactionPolicy,
    window: Option<u64>,
    keep_turns: Option<usize>,
) -> Vec<KeepRule> {
    let mut rules: Vec<KeepRule> = compaction.keep.clone();
    for rule in &mut rules {
        if let KeepRule::RecentTokens { tokens } = rule {
            *tokens = compaction.recent_tokens(*tokens, window);
        }
    }
    if let Some(turns) = keep_turns {
        // The user's figure replaces the policy's rules for recent messages.
        rules.retain(|rule| !is_recent(rule));
        rules.insert(0, KeepRule::LastTurns { turns });
    }
    rules
}

/// Keeps the newest round in every case while the model works on it: if outputs of it can still
/// come, which would then have no call, or if no model has read them yet. Once the model has gone
/// on, a call without an output was interrupted.
fn keep_current_round(
    conversation: &ConversationState<'_>,
    slots: &[Slot],
    kept: &mut KeptMessages,
) {
    let is_answer = |slot: &Slot| slot.message.role == Role::Assistant;
    let newest = slots.iter().rposition(is_answer);
    let behind = slots.iter().enumerate();
    let behind = behind.skip(newest.map_or(0, |at| at + 1));
    let unread = behind.filter(|(at, slot)| {
        let position = slot.source.in_log();
        // Whatever was sent, nothing has followed an output at the end.
        let is_new = position.is_some_and(|position| position >= conversation.sent);
        (is_new || at + 1 == slots.len()) && outputs_of(&slot.message).next().is_some()
    });
    let unread = unread.map(|(at, _)| at);
    let pairing = rounds::pair(slots);
    let mut calls = pairing.rounds.iter().flat_map(|round| &round.calls);
    let is_open = calls.any(|call| Some(call.call.message) == newest && call.output.is_none());
    let awaited = newest.filter(|_| is_open);
    keep_behind(kept, with_counterparts(slots, unread.chain(awaited)));
}

/// Keeps messages after the summary, each before the first one that came later. What is kept
/// before the summary stays there.
fn keep_behind(kept: &mut KeptMessages, messages: impl IntoIterator<Item = usize>) {
    let behind = &mut kept.after_summary;
    for at in messages {
        if !kept.before_summary.contains(&at) && !behind.contains(&at) {
            let place = behind.iter().position(|other| *other > at);
            behind.insert(place.unwrap_or(behind.len()), at);
        }
    }
}

/// Keeps the newest user message in every case: after the summary, with its answer, unless the
/// policy keeps nothing recent and has all user messages before it.
fn keep_newest_question(
    slots: &[Slot],
    rules: &[KeepRule],
    must: &MustStay,
    kept: &mut KeptMessages,
) {
    let Some(newest) = must.question else {
        return;
    };
    // A design that keeps all user messages already has the question among them.
    let in_front = kept.before_summary.contains(&newest) && !rules.iter().any(is_recent);
    if in_front || kept.after_summary.contains(&newest) {
        return;
    }
    // Removed from the other places, so that it is sent once.
    kept.before_summary.remove(&newest);
    kept.shortened.remove(&newest);
    keep_behind(kept, [newest]);
    let is_answer = |slot: &Slot| slot.message.role == Role::Assistant && !slot.message.has_calls();
    if slots.last().is_some_and(is_answer) {
        keep_behind(kept, [slots.len() - 1]);
    }
}

/// Keeps the task in every case, at its place before the summary.
fn keep_task(must: MustStay, kept: &mut KeptMessages) {
    let task = must.task;
    // The task must not move behind the summary of the work on it.
    kept.after_summary.retain(|behind| !task.contains(behind));
    kept.shortened.retain(|at, _| !task.contains(at));
    kept.before_summary.extend(task);
}

fn is_recent(rule: &KeepRule) -> bool {
    matches!(
        rule,
        KeepRule::LastTurns { .. }
            | KeepRule::RecentTokens { .. }
            | KeepRule::RecentMessages { .. }
            | KeepRule::RecentTurns { .. }
    )
}

/// False if a user asks again although an earlier compaction left most of the recent part. Half of
/// it would go each time.
fn may_halve(
    conversation: &ConversationState<'_>,
    request: &CompactionRequest,
    slots: &[Slot],
    kept: &KeptMessages,
    weigh: impl Fn(&Message) -> u64,
) -> bool {
    let in_journal = conversation.compacted_at.unwrap_or(0);
    let compacted = request.already_compacted.max(in_journal);
    // A trigger that has fired needs room in every case.
    if compacted == 0 || request.reason != PlanReason::ByHand {
        return true;
    }
    let (mut old, mut new) = (0u64, 0u64);
    for slot in kept.after_summary.iter().filter_map(|at| slots.get(*at)) {
        let is_new = slot.source.in_log().is_some_and(|at| at >= compacted);
        let sum = if is_new { &mut new } else { &mut old };
        *sum = sum.saturating_add(weigh(&slot.message));
    }
    new >= old
}

/// Removes older rounds from what is kept after the summary, if it exceeds its room or is
/// everything there is. A turn that is too large is compacted inside, between two rounds.
fn cut_inside(
    conversation: &ConversationState<'_>,
    request: &CompactionRequest,
    slots: &[Slot],
    kept: &mut KeptMessages,
    must: &BTreeSet<usize>,
) {
    let (policy, window) = (conversation.policy, conversation.call.window);
    let weigh = |message: &Message| policy.estimate.message(message);
    let weights: Vec<u64> = kept
        .after_summary
        .iter()
        .map(|at| slots.get(*at).map_or(0, |slot| weigh(&slot.message)))
        .collect();
    let total: u64 = weights.iter().sum();
    let gone = replaced(slots, kept);
    // Everything is recent, so the recent part itself must be compacted.
    let halves =
        are_summaries(slots, &gone) && may_halve(conversation, request, slots, kept, weigh);
    let half = halves.then_some(total / 2);
    let room = window.map(|window| percent(window, policy.compaction.keep_percent));
    let over = room.filter(|room| total > *room);
    // The removal must also make room for the summary. Messages that are replaced anyway count.
    let gone = gone.iter().filter_map(|at| slots.get(*at));
    let freed: u64 = gone.map(|slot| weigh(&slot.message)).sum();
    let goes = request
        .excess
        .saturating_add(summary_tokens(policy, window));
    let less = total.saturating_sub(goes.saturating_sub(freed));
    let less = (request.excess > 0 && less < total).then_some(less);
    let Some(room) = half.into_iter().chain(over).chain(less).min() else {
        return;
    };
    // The strictest of the three limits holds.
    let from = first_within(slots, &kept.after_summary, &weights, room);
    let behind = std::mem::take(&mut kept.after_summary);
    kept.after_summary = behind
        .into_iter()
        .filter(|at| *at >= from || must.contains(at))
        .collect();
}

/// True if earlier compactions left all of these slots.
fn are_summaries(slots: &[Slot], places: &[usize]) -> bool {
    let mut slots = places.iter().filter_map(|at| slots.get(*at));
    slots.all(|slot| is_summary(&slot.message))
}

/// The first slot from which the kept ones fit `room`, moved forward so that no round is split.
fn first_within(slots: &[Slot], behind: &[usize], weights: &[u64], room: u64) -> usize {
    let mut used = 0u64;
    let mut from = slots.len();
    for (at, weight) in behind.iter().zip(weights).rev() {
        used = used.saturating_add(*weight);
        if used > room {
            break;
        }
        from = *at;
    }
    // Forward, because moving back would exceed the room.
    SafeCuts::of(slots).at_or_behind(from)
}

/// All slots that are neither kept nor system messages. A summary in the system prompt is replaced
/// too.
fn replaced(slots: &[Slot], kept: &KeptMessages) -> Vec<usize> {
    let behind: BTreeSet<usize> = kept.after_summary.iter().copied().collect();
    let stays = |at: &usize, slot: &Slot| {
        let system = slot.message.role == Role::System && !is_ours(&slot.message);
        system || behind.contains(at) || kept.before_summary.contains(at)
    };
    let all = slots.iter().enumerate();
    all.filter(|(at, slot)| !stays(at, slot))
        .map(|(at, _)| at)
        .collect()
}
