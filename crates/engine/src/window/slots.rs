//! The slots of a window, with running sums, so that no call walks all of them.

use std::sync::Arc;

use trimtab_model::estimate::Measure;
use trimtab_model::{Message, Role, Treatment, work};

use crate::journal::has_reasoning;
use crate::normalise::{MessageSource, Slot};

/// The log with the journal's edits, not yet normalised.
///
/// It changes only at its end, or by a message that is shown differently in place.
#[derive(Debug, Default)]
pub(super) struct SlotList {
    pub(super) slots: Vec<Slot>,
    /// For each slot its measure, and whether it shows its message unedited.
    infos: Vec<SlotInfo>,
    /// All measures together.
    total: Measure,
    /// The measures of the system messages.
    system: Measure,
    /// The newest slot with a summary of the provider, and the measure of what it ignores for that.
    ignored: Option<(usize, Measure)>,
    /// The number of slots with outputs at the end, and their measure.
    open_outputs: (usize, Measure),
    /// The number of slots that do not show a message of the log unedited.
    pub(super) edited: usize,
    /// The slots that plans inserted, in order.
    pub(super) inserted: Vec<usize>,
    /// The slots with reasoning, in order.
    pub(super) thoughts: Vec<usize>,
    /// The system messages, in order.
    systems: Vec<usize>,
}

/// What is known of a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotInfo {
    /// Its measure; a message is measured once.
    pub(super) measure: Measure,
    /// True if it shows a message of the log unedited.
    pub(super) as_it_came: bool,
}

/// The end of a list that was cut off.
#[derive(Debug)]
pub(super) struct RemovedTail {
    pub(super) slots: Vec<Slot>,
    pub(super) infos: Vec<SlotInfo>,
}

impl SlotList {
    pub(super) fn measure(&self, at: usize) -> Option<Measure> {
        self.infos.get(at).map(|known| known.measure)
    }

    /// The measure of the slots with outputs at the end.
    pub(super) fn open_outputs(&self) -> &Measure {
        &self.open_outputs.1
    }

    /// All measures together, without what the provider ignores.
    pub(super) fn total(&self) -> Measure {
        self.total
            - self
                .ignored
                .map_or_else(Measure::default, |(_, ignored)| ignored)
    }

    /// The first slot for which `before` is false. Slots are in the order of their positions.
    pub(super) fn first_behind(&self, before: impl Fn(&Slot) -> bool) -> usize {
        self.slots.partition_point(before)
    }

    /// True if a system message before slot `at` is inside the conversation, not at its beginning.
    pub(super) fn has_inner_system_before(&self, at: usize) -> bool {
        let mut numbered = self.systems.iter().enumerate();
        let inner = numbered.find(|(number, slot)| number != *slot);
        inner.is_some_and(|(_, slot)| *slot < at)
    }

    /// Adds a slot at the end.
    pub(super) fn push(&mut self, slot: Slot, known: SlotInfo) {
        work::step(1);
        let at = self.slots.len();
        // Any other message ends the run of outputs at the end.
        if slot.message.has_outputs() {
            self.open_outputs.0 += 1;
            self.open_outputs.1 += known.measure;
        } else {
            self.open_outputs = Default::default();
        }
        if matches!(slot.source, MessageSource::Inserted(_)) {
            self.inserted.push(at);
        }
        if has_reasoning(&slot.message) {
            self.thoughts.push(at);
        }
        if slot.message.has_part_with(Treatment::Boundary) {
            self.ignored = Some((at, self.total - self.system));
        }
        if slot.message.role == Role::System {
            self.systems.push(at);
            self.system += known.measure;
        }
        self.total += known.measure;
        self.edited += usize::from(!known.as_it_came);
        self.infos.push(known);
        self.slots.push(slot);
    }

    /// Cuts off the slots from `at` on.
    pub(super) fn cut_off(&mut self, at: usize) -> RemovedTail {
        let at = at.min(self.slots.len());
        let are_open = at + self.open_outputs.0 >= self.slots.len();
        let slots = self.slots.split_off(at);
        let known = self.infos.split_off(at);
        let measure: Measure = known.iter().map(|known| known.measure).sum();
        self.total -= measure;
        let systems = slots
            .iter()
            .zip(&known)
            .filter(|(slot, _)| slot.message.role == Role::System);
        self.system -= systems.map(|(_, known)| known.measure).sum();
        if self.ignored.is_some_and(|(slot, _)| slot >= at) {
            self.ignored = self.ignored_before(at);
        }
        self.edited -= known.iter().filter(|known| !known.as_it_came).count();
        truncate_below(&mut self.inserted, at);
        truncate_below(&mut self.thoughts, at);
        truncate_below(&mut self.systems, at);
        // If only open outputs are cut off, their sum can be subtracted. Otherwise the outputs in
        // front of the cut become the open ones.
        if are_open {
            self.open_outputs.0 -= slots.len();
            self.open_outputs.1 -= measure;
        } else {
            self.open_outputs = self.outputs_at_end();
        }
        RemovedTail {
            slots,
            infos: known,
        }
    }

    /// Puts slots behind the others.
    pub(super) fn extend(&mut self, end: RemovedTail) {
        for (slot, known) in end.slots.into_iter().zip(end.infos) {
            self.push(slot, known);
        }
    }

    /// Shows the slot at `at` as `message`, which differs from the log, and has outputs and
    /// reasoning exactly if the previous one had.
    pub(super) fn show(&mut self, at: usize, message: Arc<Message>, measure: Measure) {
        let is_open = at + self.open_outputs.0 >= self.slots.len();
        let (Some(slot), Some(known)) = (self.slots.get_mut(at), self.infos.get_mut(at)) else {
            return;
        };
        self.total -= known.measure;
        self.total += measure;
        if is_open {
            self.open_outputs.1 -= known.measure;
            self.open_outputs.1 += measure;
        }
        self.edited += usize::from(known.as_it_came);
        *known = SlotInfo {
            measure,
            as_it_came: false,
        };
        slot.message = message;
    }

    /// The newest slot before `end` with a summary of the provider, and what it ignores for that.
    fn ignored_before(&self, end: usize) -> Option<(usize, Measure)> {
        let slots = self.slots.get(..end)?;
        let is_boundary = |slot: &Slot| slot.message.has_part_with(Treatment::Boundary);
        let newest = slots.iter().rposition(is_boundary)?;
        let infos = slots.iter().zip(&self.infos).take(newest);
        let said = infos.filter(|(slot, _)| slot.message.role != Role::System);
        Some((newest, said.map(|(_, known)| known.measure).sum()))
    }

    fn outputs_at_end(&self) -> (usize, Measure) {
        let newest_first = self.slots.iter().zip(&self.infos).rev();
        let open = newest_first.take_while(|(slot, _)| {
            work::step(1);
            slot.message.has_outputs()
        });
        open.fold(Default::default(), |(count, sum), (_, known)| {
            (count + 1, sum + known.measure)
        })
    }
}

/// Removes the numbers from `end` on from a list in rising order.
fn truncate_below(list: &mut Vec<usize>, end: usize) {
    list.truncate(list.partition_point(|at| *at < end));
}
