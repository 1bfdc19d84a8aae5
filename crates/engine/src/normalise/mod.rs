//! Normalising: the smallest repairs that make a history valid.
//!
//! Real histories have calls that were never answered, outputs without a call, outputs that
//! came late, twice or out of order, ids that repeat. What providers of the dialect are known
//! to refuse is repaired, and every repair is on record; everything else comes back untouched.
//! Normalising twice is normalising once.

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

/// The output that is put in for a call that has none.
pub const ABORTED: &str = "aborted";
/// The output that stands in for one which is archived: hidden from the model.
pub(crate) const ARCHIVED: &str = "[tool output archived]";
/// The user message that is put first where the dialect insists on one.
pub const HEAD: &str = "[The conversation starts here.]";

/// What a text begins with that tells an output whose call is not in the window.
pub(crate) const WITHOUT_CALL: &str = "[output of a call that is not in this conversation]\n";

/// What to do with a call that has no output. An output that has no call is taken out, but for
/// `tell`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpenCallRepair {
    /// Put in an output that says `aborted`.
    #[default]
    Synthesise,
    /// The same; and an output that has no call is told as a text of the user.
    Tell,
    /// Take the call out; a message with nothing left goes too.
    Strip,
    /// Take the whole round out, with the outputs it has.
    DropRound,
}

/// How to normalise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NormaliseOptions {
    /// Whose rules the window must meet.
    pub dialect: Dialect,
    /// What to do with a call that has no output.
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

/// Where a message of a window comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageSource {
    /// The message at this position of the log.
    Log(usize),
    /// A message that a plan inserted before this position of the log.
    Inserted(usize),
}

impl MessageSource {
    /// The position in the log that it is, or that it stands before.
    pub fn position(self) -> usize {
        match self {
            Self::Log(at) | Self::Inserted(at) => at,
        }
    }
}

/// A message on its way into the window.
#[derive(Clone, Debug)]
pub struct Slot {
    /// The message.
    pub message: Arc<Message>,
    /// Where it comes from.
    pub source: MessageSource,
}

impl Slot {
    /// The messages of a log, as they came.
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
    /// Where it comes from; for a message that a repair made, what it was made for.
    pub source: MessageSource,
    /// What normalising did to it.
    pub change: EntryChange,
}

/// What normalising did to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryChange {
    /// Nothing: it is sent as it came.
    Untouched,
    /// It was moved or lost a part.
    Changed,
    /// A repair made it.
    Made,
}

/// One repair, on record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repair {
    /// What was repaired.
    pub source: MessageSource,
    /// How it was repaired.
    pub kind: RepairKind,
}

/// What a repair did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairKind {
    /// An output was put in for a call that had none.
    Synthesised,
    /// A call that had no output was taken out.
    CallStripped,
    /// A round with an unanswered call was taken out.
    RoundDropped,
    /// An output without a call was taken out.
    OrphanDropped,
    /// An output without a call became a text of the user.
    OrphanTold,
    /// A second output for one call was taken out.
    DuplicateDropped,
    /// An output was moved to its place directly behind the call.
    OutputMoved,
    /// A call got an id that its dialect accepts.
    IdChanged,
    /// A part was taken out of a message where no provider accepts it.
    PartStripped,
    /// A message with nothing in it was taken out.
    EmptyDropped,
    /// A user message was put first.
    HeadInserted,
    /// A system message was moved to a place where it is accepted.
    SystemMoved,
    /// A system message became one with another that it would have followed.
    SystemJoined,
}

impl RepairKind {
    /// What was done, in a word or two.
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

/// A history made valid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Normalised {
    /// The messages to send.
    pub entries: Vec<WindowEntry>,
    /// What was repaired, in order.
    pub repairs: Vec<Repair>,
    /// For each entry that is as it came, the slot that it came from.
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
    normalise_after(&SettledHistory::default(), &slots, options, SlotReach::End).normalised
}

/// What normalising needs to know of the part of a history that is settled: normalised
/// before, and not looked at again.
#[derive(Clone, Debug, Default)]
pub(crate) struct SettledHistory {
    /// The ids of its calls; true if the newest call with that id is answered.
    calls: HashMap<String, bool>,
    /// The ids that were sent, where the dialect wants them unique.
    sent: SentIds,
    /// True once the conversation has a beginning, as the dialect wants one.
    has_beginning: bool,
    /// What the place of the next system message depends on.
    preceding: PrecedingMessages,
}

/// The result of normalising what comes after a settled part.
pub(crate) struct NormalisedTail {
    pub(crate) normalised: Normalised,
    /// Which output answers which call, among the slots after the settled part.
    pub(crate) pairing: Pairing,
    /// True if an output belongs to a call of the settled part: start over from the front.
    pub(crate) reaches_back: bool,
    /// True if something waits for its place behind this part: it cannot be settled.
    pub(crate) has_waiting: bool,
    /// What to add to the settled part if this one is settled too.
    pub(crate) learnt: SettledHistory,
}

/// Whether the slots reach to the end of the window.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotReach {
    /// They reach to the end.
    End,
    /// More slots follow them.
    Middle,
}

pub(crate) fn normalise_after(
    settled: &SettledHistory,
    slots: &[Slot],
    options: NormaliseOptions,
    reach: SlotReach,
) -> NormalisedTail {
    let pairing = settled.pair(slots);
    let reaches_back = pairing
        .outputs
        .iter()
        .any(|(_, answer)| *answer == OutputStatus::ReachesBack);
    let mut emitter = Emitter::new(options, settled, slots, &pairing, reach);
    emitter.run();
    let waits = emitter.has_waiting();
    let (normalised, mut learnt) = emitter.into_parts();
    learnt.calls = answered(slots, &pairing);
    NormalisedTail {
        normalised,
        pairing,
        reaches_back,
        has_waiting: waits,
        learnt,
    }
}

impl SettledHistory {
    /// Pairs what comes after the settled part.
    pub(crate) fn pair(&self, slots: &[Slot]) -> Pairing {
        rounds::pair_after(slots, |id| self.calls.get(id).copied())
    }

    /// Takes in what was learnt of a part that is settled too. Gives what to
    /// [take back](Self::take_back) if that part changes after all.
    pub(crate) fn extend(&mut self, learnt: Self) -> SettledStep {
        let step = SettledStep {
            calls: insert_all(&mut self.calls, learnt.calls),
            sent: insert_all(&mut self.sent, learnt.sent),
            has_beginning: self.has_beginning,
            preceding: self.preceding,
        };
        self.has_beginning |= learnt.has_beginning;
        self.preceding = learnt.preceding;
        step
    }

    /// Takes the newest step back.
    pub(crate) fn take_back(&mut self, step: SettledStep) {
        put_back(&mut self.calls, step.calls);
        put_back(&mut self.sent, step.sent);
        self.has_beginning = step.has_beginning;
        self.preceding = step.preceding;
    }
}

/// What was known before a part was settled: for each id that it changed, its value then.
#[derive(Clone, Debug)]
pub(crate) struct SettledStep {
    calls: Vec<(String, Option<bool>)>,
    sent: Vec<(String, Option<u64>)>,
    has_beginning: bool,
    preceding: PrecedingMessages,
}

/// Inserts all of `new`. Gives each key with the value that it had before.
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

/// True if normalising treats two messages alike at the same place: it would send one as it
/// came where it sends the other as it came, and treat everything else the same.
pub(crate) fn treats_alike(one: &Message, other: &Message) -> bool {
    let alike = |(one, other): (&Part, &Part)| match (one, other) {
        (Part::Output(one), Part::Output(other)) => one.call_id == other.call_id,
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
            *of_round.entry(&call.id).or_insert(true) &= place.output.is_some();
        }
        let of_round = of_round.into_iter();
        calls.extend(of_round.map(|(id, answered)| (id.to_owned(), answered)));
    }
    calls
}

#[cfg(test)]
mod tests;
