//! Writes the entries of a window.

use std::collections::HashMap;
use std::sync::Arc;

use trimtab_model::rounds::{OutputStatus, Pairing, PartPosition, Round};
use trimtab_model::{Message, MessageKind, Output, Part, Role, work};

use super::ids::CallIds;
use super::rules::{
    is_bare_answer, is_refused_blank, is_refused_empty, may_think, refused_thoughts,
    user_comes_first,
};
use super::system::PrecedingMessages;
use super::{
    EntryChange, HEAD, MessageSource, NormaliseOptions, Normalised, OpenCallRepair, Repair,
    RepairKind, SettledHistory, Slot, SlotReach, WITHOUT_CALL, WindowEntry,
};

pub(super) struct Emitter<'a> {
    pub(super) options: NormaliseOptions,
    pub(super) slots: &'a [Slot],
    pub(super) pairing: &'a Pairing,
    /// For each slot, what its outputs turned out to be, in order.
    pub(super) answers: Vec<Vec<OutputStatus>>,
    /// For each slot, whether it was sent already as part of a round.
    pub(super) done: Vec<bool>,
    /// For each round, whether it is taken out.
    dropped: Vec<bool>,
    pub(super) ids: CallIds<'a>,
    /// Outputs that stay behind where they stand, with the ids under which they are sent.
    pub(super) awaited: HashMap<PartPosition, String>,
    has_beginning: bool,
    /// True if nothing follows the slots in the window.
    pub(super) reaches_end: bool,
    pub(super) preceding: PrecedingMessages,
    /// System messages that wait for a place where they are accepted.
    pub(super) waiting: Vec<usize>,
    /// The slot with which the window ends, where that is known.
    last: Option<usize>,
    out: Normalised,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(
        options: NormaliseOptions,
        settled: &'a SettledHistory,
        slots: &'a [Slot],
        pairing: &'a Pairing,
        reach: SlotReach,
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
        Self {
            options,
            slots,
            pairing,
            answers,
            done: vec![false; slots.len()],
            dropped: pairing.rounds.iter().map(is_dropped).collect(),
            ids: CallIds::new(options.dialect, &settled.sent),
            awaited: HashMap::new(),
            has_beginning: settled.has_beginning,
            reaches_end: reach == SlotReach::End,
            preceding: settled.preceding.with_leading(slots),
            waiting: Vec::new(),
            last: None,
            out: Normalised::default(),
        }
    }

    /// Writes all entries.
    pub(super) fn run(&mut self) {
        let is_visible = |slot: &Slot| slot.message.agent_visible();
        self.last = self
            .slots
            .iter()
            .rposition(is_visible)
            .filter(|_| self.reaches_end);
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
                Some((number, round)) if slot.message.role == Role::Assistant => {
                    self.round(number, round, slot);
                }
                _ => self.plain(at, slot),
            }
        }
        if self.reaches_end {
            if !self.has_beginning {
                self.insert_head(
                    self.slots
                        .last()
                        .map_or(MessageSource::Log(0), |slot| slot.source),
                );
            }
            self.place_waiting();
        }
    }

    pub(super) fn has_begun(&self) -> bool {
        self.has_beginning
    }

    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// What was written, and what to know of it behind it; its calls are not among that.
    pub(super) fn into_parts(self) -> (Normalised, SettledHistory) {
        let last = self.slots.last().map(|slot| slot.source);
        let before = PrecedingMessages {
            slot: last.or(self.preceding.slot),
            ..self.preceding
        };
        let learnt = SettledHistory {
            sent: self.ids.into_sent(),
            has_beginning: self.has_beginning,
            preceding: before,
            ..SettledHistory::default()
        };
        (self.out, learnt)
    }

    /// A message without calls: everything that belongs to a round is taken out of it.
    pub(super) fn plain(&mut self, at: usize, slot: &'a Slot) {
        let message = &slot.message;
        let mut answers = self.answers_of(at);
        let dialect = self.options.dialect;
        let kept = |part: &Part| match part {
            Part::Output(_) | Part::Call(_) => false,
            Part::Reasoning(_) => may_think(message.role, dialect),
            _ => !is_refused_blank(part, message, dialect),
        };
        let whole = message.parts.iter().all(kept) && refused_thoughts(message, dialect) == 0;
        if self.stands_before_waiting(message) {
            // What waits is written behind it, and only the end of a window may be empty.
            self.last = None;
        }
        let is_prefill = self.last == Some(at) && is_bare_answer(message);
        if (whole && message.role != Role::Tool) || is_prefill {
            return self.push_as_it_came(at);
        }
        if self.is_awaited_as_it_came(at, message) {
            return self.push_as_it_came(at);
        }
        let (mut rest, mut staying) = (Vec::new(), Vec::new());
        for (number, part) in message.parts.iter().enumerate() {
            match part {
                Part::Output(output) => {
                    if let Some(output) = self.awaited_output(at, number, output) {
                        answers.next();
                        staying.push(Part::Output(output));
                        continue;
                    }
                    let answer = answers.next().unwrap_or(OutputStatus::Orphan);
                    if answer == OutputStatus::Orphan && self.options.habit == OpenCallRepair::Tell
                    {
                        rest.push(Part::text(format!("{WITHOUT_CALL}{}", output.text())));
                        self.repair(slot.source, RepairKind::OrphanTold);
                    } else {
                        self.output_taken_out(slot.source, answer);
                    }
                }
                part if kept(part) => rest.push(part.clone()),
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
        if rest.is_empty() && message.outputs().next().is_some() {
            return;
        }
        let mut changed = Message {
            parts: rest,
            ..Message::clone(message)
        };
        if changed.role == Role::Tool {
            changed.role = Role::User;
            changed.meta.kind = Some(MessageKind::Repair);
        }
        self.push_or_drop(slot, changed);
    }

    /// The output at a place, as it is sent, if it stays there.
    fn awaited_output(&self, message: usize, part: usize, output: &Output) -> Option<Output> {
        let id = self.awaited.get(&PartPosition { message, part })?;
        Some(Output {
            call_id: id.clone(),
            ..output.clone()
        })
    }

    /// True for a message of nothing but outputs that stay there under their ids.
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

    /// Puts on record why an output is not where it was.
    pub(super) fn output_taken_out(&mut self, source: MessageSource, answer: OutputStatus) {
        let kind = match answer {
            OutputStatus::Duplicate => RepairKind::DuplicateDropped,
            OutputStatus::Answers { round, .. } if self.is_sent(round) => return,
            // One that reaches back is paired when the window is built from the front.
            OutputStatus::Orphan | OutputStatus::ReachesBack | OutputStatus::Answers { .. } => {
                RepairKind::OrphanDropped
            }
        };
        self.repair(source, kind);
    }

    /// True if the round's calls are in the window: its outputs were moved, not lost.
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

    /// The message of a slot, as it came.
    pub(super) fn push_as_it_came(&mut self, at: usize) {
        let Some(slot) = self.slots.get(at) else {
            return;
        };
        let is_last = self.last == Some(at);
        if is_refused_empty(&slot.message, self.options.dialect, is_last) {
            return self.repair(slot.source, RepairKind::EmptyDropped);
        }
        self.push_entry(
            slot.source,
            Arc::clone(&slot.message),
            EntryChange::Untouched,
        );
        if let Some(slot) = self.out.slots.last_mut() {
            *slot = Some(at);
        }
    }

    /// The message of a slot after a change, unless nothing is left of it.
    pub(super) fn push_or_drop(&mut self, slot: &Slot, mut changed: Message) {
        let is_thought = |part: &Part| matches!(part, Part::Reasoning(_));
        for _ in 0..refused_thoughts(&changed, self.options.dialect) {
            if let Some(last) = changed.parts.iter().rposition(is_thought) {
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

    pub(super) fn push(&mut self, source: MessageSource, message: Message, change: EntryChange) {
        self.push_entry(source, Arc::new(message), change);
    }

    /// Adds an entry behind what must stand before it.
    pub(super) fn push_entry(
        &mut self,
        source: MessageSource,
        message: Arc<Message>,
        touch: EntryChange,
    ) {
        let role = message.role;
        self.begin(source, role);
        if role == Role::Assistant && self.user_side_spoke_last() {
            self.place_waiting();
        }
        if role != Role::System {
            self.preceding.speaker = Some(role);
        }
        self.out.entries.push(WindowEntry {
            message,
            source,
            change: touch,
        });
        self.out.slots.push(None);
    }

    /// Sees to it that the conversation begins as the dialect wants it.
    fn begin(&mut self, source: MessageSource, role: Role) {
        let user_first = user_comes_first(self.options.dialect);
        if self.has_beginning || (user_first && role == Role::System) {
            return;
        }
        if user_first && role != Role::User {
            self.insert_head(source);
        }
        self.has_beginning = true;
    }

    fn insert_head(&mut self, source: MessageSource) {
        self.has_beginning = true;
        let head = Message::user(HEAD).with_kind(MessageKind::Repair);
        self.push(source, head, EntryChange::Made);
        self.repair(source, RepairKind::HeadInserted);
    }

    pub(super) fn repair(&mut self, source: MessageSource, kind: RepairKind) {
        self.out.repairs.push(Repair { source, kind });
    }
}
