//! What must stay in a window, whatever a policy removes.

use std::collections::BTreeSet;

use trimtab_model::Role;
use trimtab_model::rounds::{self, Round};

use super::{ConversationState, is_ours};
use crate::normalise::Slot;
use crate::removal::with_counterparts;
use crate::view::tools::is_retrieval;

/// At most this many rounds count as the newest. An agent that only reads from the store for a long
/// time would otherwise keep everything.
const NEWEST_ROUNDS: usize = 8;

/// What must stay, by slot.
pub(super) struct MustStay {
    /// The user messages before the first answer.
    pub(super) task: BTreeSet<usize>,
    /// The newest message of a real user.
    pub(super) question: Option<usize>,
    /// What belongs to the provider, with its rounds.
    pub(super) of_provider: BTreeSet<usize>,
    /// The newest message of the conversation.
    last: Option<usize>,
    /// The start of the newest round behind the question, and of the rounds before it after which
    /// the model only read from the store: it is still working on them. The newest first.
    rounds: Vec<usize>,
}

impl MustStay {
    /// What must stay of these slots of the conversation.
    pub(super) fn of(conversation: &ConversationState<'_>, slots: &[Slot]) -> Self {
        let question = question(slots);
        let last = slots
            .iter()
            .rposition(|slot| slot.message.role != Role::System && !is_ours(&slot.message));
        let pairing = rounds::pair(slots);
        let newest = newest_rounds(slots, &pairing.rounds);
        // Rounds before the newest question belong to an earlier, answered one.
        let rounds = newest.filter(|start| question.is_none_or(|at| at < *start));
        let of_provider = slots.iter().enumerate().filter(|(_, slot)| {
            let position = slot.source.in_log();
            position.is_some_and(|position| conversation.log.stays(position))
        });
        Self {
            task: task(slots, conversation.log.opening()).collect(),
            question,
            last,
            rounds: rounds.take(NEWEST_ROUNDS).collect(),
            of_provider: with_counterparts(slots, of_provider.map(|(at, _)| at)),
        }
    }

    /// The newest question and the newest rounds: the next answer depends on them.
    pub(super) fn newest(&self, slots: &[Slot]) -> BTreeSet<usize> {
        self.with_rounds(slots, NEWEST_ROUNDS)
    }

    /// The same with only the newest of these rounds.
    pub(super) fn newest_round(&self, slots: &[Slot]) -> BTreeSet<usize> {
        self.with_rounds(slots, 1)
    }

    fn with_rounds(&self, slots: &[Slot], most: usize) -> BTreeSet<usize> {
        let newest = self.question.into_iter().chain(self.last);
        with_counterparts(slots, newest.chain(self.rounds.iter().copied().take(most)))
    }
}

/// The newest message of a real user.
pub(super) fn question(slots: &[Slot]) -> Option<usize> {
    slots.iter().rposition(|slot| slot.message.is_real_user())
}

/// The slots of user messages before position `opening` of the log, where the first answer is. An
/// earlier plan may have inserted messages before them.
pub(super) fn task(slots: &[Slot], opening: usize) -> impl Iterator<Item = usize> {
    let first = slots.iter().enumerate();
    let first = first.take_while(move |(_, slot)| slot.source.end() <= opening);
    first
        .filter(|(_, slot)| slot.message.is_real_user())
        .map(|(at, _)| at)
}

/// The start of the newest round, and of the rounds after which the model only read from the store.
fn newest_rounds<'r>(slots: &'r [Slot], rounds: &'r [Round]) -> impl Iterator<Item = usize> {
    let is_lookup = |round: &Round| {
        let slot = slots.get(round.start);
        let mut calls = slot.into_iter().flat_map(|slot| slot.message.calls());
        calls.all(|call| is_retrieval(&call.name))
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
