//! What survives a compaction: what the policy says, and what must.

use std::collections::BTreeSet;
use std::sync::Arc;

use trimtab_model::rounds::{self, Round};
use trimtab_model::{Message, MessageKind, Part, Role};

use super::draft::{CompactionRequest, summary_tokens};
use super::{CallConditions, ConversationState, is_ours, is_summary};
use crate::compaction::keep_rules::{KeepRule, KeptMessages, kept_messages};
use crate::normalise::{MessageSource, Slot};
use crate::policy::{CompactionPolicy, Strategy};
use crate::removal::{SafeCuts, with_counterparts};
use crate::view::tools::is_retrieval;

/// How many rounds are the newest at most.
const NEWEST_ROUNDS: usize = 8;
/// How few messages a deletion is enough for.
const FEW_MESSAGES: usize = 5;

/// What survives, and what is replaced, by index of the slots.
#[derive(Clone, Debug)]
pub(super) struct Survivors {
    /// The slots, with the summaries of other tools marked as such.
    pub(super) slots: Vec<Slot>,
    /// What survives.
    pub(super) kept: KeptMessages,
    /// What is replaced, in order.
    pub(super) replaced: Vec<usize>,
    /// False if nothing is to stand for what is replaced.
    pub(super) summary: bool,
}

/// What of the window survives under the policy; none if there is nothing to replace but what
/// we put in ourselves.
pub(super) fn survivors(
    conversation: &ConversationState<'_>,
    conditions: &CallConditions<'_>,
    request: &CompactionRequest,
) -> Option<Survivors> {
    let policy = conversation.policy;
    let compaction = &policy.compaction;
    let slots = marked(conversation.slots, &compaction.summary_prefixes);
    let strategy = strategy(compaction.strategy, &slots);
    let rules = rules(compaction, strategy, conditions, request.keep_turns);
    let weigh = |message: &Message| policy.estimate.message(message);
    let mut chosen = kept_messages(&slots, &rules, weigh);
    keep_newest_question(&slots, &rules, &mut chosen);
    // Who says how many turns stay gets them all, unless the window would not fit then.
    if request.keep_turns.is_none() || request.excess > 0 {
        let room = conditions
            .window
            .map(|window| window * compaction.keep_percent / 100);
        let must = must_stay(&slots, conversation.opening);
        // What has to go makes room for the summary as well.
        let summary = summary_tokens(policy, conditions.window);
        let goes = (request.excess > 0).then(|| request.excess.saturating_add(summary));
        cut_inside(&slots, &mut chosen, &must, (room, goes), weigh);
    }
    keep_task(&slots, conversation.opening, &mut chosen);
    chosen.system_stays = conversation.system_stays();
    let replaced = replaced(&slots, &chosen);
    // Replacing a summary by a summary of itself loses words and gains nothing.
    (!are_summaries(&slots, &replaced)).then_some(Survivors {
        slots,
        kept: chosen,
        replaced,
        summary: strategy != Strategy::Deletion,
    })
}

/// The slots with what begins like a summary of another tool marked as one.
fn marked(slots: &[Slot], prefixes: &[String]) -> Vec<Slot> {
    let begins_like_one = |message: &Message| {
        let text = message.text();
        prefixes.iter().any(|prefix| text.starts_with(prefix))
    };
    let mark = |slot: &Slot| {
        let message = &slot.message;
        let summary =
            message.role == Role::User && message.meta.kind.is_none() && begins_like_one(message);
        if !summary {
            return slot.clone();
        }
        Slot {
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
    let said = slots
        .iter()
        .filter(|slot| slot.message.role != Role::System);
    if slots.iter().any(|slot| slot.message.has_calls()) {
        Strategy::Selective
    } else if said.count() < FEW_MESSAGES {
        Strategy::Deletion
    } else {
        Strategy::SlidingWindow
    }
}

fn rules(
    compaction: &CompactionPolicy,
    strategy: Strategy,
    conditions: &CallConditions<'_>,
    keep_turns: Option<usize>,
) -> Vec<KeepRule> {
    if strategy == Strategy::Deletion {
        return vec![KeepRule::OpenCalls];
    }
    let mut rules: Vec<KeepRule> = compaction.keep.clone();
    for rule in &mut rules {
        if let KeepRule::RecentTokens { tokens } = rule {
            *tokens = compaction.recent_tokens(*tokens, conditions.window);
        }
    }
    // What a call is answered with comes later, and would answer nothing.
    if !rules.contains(&KeepRule::OpenCalls) {
        rules.push(KeepRule::OpenCalls);
    }
    if let (Strategy::SlidingWindow, Some(window)) = (strategy, conditions.window) {
        let tokens = window * compaction.keep_percent / 100;
        rules.push(KeepRule::RecentTokens { tokens });
    }
    if let Some(turns) = keep_turns {
        rules.retain(|rule| !is_recent(rule));
        rules.insert(0, KeepRule::LastTurns { turns });
    }
    rules
}

/// The newest message of the user always survives: behind the summary, unless the policy keeps
/// nothing recent and has all of the user's messages before it.
fn keep_newest_question(slots: &[Slot], rules: &[KeepRule], kept: &mut KeptMessages) {
    let Some(newest) = slots.iter().rposition(|slot| slot.message.is_real_user()) else {
        return;
    };
    // A design that keeps all messages of the user has the question among them already.
    let in_front = kept.before_summary.contains(&newest) && !rules.iter().any(is_recent);
    if in_front || kept.after_summary.contains(&newest) {
        return;
    }
    kept.before_summary.remove(&newest);
    kept.shortened.remove(&newest);
    let place = kept.after_summary.iter().position(|at| *at > newest);
    kept.after_summary
        .insert(place.unwrap_or(kept.after_summary.len()), newest);
}

/// The task always survives, where it is: before the summary.
fn keep_task(slots: &[Slot], opening: usize, kept: &mut KeptMessages) {
    let task: BTreeSet<usize> = task(slots, opening).collect();
    kept.after_summary.retain(|behind| !task.contains(behind));
    kept.shortened.retain(|at, _| !task.contains(at));
    kept.before_summary.extend(task);
}

/// What the user says before position `opening` of the log, where the first answer is. An
/// earlier plan may have moved it behind a system message.
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

/// Where what is kept behind the summary is more than its room, or is all there is, older
/// rounds of it go: a turn that is larger is compacted inside, between two rounds.
fn cut_inside(
    slots: &[Slot],
    kept: &mut KeptMessages,
    must: &BTreeSet<usize>,
    (room, goes): (Option<u64>, Option<u64>),
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
    // Everything is recent, so the recent part itself has to be compacted.
    let half = nothing_goes.then_some(total / 2);
    let over = room.filter(|room| total > *room);
    // What is replaced in any case counts towards what has to go.
    let gone = gone.iter().filter_map(|at| slots.get(*at));
    let freed: u64 = gone.map(|slot| weigh(&slot.message)).sum();
    let less = goes.map(|goes| total.saturating_sub(goes.saturating_sub(freed)));
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

/// True if all of these slots are what earlier compactions left.
fn are_summaries(slots: &[Slot], places: &[usize]) -> bool {
    let mut slots = places.iter().filter_map(|at| slots.get(*at));
    slots.all(|slot| is_summary(&slot.message))
}

/// The task, the newest question and the newest rounds: what the next answer is about.
pub(super) fn must_stay(slots: &[Slot], opening: usize) -> BTreeSet<usize> {
    let pairing = rounds::pair(slots);
    let question = slots.iter().rposition(|slot| slot.message.is_real_user());
    let last = slots
        .iter()
        .rposition(|slot| slot.message.role != Role::System && !is_ours(&slot.message));
    let mut must: BTreeSet<usize> = question.into_iter().chain(last).collect();
    let newest = newest_rounds(slots, &pairing.rounds);
    // Rounds before the newest question belong to an earlier one, which is answered.
    must.extend(newest.filter(|start| question.is_none_or(|at| at < *start)));
    must.extend(task(slots, opening));
    with_counterparts(slots, must)
}

/// Where the newest round begins, and where those begin after which the model only looked
/// something up in the store: it still works on them.
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
    newest.take(NEWEST_ROUNDS).map(|round| round.start)
}

/// The first slot from which the kept ones fit `room`, moved on so that no round is split.
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
    SafeCuts::of(slots).at_or_behind(from)
}

/// Everything that is neither kept nor of the system part. A summary that stands in the
/// system part is replaced as well.
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
