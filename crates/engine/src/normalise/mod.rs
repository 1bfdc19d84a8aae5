//! Normalisation: the smallest repairs that make a history valid.
//!
//! Real histories have calls without outputs, outputs without calls, outputs that come late, twice
//! or out of order, and repeated ids. Everything that providers of the dialect are known to reject
//! is repaired, and every repair is recorded; everything else stays untouched. Normalising twice is
//! the same as normalising once.

mod emit;
mod ids;
mod round;
mod rules;
mod system;

use std::borrow::Borrow;
use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use trimtab_model::rounds::{self, OutputStatus, Pairing};
use trimtab_model::{Dialect, Message, Part};

use emit::Emitter;
use ids::SentIds;
use system::PrecedingMessages;

/// The output that is inserted for a call without one.
pub const ABORTED: &str = "aborted";
/// The output that replaces an archived one, which is hidden from the model.
pub(crate) const ARCHIVED: &str = "[tool output archived]";
/// The user message that is inserted first where the dialect requires one.
pub const HEAD: &str = "[The conversation starts here.]";

/// The first line of a text that contains an output whose call is not in the window.
pub(crate) const WITHOUT_CALL: &str = "[output of a call that is not in this conversation]\n";

/// What to do with a call without an output. An output without a call is removed, except by `tell`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpenCallRepair {
    /// Insert an output that says `aborted`.
    #[default]
    Synthesise,
    /// The same, and an output without a call becomes a text of the user.
    Tell,
    /// Remove the call, and the message if nothing is left of it.
    Strip,
    /// Remove the whole round, with the outputs it has.
    DropRound,
}

/// Options of normalisation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NormaliseOptions {
    /// The dialect whose rules the window must follow.
    pub dialect: Dialect,
    /// What to do with a call without an output.
    pub habit: OpenCallRepair,
}

impl NormaliseOptions {
    /// The default repairs for `dialect`.
    pub fn for_dialect(dialect: Dialect) -> Self {
        Self {
            dialect,
            ..Self::default()
        }
    }
}

/// The origin of a message in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageSource {
    /// The message at this position of the log.
    Log(usize),
    /// A message that a plan inserted before this position of the log.
    Inserted(usize),
}

impl MessageSource {
    /// The position in the log, or the position that it stands before.
    pub fn position(self) -> usize {
        match self {
            Self::Log(at) | Self::Inserted(at) => at,
        }
    }

    /// The first position of the log behind it.
    pub(crate) fn end(self) -> usize {
        match self {
            Self::Log(at) => at + 1,
            Self::Inserted(before) => before,
        }
    }

    /// The position in the log; none for a message that a plan inserted.
    pub fn in_log(self) -> Option<usize> {
        match self {
            Self::Log(at) => Some(at),
            Self::Inserted(_) => None,
        }
    }
}

/// A message that goes into the window, before normalisation.
#[derive(Clone, Debug)]
pub struct Slot {
    /// The message.
    pub message: Arc<Message>,
    /// Its origin.
    pub source: MessageSource,
}

impl Slot {
    /// The messages of a log, unedited.
    pub(crate) fn of_log(messages: &[Arc<Message>]) -> Vec<Self> {
        let slot = |(at, message): (usize, &Arc<Message>)| Self {
            message: Arc::clone(message),
            source: MessageSource::Log(at),
        };
        messages.iter().enumerate().map(slot).collect()
    }
}

impl Borrow<Message> for Slot {
    fn borrow(&self) -> &Message {
        &self.message
    }
}

/// A message of a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowEntry {
    /// The message as it is sent.
    pub message: Arc<Message>,
    /// Its origin; for a message made by a repair, the origin of the repaired message.
    pub source: MessageSource,
    /// What normalisation did to it.
    pub change: EntryChange,
}

/// What normalisation did to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryChange {
    /// Nothing.
    Untouched,
    /// It was moved or lost a part.
    Changed,
    /// It was created by a repair.
    Made,
}

/// The record of one repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The repaired message.
    pub source: MessageSource,
    /// The kind of repair.
    pub kind: RepairKind,
}

/// Kinds of repairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairKind {
    /// An output was inserted for a call without one.
    Synthesised,
    /// A call without an output was removed.
    CallStripped,
    /// A round with an unanswered call was removed.
    RoundDropped,
    /// An output without a call was removed.
    OrphanDropped,
    /// An output without a call became a text of the user.
    OrphanTold,
    /// A second output for one call was removed.
    DuplicateDropped,
    /// An output was moved directly behind its call.
    OutputMoved,
    /// A call got an id that its dialect accepts.
    IdChanged,
    /// A part was removed from a message in which no provider accepts it.
    PartStripped,
    /// An empty message was removed.
    EmptyDropped,
    /// A user message was inserted first.
    HeadInserted,
    /// A system message was moved to a place where it is accepted.
    SystemMoved,
    /// A system message was joined with another one, because two in a row are rejected.
    SystemJoined,
}

impl RepairKind {
    /// The name of the repair in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Synthesised => "output-added",
            Self::CallStripped => "call-removed",
            Self::RoundDropped => "round-removed",
            Self::OrphanDropped => "orphan-output-removed",
            Self::OrphanTold => "orphan-output-told",
            Self::DuplicateDropped => "duplicate-output-removed",
            Self::OutputMoved => "output-moved",
            Self::IdChanged => "call-id-changed",
            Self::PartStripped => "part-removed",
            Self::EmptyDropped => "empty-message-removed",
            Self::HeadInserted => "user-message-added",
            Self::SystemMoved => "system-message-moved",
            Self::SystemJoined => "system-messages-joined",
        }
    }
}

/// A normalised history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Normalised {
    /// The messages to send.
    pub entries: Vec<WindowEntry>,
    /// The repairs, in order.
    pub repairs: Vec<Repair>,
    /// For each unchanged entry its slot.
    pub(crate) slots: Vec<Option<usize>>,
}

impl Normalised {
    /// The messages alone.
    pub fn messages(&self) -> Vec<Arc<Message>> {
        self.entries
            .iter()
            .map(|entry| Arc::clone(&entry.message))
            .collect()
    }
}

/// Makes `messages` valid.
///
/// ```
/// # use std::sync::Arc;
/// # use trimtab_engine::normalise::{NormaliseOptions, normalise};
/// # use trimtab_model::{Call, Message};
/// let history = [
///     Message::user("list the files"),
///     Message::assistant("").with_call(Call::new("c1", "list", "{}")),
///     Message::user("never mind"),
/// ];
/// let normalised = normalise(&history.map(Arc::new), NormaliseOptions::default());
/// assert_eq!(normalised.entries[2].message.text(), "aborted");
/// assert_eq!(normalised.entries[3].message.text(), "never mind");
/// ```
pub fn normalise(messages: &[Arc<Message>], options: NormaliseOptions) -> Normalised {
    let slots = Slot::of_log(messages);
    normalise_after(&SettledHistory::default(), &slots, options, true).normalised
}

/// What normalisation must know of the settled part of a history, which was normalised before and
/// is not read again.
#[derive(Clone, Debug, Default)]
pub(crate) struct SettledHistory {
    /// The ids of its calls; true if the newest call with the id is answered.
    calls: HashMap<String, bool>,
    /// The ids that were sent, if the dialect requires unique ids.
    sent: SentIds,
    /// What the place of the next message depends on.
    preceding: PrecedingMessages,
}

/// The result of normalising slots after a settled part.
pub(crate) struct NormalisedTail {
    pub(crate) normalised: Normalised,
    /// The pairing of outputs and calls in these slots.
    pub(crate) pairing: Pairing,
    /// True if an output belongs to a settled call. The result is then invalid.
    pub(crate) reaches_back: bool,
    /// True if a message waits for a place after these slots. Then they cannot settle.
    pub(crate) has_waiting: bool,
    /// What to add to the settled part if these slots settle.
    pub(crate) learnt: SettledHistory,
}

/// Makes the slots after a settled part valid. `reaches_end` says that no more slots follow them.
pub(crate) fn normalise_after(
    settled: &SettledHistory,
    slots: &[Slot],
    options: NormaliseOptions,
    reaches_end: bool,
) -> NormalisedTail {
    let pairing = settled.pair(slots);
    let reaches_back = pairing
        .outputs
        .iter()
        .any(|(_, answer)| *answer == OutputStatus::ReachesBack);
    let mut emitter = Emitter::new(options, settled, slots, &pairing, reaches_end);
    emitter.run();
    let learnt = SettledHistory {
        calls: answered(slots, &pairing),
        sent: emitter.ids.sent,
        preceding: PrecedingMessages {
            slot: slots
                .last()
                .map(|slot| slot.source)
                .or(emitter.preceding.slot),
            ..emitter.preceding
        },
    };
    NormalisedTail {
        reaches_back,
        has_waiting: !emitter.waiting.is_empty(),
        normalised: emitter.out,
        learnt,
        pairing,
    }
}

impl SettledHistory {
    /// Pairs the slots after the settled part.
    pub(crate) fn pair(&self, slots: &[Slot]) -> Pairing {
        rounds::pair_after(slots, |id| self.calls.get(id).copied())
    }

    /// Adds a part that settled. Returns what [`take_back`](Self::take_back) needs if that part
    /// changes later.
    pub(crate) fn extend(&mut self, learnt: Self) -> SettledStep {
        let step = SettledStep {
            calls: insert_all(&mut self.calls, learnt.calls),
            sent: insert_all(&mut self.sent, learnt.sent),
            preceding: self.preceding,
        };
        self.preceding = learnt.preceding;
        step
    }

    /// Takes the newest step back.
    pub(crate) fn take_back(&mut self, step: SettledStep) {
        put_back(&mut self.calls, step.calls);
        put_back(&mut self.sent, step.sent);
        self.preceding = step.preceding;
    }
}

/// The state before a part settled: for each id that it changed, the previous value.
#[derive(Clone, Debug)]
pub(crate) struct SettledStep {
    calls: Vec<(String, Option<bool>)>,
    sent: Vec<(String, Option<u64>)>,
    preceding: PrecedingMessages,
}

/// Inserts all of `new`, and returns each key with its previous value.
fn insert_all<V>(
    map: &mut HashMap<String, V>,
    new: HashMap<String, V>,
) -> Vec<(String, Option<V>)> {
    let insert = |(key, value): (String, V)| {
        let old = map.insert(key.clone(), value);
        (key, old)
    };
    new.into_iter().map(insert).collect()
}

fn put_back<V>(map: &mut HashMap<String, V>, old: Vec<(String, Option<V>)>) {
    for (key, value) in old {
        match value {
            Some(value) => map.insert(key, value),
            None => map.remove(&key),
        };
    }
}

/// True if normalisation treats two messages alike at the same place: it sends both unchanged or
/// neither, and everything else stays the same.
pub(crate) fn treats_alike(one: &Message, other: &Message) -> bool {
    let alike = |(one, other): (&Part, &Part)| match (one, other) {
        (Part::Output(one), Part::Output(other)) => one.call_id == other.call_id,
        // Blank texts may be removed, others never are.
        (Part::Text(_), Part::Text(_)) => one == other || !(one.is_blank() || other.is_blank()),
        _ => one == other,
    };
    one.role == other.role
        && one.meta == other.meta
        && one.parts.len() == other.parts.len()
        && one.parts.iter().zip(&other.parts).all(alike)
}

/// For each call id, whether every call with it in the newest round that has it is answered.
fn answered(slots: &[Slot], pairing: &Pairing) -> HashMap<String, bool> {
    let mut calls = HashMap::new();
    for round in &pairing.rounds {
        let Some(slot) = slots.get(round.start) else {
            continue;
        };
        let mut of_round: HashMap<&str, bool> = HashMap::new();
        for (call, place) in slot.message.calls().zip(&round.calls) {
            // Equal ids in one round are answered in order. While one call is open, a further
            // output with this id is no duplicate.
            *of_round.entry(&call.id).or_insert(true) &= place.output.is_some();
        }
        let of_round = of_round.into_iter();
        // Later rounds overwrite earlier ones: an output can only answer the newest call with its
        // id.
        calls.extend(of_round.map(|(id, answered)| (id.to_owned(), answered)));
    }
    calls
}

#[cfg(test)]
mod tests;
