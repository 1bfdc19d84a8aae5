//! Writes the entries of a window.

use std::sync::Arc;

use trimtab_model::rounds::{Answer, Pairing, Round};
use trimtab_model::{Dialect, Kind, Message, Output, Part, Role, work};

use super::ids::{Ids, Sent};
use super::{
    Entry, HEAD, Habit, HeadRepair, Normalised, Options, Repair, RepairKind, Settled, Slot, Source,
    Touch,
};

pub(super) struct Emitter<'a> {
    pub(super) options: Options,
    pub(super) slots: &'a [Slot],
    pub(super) pairing: &'a Pairing,
    /// For each slot, what its outputs turned out to be, in order.
    pub(super) answers: Vec<Vec<Answer>>,
    /// For each slot, whether it was sent already as part of a round.
    pub(super) done: Vec<bool>,
    /// For each round, whether it is taken out.
    dropped: Vec<bool>,
    pub(super) ids: Ids<'a>,
    begun: bool,
    out: Normalised,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(
        options: Options,
        settled: &'a Settled,
        slots: &'a [Slot],
        pairing: &'a Pairing,
    ) -> Self {
        let is_dropped = |round: &Round| {
            let unanswered = || round.calls.iter().any(|call| call.output.is_none());
            options.habit == Habit::DropRound && unanswered()
        };
        let mut answers = vec![Vec::new(); slots.len()];
        for (place, answer) in &pairing.outputs {
            if let Some(of_slot) = answers.get_mut(place.message) {
                of_slot.push(*answer);
            }
        }
        Self {
            options,
            slots,
            pairing,
            answers,
            done: vec![false; slots.len()],
            dropped: pairing.rounds.iter().map(is_dropped).collect(),
            ids: Ids::new(options.dialect, &settled.sent),
            begun: settled.begun,
            out: Normalised::default(),
        }
    }

    /// Writes all entries; `to_the_end` if nothing follows them in the window.
    pub(super) fn run(&mut self, to_the_end: bool) {
        let mut rounds = self.pairing.rounds.iter().enumerate().peekable();
        for (at, slot) in self.slots.iter().enumerate() {
            work::step(1 + slot.message.parts.len());
            let round = rounds.next_if(|(_, round)| round.start == at);
            if !slot.message.agent_visible() || self.done.get(at).copied().unwrap_or(true) {
                continue;
            }
            match round {
                Some((number, round)) if slot.message.role == Role::Assistant => {
                    self.round(number, round, slot);
                }
                _ => self.plain(at, slot),
            }
        }
        if to_the_end && !self.begun && self.options.head == HeadRepair::Insert {
            self.insert_head(self.slots.last().map_or(Source::Log(0), |slot| slot.source));
        }
    }

    pub(super) fn into_parts(self) -> (Normalised, Sent, bool) {
        (self.out, self.ids.into_sent(), self.begun)
    }

    /// A message without calls: everything that belongs to a round is taken out of it.
    fn plain(&mut self, at: usize, slot: &'a Slot) {
        let message = &slot.message;
        let mut answers = self
            .answers
            .get(at)
            .into_iter()
            .flatten()
            .copied()
            .collect::<Vec<_>>();
        let mut answers = answers.drain(..);
        let dialect = self.options.dialect;
        let kept = |part: &Part| match part {
            Part::Output(_) | Part::Call(_) => false,
            Part::Reasoning(_) => message.role == Role::Assistant,
            _ => !is_refused_blank(part, dialect),
        };
        let whole = message.parts.iter().all(kept) && dangling(message, dialect) == 0;
        if whole && message.role != Role::Tool {
            return self.push_as_it_came(at);
        }
        let mut rest = Vec::new();
        for part in &message.parts {
            match part {
                Part::Output(output) => {
                    let answer = answers.next().unwrap_or(Answer::Orphan);
                    self.output_taken_out(slot.source, output, answer);
                }
                part if kept(part) => rest.push(part.clone()),
                _ => self.repair(slot.source, RepairKind::PartStripped),
            }
        }
        if rest.is_empty() && message.outputs().next().is_some() {
            return;
        }
        let mut changed = Message {
            parts: rest,
            ..Message::clone(message)
        };
        if changed.role == Role::Tool {
            changed.role = Role::User;
            changed.meta.kind = Some(Kind::Repair);
        }
        self.push_or_drop(slot, changed);
    }

    pub(super) fn answers_of(&self, at: usize) -> impl Iterator<Item = Answer> + use<> {
        self.answers
            .get(at)
            .cloned()
            .unwrap_or_default()
            .into_iter()
    }

    /// Puts on record why an output is not where it was.
    pub(super) fn output_taken_out(&mut self, source: Source, output: &Output, answer: Answer) {
        let id = output.call_id.clone();
        let kind = match answer {
            Answer::Duplicate => RepairKind::DuplicateDropped { id },
            Answer::Answers { round, .. } if self.is_sent(round) => return,
            // One that reaches back is paired when the window is built from the front.
            Answer::Orphan | Answer::ReachesBack | Answer::Answers { .. } => {
                RepairKind::OrphanDropped { id }
            }
        };
        self.repair(source, kind);
    }

    /// True if the round's calls are in the window: its outputs were moved, not lost.
    fn is_sent(&self, round: usize) -> bool {
        let start = self
            .pairing
            .rounds
            .get(round)
            .map_or(0, |round| round.start);
        let sent =
            |slot: &Slot| slot.message.agent_visible() && slot.message.role == Role::Assistant;
        self.slots.get(start).is_some_and(sent) && !self.is_dropped(round)
    }

    pub(super) fn is_dropped(&self, round: usize) -> bool {
        self.dropped.get(round).copied().unwrap_or(false)
    }

    /// The message of a slot, as it came.
    pub(super) fn push_as_it_came(&mut self, at: usize) {
        let Some(slot) = self.slots.get(at) else {
            return;
        };
        if slot.message.is_empty() {
            return self.repair(slot.source, RepairKind::EmptyDropped);
        }
        self.begin(slot.source, slot.message.role);
        let (message, source) = (Arc::clone(&slot.message), slot.source);
        self.out.entries.push(Entry {
            message,
            source,
            touch: Touch::Untouched,
        });
        self.out.slots.push(Some(at));
    }

    /// The message of a slot after a change, unless nothing is left of it.
    pub(super) fn push_or_drop(&mut self, slot: &Slot, mut changed: Message) {
        let mut surplus = dangling(&changed, self.options.dialect);
        if surplus > 0 {
            let mut parts = std::mem::take(&mut changed.parts);
            parts.reverse();
            parts.retain(|part| {
                let goes = surplus > 0 && matches!(part, Part::Reasoning(_));
                if goes {
                    surplus -= 1;
                    self.repair(slot.source, RepairKind::PartStripped);
                }
                !goes
            });
            parts.reverse();
            changed.parts = parts;
        }
        if changed.is_empty() {
            self.repair(slot.source, RepairKind::EmptyDropped);
        } else {
            self.push(slot.source, changed, Touch::Changed);
        }
    }

    pub(super) fn push(&mut self, source: Source, message: Message, touch: Touch) {
        self.begin(source, message.role);
        self.out.entries.push(Entry {
            message: Arc::new(message),
            source,
            touch,
        });
        self.out.slots.push(None);
    }

    /// Sees to it that the first message that is not a system message is the user's.
    fn begin(&mut self, source: Source, role: Role) {
        if role == Role::System || self.begun {
            return;
        }
        if role != Role::User && self.options.head == HeadRepair::Insert {
            self.insert_head(source);
        }
        self.begun = true;
    }

    fn insert_head(&mut self, source: Source) {
        self.begun = true;
        self.push(
            source,
            Message::user(HEAD).with_kind(Kind::Repair),
            Touch::Made,
        );
        self.repair(source, RepairKind::HeadInserted);
    }

    pub(super) fn repair(&mut self, source: Source, kind: RepairKind) {
        self.out.repairs.push(Repair { source, kind });
    }
}

/// How many thoughts at the end of a message lead to nothing, in a dialect that refuses that.
pub(super) fn dangling(message: &Message, dialect: Dialect) -> usize {
    if dialect == Dialect::Chat || message.is_empty() {
        return 0;
    }
    let thought = |part: &&Part| matches!(part, Part::Reasoning(_));
    let end = message
        .parts
        .iter()
        .rev()
        .take_while(|part| thought(part) || part.is_blank());
    end.filter(thought).count()
}

/// True for a blank text part in a dialect that refuses one even beside other parts.
pub(super) fn is_refused_blank(part: &Part, dialect: Dialect) -> bool {
    dialect == Dialect::Messages && part.is_blank()
}
