//! Selects what survives a compaction: what the policy keeps, and what must stay.

use std::collections::BTreeSet;
use std::sync::Arc;

use trimtab_model::rounds::{self, Round};
use trimtab_model::{Message, MessageKind, Part, Role};

use super::draft::{CompactionRequest, DraftContent, summary_tokens};
use super::{ConversationState, is_ours, is_summary};
use crate::budget::percent;
use crate::compaction::keep_rules::{KeepRule, KeptMessages, kept_messages};
use crate::log::Log;
use crate::normalise::{MessageSource, Slot};
use crate::observation::outputs_of;
use crate::plan::PlanReason;
use crate::policy::{CompactionPolicy, Strategy};
use crate::removal::{SafeCuts, with_counterparts};
use crate::view::tools::is_retrieval;

/// At most this many rounds count as the newest. An agent that only reads from the store for a long
/// time would otherwise keep everything.
pub(super) const NEWEST_ROUNDS: usize = 8;
/// Below this many messages, the automatic strategy deletes without a summary.
const FEW_MESSAGES: usize = 5;

/// The survivors and the replaced messages, by slot index.
#[derive(Clone, Debug)]
pub(super) struct Survivors {
    /// The slots, with summaries of other tools marked as summaries.
    pub(super) slots: Vec<Slot>,
    /// The survivors.
    pub(super) kept: KeptMessages,
    /// The replaced slots, in order.
    pub(super) replaced: Vec<usize>,
    /// What takes the place of the replaced messages.
    pub(super) content: DraftContent,
}

impl Survivors {
    /// Keeps the messages that no plan hides, with their rounds, at their place.
    pub(super) fn keep_what_stays(&mut self, log: &Log) {
        let staying = staying(&self.slots, log);
        let kept = &mut self.kept;
        self.replaced.retain(|at| !staying.contains(at));
        kept.shortened.retain(|at, _| !staying.contains(at));
        let behind: BTreeSet<usize> = kept.after_summary.iter().copied().collect();
        kept.before_summary.extend(staying.difference(&behind));
    }
}

/// The slots that no plan hides, because they belong to the provider, with their rounds.
pub(super) fn staying(slots: &[Slot], log: &Log) -> BTreeSet<usize> {
    let stays = |(at, slot): (usize, &Slot)| {
        let position = slot.source.in_log()?;
        log.stays(position).then_some(at)
    };
    let staying: Vec<usize> = slots.iter().enumerate().filter_map(stays).collect();
    // Most conversations have none, and need not be paired for this.
    if staying.is_empty() {
        return BTreeSet::new();
    }
    with_counterparts(slots, staying)
}

/// Selects what survives under the policy; none if only messages of our own would be replaced.
pub(super) fn survivors(
    conversation: &ConversationState<'_>,
    request: &CompactionRequest,
) -> Option<Survivors> {
    let policy = conversation.policy;
    let compaction = &policy.compaction;
    let slots = with_marked_summaries(conversation.slots, &compaction.summary_prefixes);
    let strategy = strategy(compaction.strategy, &slots);
    let rules = rules(
        compaction,
        strategy,
        conversation.call.window,
        request.keep_turns,
    );
    let weigh = |message: &Message| policy.estimate.message(message);
    let mut chosen = kept_messages(&slots, &rules, weigh);
    keep_awaited_calls(&slots, &mut chosen);
    keep_newest_question(&slots, &rules, &mut chosen);
    keep_unread(conversation, &slots, &mut chosen);
    // A user who asks for a number of turns gets all of them, unless the window would then not
    // fit.
    if request.keep_turns.is_none() || request.excess > 0 {
        let room = conversation
            .call
            .window
            .map(|window| percent(window, compaction.keep_percent));
        let must = must_stay(&slots, conversation.opening, NEWEST_ROUNDS);
        // The removal must also make room for the summary.
        let summary = summary_tokens(policy, conversation.call.window);
        let goes = (request.excess > 0).then(|| request.excess.saturating_add(summary));
        let limits = RecentLimits {
            room,
            goes,
            may_halve: may_halve(conversation, request, &slots, &chosen, weigh),
        };
        cut_inside(&slots, &mut chosen, &must, &limits, weigh);
    }
    keep_task(&slots, conversation.opening, &mut chosen);
    chosen.system_stays = conversation.system_stays();
    let replaced = replaced(&slots, &chosen);
    // Replacing a summary by a summary of itself loses details and saves nothing.
    (!are_summaries(&slots, &replaced)).then_some(Survivors {
        slots,
        kept: chosen,
        replaced,
        content: if strategy == Strategy::Deletion {
            DraftContent::Line
        } else {
            DraftContent::Summary
        },
    })
}

/// Marks messages that begin like a summary of another tool.
fn with_marked_summaries(slots: &[Slot], prefixes: &[String]) -> Vec<Slot> {
    let begins_like_one = |message: &Message| {
        let text = message.text();
        prefixes.iter().any(|prefix| text.starts_with(prefix))
    };
    let mark = |slot: &Slot| {
        let message = &slot.message;
        let summary =
            // A summary of our own has its kind already.
            message.role == Role::User && message.meta.kind.is_none() && begins_like_one(message);
        if !summary {
            return slot.clone();
        }
        Slot {
            // Only for this decision: the log and its slots stay as they are.
            message: Arc::new(Message::clone(message).with_kind(MessageKind::Summary)),
            source: slot.source,
        }
    };
    slots.iter().map(mark).collect()
}

fn strategy(wanted: Strategy, slots: &[Slot]) -> Strategy {
    if wanted != Strategy::Automatic {
        return wanted;
    }
    let messages = slots
        .iter()
        .filter(|slot| slot.message.role != Role::System);
    // The rules of the design `checkpoint`, in its order.
    if slots.iter().any(|slot| slot.message.has_calls()) {
        Strategy::Selective
    } else if messages.count() < FEW_MESSAGES {
        Strategy::Deletion
    } else {
        Strategy::SlidingWindow
    }
}

fn rules(
    compaction: &CompactionPolicy,
    strategy: Strategy,
    window: Option<u64>,
    keep_turns: Option<usize>,
) -> Vec<KeepRule> {
    if strategy == Strategy::Deletion {
        return vec![KeepRule::OpenCalls];
    }
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

/// Keeps the newest round in every case if outputs of it can still come: they would then have no
/// call. Once the model has gone on, a call without an output was interrupted.
fn keep_awaited_calls(slots: &[Slot], kept: &mut KeptMessages) {
    let newest = slots
        .iter()
        .rposition(|slot| slot.message.role == Role::Assistant);
    let rounds = rounds::pair(slots).rounds.into_iter();
    let mut newest = rounds.filter(|round| {
        let mut calls = round.calls.iter();
        calls.any(|call| Some(call.call.message) == newest)
    });
    let awaited = newest.find(|round| round.calls.iter().any(|call| call.output.is_none()));
    let awaited = awaited.map(|round| round.start);
    keep_behind(kept, with_counterparts(slots, awaited));
}

/// Keeps the outputs behind the newest answer that no model has read yet, with their rounds. The
/// model asked for them.
fn keep_unread(conversation: &ConversationState<'_>, slots: &[Slot], kept: &mut KeptMessages) {
    let newest_first = slots.iter().enumerate().rev();
    let behind = newest_first.take_while(|(_, slot)| slot.message.role != Role::Assistant);
    let is_unread = |at: usize, slot: &Slot| {
        let position = slot.source.in_log();
        // Whatever was sent, nothing has followed an output at the end.
        let is_new = position.is_some_and(|position| position >= conversation.sent);
        (is_new || at + 1 == slots.len()) && outputs_of(&slot.message).next().is_some()
    };
    let unread = behind.filter(|(at, slot)| is_unread(*at, slot));
    let unread: Vec<usize> = unread.map(|(at, _)| at).collect();
    if !unread.is_empty() {
        keep_behind(kept, with_counterparts(slots, unread));
    }
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
fn keep_newest_question(slots: &[Slot], rules: &[KeepRule], kept: &mut KeptMessages) {
    let Some(newest) = slots.iter().rposition(|slot| slot.message.is_real_user()) else {
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
    let last = slots.last().map(|slot| &slot.message);
    let is_answered = |last: &Arc<Message>| last.role == Role::Assistant && !last.has_calls();
    keep_behind(
        kept,
        last.filter(|last| is_answered(last))
            .map(|_| slots.len() - 1),
    );
}

/// Keeps the task in every case, at its place before the summary.
fn keep_task(slots: &[Slot], opening: usize, kept: &mut KeptMessages) {
    let task: BTreeSet<usize> = task(slots, opening).collect();
    // The task must not move behind the summary of the work on it.
    kept.after_summary.retain(|behind| !task.contains(behind));
    kept.shortened.retain(|at, _| !task.contains(at));
    kept.before_summary.extend(task);
}

/// The slots of user messages before position `opening` of the log, where the first answer is. An
/// earlier plan may have inserted messages before them.
pub(super) fn task(slots: &[Slot], opening: usize) -> impl Iterator<Item = usize> {
    let first = slots.iter().enumerate();
    let first = first.take_while(move |(_, slot)| match slot.source {
        MessageSource::Log(at) => at < opening,
        MessageSource::Inserted(at) => at <= opening,
    });
    first
        .filter(|(_, slot)| slot.message.is_real_user())
        .map(|(at, _)| at)
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

/// The limits of what is kept after the summary.
struct RecentLimits {
    /// The tokens that it may take, if the window is known.
    room: Option<u64>,
    /// The tokens that must go from the window.
    goes: Option<u64>,
    /// True if half of it goes if it is everything there is.
    may_halve: bool,
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
    slots: &[Slot],
    kept: &mut KeptMessages,
    must: &BTreeSet<usize>,
    limits: &RecentLimits,
    weigh: impl Fn(&Message) -> u64,
) {
    let weights: Vec<u64> = kept
        .after_summary
        .iter()
        .map(|at| slots.get(*at).map_or(0, |slot| weigh(&slot.message)))
        .collect();
    let total: u64 = weights.iter().sum();
    let gone = replaced(slots, kept);
    let nothing_goes = are_summaries(slots, &gone);
    // Everything is recent, so the recent part itself must be compacted.
    let half = (nothing_goes && limits.may_halve).then_some(total / 2);
    let over = limits.room.filter(|room| total > *room);
    // Messages that are replaced anyway count towards what must go.
    let gone = gone.iter().filter_map(|at| slots.get(*at));
    let freed: u64 = gone.map(|slot| weigh(&slot.message)).sum();
    let less = limits
        .goes
        .map(|goes| total.saturating_sub(goes.saturating_sub(freed)));
    let less = less.filter(|less| *less < total);
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

/// The task, the newest question and the newest rounds, at most `rounds` of them: the next answer
/// depends on them.
pub(super) fn must_stay(slots: &[Slot], opening: usize, rounds: usize) -> BTreeSet<usize> {
    let pairing = rounds::pair(slots);
    let question = slots.iter().rposition(|slot| slot.message.is_real_user());
    let last = slots
        .iter()
        .rposition(|slot| slot.message.role != Role::System && !is_ours(&slot.message));
    let mut must: BTreeSet<usize> = question.into_iter().chain(last).collect();
    let newest = newest_rounds(slots, &pairing.rounds).take(rounds);
    // Rounds before the newest question belong to an earlier, answered one.
    must.extend(newest.filter(|start| question.is_none_or(|at| at < *start)));
    must.extend(task(slots, opening));
    with_counterparts(slots, must)
}

/// The start of the newest round, and of the rounds after which the model only read from the store:
/// it is still working on them.
fn newest_rounds<'r>(slots: &'r [Slot], rounds: &'r [Round]) -> impl Iterator<Item = usize> {
    let is_lookup = |round: &Round| {
        let mut places = round.calls.iter().map(|place| place.call);
        places.all(|place| {
            let message = slots.get(place.message).map(|slot| &slot.message);
            let part = message.and_then(|message| message.parts.get(place.part));
            part.and_then(Part::as_call)
                .is_some_and(|call| is_retrieval(&call.name))
        })
    };
    let mut goes_on = true;
    let newest = rounds.iter().rev().take_while(move |round| {
        let is_newest = goes_on;
        // A round that only reads from the store extends the newest rounds by the one before it.
        goes_on &= is_lookup(round);
        is_newest
    });
    newest.map(|round| round.start)
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
