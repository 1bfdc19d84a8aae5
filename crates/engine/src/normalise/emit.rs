//! Writes the entries of a normalised window: plain messages here, rounds in [`super::round`],
//! system messages inside a conversation in [`super::system`].

use std::collections::HashMap;
use std::sync::Arc;

use trimtab_model::rounds::{OutputStatus, Pairing, PartPosition, Round};
use trimtab_model::{Message, MessageKind, Output, Part, Role, Treatment, work};

use super::ids::CallIds;
use super::rules::{
    is_bare_answer, is_refused_blank, is_refused_empty, may_have_reasoning, refused_reasoning,
    user_comes_first,
};
use super::system::PrecedingMessages;
use super::{
    EntryChange, HEAD, MessageSource, NormaliseOptions, Normalised, OpenCallRepair, Repair,
    RepairKind, SettledHistory, Slot, WITHOUT_CALL, WindowEntry,
};

pub(super) struct Emitter<'a> {
    pub(super) options: NormaliseOptions,
    pub(super) slots: &'a [Slot],
    pub(super) pairing: &'a Pairing,
    /// For each slot the status of its outputs, in order.
    pub(super) answers: Vec<Vec<OutputStatus>>,
    /// For each slot, whether it was written already as part of a round.
    pub(super) done: Vec<bool>,
    /// For each round, whether it is removed.
    dropped: Vec<bool>,
    pub(super) ids: CallIds<'a>,
    /// Outputs that stay at their place behind the round, with the ids under which they are sent.
    pub(super) awaited: HashMap<PartPosition, String>,
    /// True if nothing follows these slots in the window.
    pub(super) reaches_end: bool,
    pub(super) preceding: PrecedingMessages,
    /// Slots of system messages that wait for a place where they are accepted.
    pub(super) waiting: Vec<usize>,
    /// The last slot of the window, if it is known.
    last: Option<usize>,
    pub(super) out: Normalised,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(
        options: NormaliseOptions,
        settled: &'a SettledHistory,
        slots: &'a [Slot],
        pairing: &'a Pairing,
        reaches_end: bool,
    ) -> Self {
        let is_dropped = |round: &Round| {
            let unanswered = || round.calls.iter().any(|call| call.output.is_none());
            options.habit == OpenCallRepair::DropRound && unanswered()
        };
        let mut answers = vec![Vec::new(); slots.len()];
        for (place, answer) in &pairing.outputs {
            if let Some(of_slot) = answers.get_mut(place.message) {
                of_slot.push(*answer);
            }
        }
        let is_visible = |slot: &Slot| slot.message.agent_visible();
        // Only the end of a window may be an empty answer. Hidden messages behind it are not sent.
        let last = slots.iter().rposition(is_visible);
        Self {
            options,
            slots,
            pairing,
            answers,
            done: vec![false; slots.len()],
            dropped: pairing.rounds.iter().map(is_dropped).collect(),
            ids: CallIds::new(options.dialect, &settled.sent),
            awaited: HashMap::new(),
            reaches_end,
            preceding: settled.preceding.with_leading(slots),
            waiting: Vec::new(),
            last: last.filter(|_| reaches_end),
            out: Normalised::default(),
        }
    }

    /// Writes all entries.
    pub(super) fn run(&mut self) {
        let mut rounds = self.pairing.rounds.iter().enumerate().peekable();
        for (at, slot) in self.slots.iter().enumerate() {
            work::step(1 + slot.message.parts.len());
            let round = rounds.next_if(|(_, round)| round.start == at);
            if !slot.message.agent_visible() || self.done.get(at).copied().unwrap_or(true) {
                continue;
            }
            if self.must_wait(at, slot) {
                self.waiting.push(at);
                continue;
            }
            match round {
                // No dialect accepts a call in a message of another role. `write_plain` removes it.
                Some((number, round)) if slot.message.role == Role::Assistant => {
                    self.write_round(number, round, slot);
                }
                _ => self.write_plain(at, slot),
            }
        }
        if self.reaches_end {
            // Providers also reject a window without a message that they count as one.
            if !self.preceding.has_beginning {
                let last = self.slots.last().map(|slot| slot.source);
                self.insert_head(last.unwrap_or(MessageSource::Log(0)));
            }
            self.place_waiting();
        }
    }

    /// Writes a message without calls. Parts that belong to a round are removed.
    pub(super) fn write_plain(&mut self, at: usize, slot: &'a Slot) {
        let message = &slot.message;
        let mut answers = self.answers_of(at);
        let dialect = self.options.dialect;
        let may_stay = |part: &Part| match part {
            Part::Output(_) | Part::Call(_) => false,
            Part::Reasoning(_) => may_have_reasoning(message.role, dialect),
            _ => !is_refused_blank(part, message, dialect),
        };
        let is_complete =
            message.parts.iter().all(may_stay) && refused_reasoning(message, dialect) == 0;
        if self.last == Some(at) && self.stands_before_waiting(message) {
            // The waiting messages are written behind this one, and only the end of a window may
            // be empty.
            self.last = None;
        }
        let is_prefill = self.last == Some(at) && is_bare_answer(message);
        // Unchanged entries keep their slot, and so their measure.
        if (is_complete && message.role != Role::Tool)
            || is_prefill
            || self.is_awaited_as_it_came(at, message)
        {
            return self.push_as_it_came(at);
        }
        let (mut rest, mut staying) = (Vec::new(), Vec::new());
        for (number, part) in message.parts.iter().enumerate() {
            match part {
                Part::Output(output) => {
                    let answer = answers.next().unwrap_or(OutputStatus::Orphan);
                    let place = PartPosition {
                        message: at,
                        part: number,
                    };
                    if let Some(id) = self.awaited.get(&place) {
                        staying.push(Part::Output(Output {
                            call_id: id.clone(),
                            ..output.clone()
                        }));
                    } else if answer == OutputStatus::Orphan
                        && self.options.habit == OpenCallRepair::Tell
                    {
                        rest.push(Part::text(format!("{WITHOUT_CALL}{}", output.text())));
                        self.repair(slot.source, RepairKind::OrphanTold);
                    } else {
                        self.output_taken_out(slot.source, answer);
                    }
                }
                part if may_stay(part) => rest.push(part.clone()),
                _ => self.repair(slot.source, RepairKind::PartStripped),
            }
        }
        if !staying.is_empty() {
            let outputs = Message {
                parts: staying,
                ..Message::clone(message)
            };
            self.push(slot.source, outputs, EntryChange::Changed);
        }
        // The removal of each output is already on record.
        if rest.is_empty() && message.has_outputs() {
            return;
        }
        let mut changed = Message {
            parts: rest,
            ..Message::clone(message)
        };
        // Tool messages may contain only outputs. The kind keeps the new user message from starting
        // a turn.
        if changed.role == Role::Tool {
            changed.role = Role::User;
            changed.meta.kind = Some(MessageKind::Repair);
        }
        self.push_or_drop(slot, changed);
    }

    /// True for a message that contains only outputs which stay there under their original ids.
    fn is_awaited_as_it_came(&self, at: usize, message: &Message) -> bool {
        let mut parts = message.parts.iter().enumerate();
        let is_same = |(part, found): (usize, &Part)| {
            let awaited = self.awaited.get(&PartPosition { message: at, part });
            awaited.is_some() && awaited == found.as_output().map(|output| &output.call_id)
        };
        !message.parts.is_empty() && parts.all(is_same)
    }

    pub(super) fn answers_of(&self, at: usize) -> impl Iterator<Item = OutputStatus> + use<> {
        self.answers
            .get(at)
            .cloned()
            .unwrap_or_default()
            .into_iter()
    }

    /// Records why an output is not at its original place.
    pub(super) fn output_taken_out(&mut self, source: MessageSource, answer: OutputStatus) {
        let kind = match answer {
            OutputStatus::Duplicate => RepairKind::DuplicateDropped,
            // Its round is written, and has recorded that the output was moved or stays.
            OutputStatus::Answers { round, .. } if self.is_sent(round) => return,
            // An output that reaches back makes the whole result invalid, so its record is never
            // used.
            OutputStatus::Orphan | OutputStatus::ReachesBack | OutputStatus::Answers { .. } => {
                RepairKind::OrphanDropped
            }
        };
        self.repair(source, kind);
    }

    /// True if the calls of the round are in the window: then its outputs were moved, not lost.
    fn is_sent(&self, round: usize) -> bool {
        let start = self.pairing.rounds.get(round).map(|round| round.start);
        let slot = start.and_then(|start| self.slots.get(start));
        let is_sent =
            |slot: &Slot| slot.message.agent_visible() && slot.message.role == Role::Assistant;
        slot.is_some_and(is_sent) && !self.is_dropped(round)
    }

    pub(super) fn is_dropped(&self, round: usize) -> bool {
        self.dropped.get(round).copied().unwrap_or(false)
    }

    /// Writes the message of a slot unchanged.
    pub(super) fn push_as_it_came(&mut self, at: usize) {
        let Some(slot) = self.slots.get(at) else {
            return;
        };
        let is_last = self.last == Some(at);
        if is_refused_empty(&slot.message, self.options.dialect, is_last) {
            return self.repair(slot.source, RepairKind::EmptyDropped);
        }
        let message = Arc::clone(&slot.message);
        self.push(slot.source, message, EntryChange::Untouched);
        if let Some(slot) = self.out.slots.last_mut() {
            *slot = Some(at);
        }
    }

    /// Writes the changed message of a slot, unless nothing is left of it.
    pub(super) fn push_or_drop(&mut self, slot: &Slot, mut changed: Message) {
        let is_reasoning = |part: &Part| matches!(part, Part::Reasoning(_));
        for _ in 0..refused_reasoning(&changed, self.options.dialect) {
            if let Some(last) = changed.parts.iter().rposition(is_reasoning) {
                changed.parts.remove(last);
                self.repair(slot.source, RepairKind::PartStripped);
            }
        }
        if changed.is_empty() {
            self.repair(slot.source, RepairKind::EmptyDropped);
        } else {
            self.push(slot.source, changed, EntryChange::Changed);
        }
    }

    /// Writes an entry, after everything that must stand before it.
    pub(super) fn push(
        &mut self,
        source: MessageSource,
        message: impl Into<Arc<Message>>,
        change: EntryChange,
    ) {
        let message = message.into();
        let role = message.role;
        self.ensure_beginning(source, &message);
        // The last place at which providers accept a system message: behind the user or a tool, and
        // before the answer.
        if role == Role::Assistant && self.user_side_spoke_last() {
            self.place_waiting();
        }
        if role != Role::System {
            self.preceding.speaker = Some(role);
        }
        self.out.entries.push(WindowEntry {
            message,
            source,
            change,
        });
        self.out.slots.push(None);
    }

    /// Makes sure that the conversation begins as the dialect requires.
    fn ensure_beginning(&mut self, source: MessageSource, message: &Message) {
        let user_first = user_comes_first(self.options.dialect);
        if self.preceding.has_beginning || (user_first && message.role == Role::System) {
            return;
        }
        // The provider's own summary is an answer, and begins a conversation.
        let begins = message.role == Role::User || message.has_part_with(Treatment::Boundary);
        if user_first && !begins {
            self.insert_head(source);
        }
        self.preceding.has_beginning = true;
    }

    fn insert_head(&mut self, source: MessageSource) {
        self.preceding.has_beginning = true;
        let head = Message::user(HEAD).with_kind(MessageKind::Repair);
        self.push(source, head, EntryChange::Made);
        self.repair(source, RepairKind::HeadInserted);
    }

    pub(super) fn repair(&mut self, source: MessageSource, kind: RepairKind) {
        self.out.repairs.push(Repair { source, kind });
    }
}
