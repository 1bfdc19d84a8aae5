//! Applies one more plan to a window, from its first change on.

use std::sync::Arc;

use trimtab_model::estimate::Measure;
use trimtab_model::{Dialect, Message};

use super::build::WindowBuilder;
use super::slots::{RemovedTail, SlotInfo};
use super::{InvalidWindow, Projection};
use crate::journal::EditIndex;
use crate::normalise::{MessageSource, Slot};
use crate::plan::Plan;

/// The replaced slots, to put them back: the number of settled slots before them, the first of them,
/// and the slots as they were. None if slots were only shown differently.
type ReplacedSlots = Option<(usize, usize, RemovedTail)>;

/// A slot that is shown differently, while nothing else changes.
struct ShownSlot {
    slot: usize,
    message: Arc<Message>,
    measure: Measure,
}

impl Projection {
    /// The number of the slot that shows the message at `position` of the log.
    pub(super) fn slot_number(&self, position: usize) -> Option<usize> {
        let source = MessageSource::Log(position);
        // Messages inserted before a position stand before its message.
        let before = |slot: &Slot| {
            let at = slot.source.position();
            at < position || (at == position && slot.source != source)
        };
        // Slots are in the order of positions, so a binary search is enough.
        let number = self.builder.slots.first_behind(before);
        let slot = self.slots().get(number)?;
        (slot.source == source).then_some(number)
    }

    /// Builds all slots from the log and the journal.
    pub(super) fn rebuild(&mut self) {
        self.builder = WindowBuilder::new(self.builder.options);
        for slot in self.journal.apply(&self.log) {
            let known = self.slot_info(&slot);
            self.builder.push(slot, known);
        }
    }

    /// Executes a plan on the slots.
    pub(super) fn change(&mut self, plan: &Plan) -> ReplacedSlots {
        let changes = EditIndex::of([plan]);
        // The most frequent plan only shows some outputs differently. Its cost is that of these
        // outputs.
        if let Some(shown) = self.shown_alone(&changes) {
            for one in shown {
                self.builder.show(one.slot, one.message, one.measure);
            }
            return None;
        }
        let first = self.first_changed(&changes);
        let slots = self.slots().get(first..).unwrap_or_default();
        let applied = changes.applied(slots, &self.log);
        // Slots before the first change may have to be normalised again, but they stay the same
        // slots.
        self.builder.unsettle(self.depends_on(first));
        let before = self.builder.cut_off(first);
        let settled = self.builder.settled();
        for slot in applied {
            let known = self.slot_info(&slot);
            self.builder.push(slot, known);
        }
        Some((settled, first, before))
    }

    /// The first slot whose normalisation may depend on the slot at `at`. Outputs directly before
    /// it may belong to the call that now follows them. In Messages, the place of a system message
    /// inside the conversation depends on everything around it.
    fn depends_on(&self, at: usize) -> usize {
        let is_messages = self.builder.options.dialect == Dialect::Messages;
        if is_messages && self.builder.slots.has_inner_system_before(at) {
            return 0;
        }
        let slots = self.slots().get(..at).unwrap_or_default();
        let is_only_outputs =
            |slot: &&Slot| slot.message.outputs().count() == slot.message.parts.len();
        at - slots.iter().rev().take_while(is_only_outputs).count()
    }

    /// The measure of the window with one more plan.
    pub(super) fn measure_with(&mut self, plan: &Plan) -> Result<Measure, InvalidWindow> {
        if let Some(shown) = self.shown_alone(&EditIndex::of([plan])) {
            // The window need not be built: only these measures differ.
            let mut total = self.builder.window.measures().total();
            for one in shown {
                total -= self.builder.slots.measure(one.slot).unwrap_or_default();
                total += one.measure;
            }
            return Ok(total);
        }
        let replaced = self.change(plan);
        let measured = self
            .builder
            .window()
            .map(|window| window.measures().total());
        if let Some((settled, first, slots)) = replaced {
            self.builder.cut_off(first);
            // Steps that settled meanwhile did so next to other slots.
            self.builder.unsettle(settled);
            self.builder.extend(slots);
        }
        measured
    }

    /// The slots that are shown differently, if nothing else of the window changes.
    fn shown_alone(&self, changes: &EditIndex<'_>) -> Option<Vec<ShownSlot>> {
        if !changes.only_shows() {
            return None;
        }
        let numbers = changes.messages().filter_map(|at| self.slot_number(at));
        let mut shown = Vec::new();
        for number in numbers {
            let slot = self.slots().get(number)?;
            let message = changes.edited(slot, &self.log);
            if Arc::ptr_eq(&message, &slot.message) {
                continue;
            }
            if !self.builder.is_shown_alone(number, &message) {
                return None;
            }
            let measure = Measure::of(&message);
            shown.push(ShownSlot {
                slot: number,
                message,
                measure,
            });
        }
        Some(shown)
    }

    /// The first slot that the changes affect; the number of slots if they affect none.
    fn first_changed(&self, changes: &EditIndex<'_>) -> usize {
        let slots = &self.builder.slots;
        let position = |number: usize| {
            let slot = slots.slots.get(number)?;
            Some(slot.source.position())
        };
        let shown = changes.messages().filter_map(|at| self.slot_number(at));
        let hidden = changes.hidden.first();
        let hidden =
            hidden.map(|(from, _)| slots.first_behind(|slot| slot.source.position() < *from));
        let inserted = changes.inserted.first().map(|(before, _)| {
            slots.first_behind(|slot| match slot.source {
                MessageSource::Log(at) => at < *before,
                MessageSource::Inserted(at) => at <= *before,
            })
        });
        // Withdrawals start at the front, so it is enough to look at the first inserted slot.
        let withdrawn = slots.inserted.first().copied();
        let withdrawn = withdrawn
            .filter(|number| position(*number).is_some_and(|position| changes.withdraws(position)));
        let stripped = changes.stripped.iter().find_map(|(from, to)| {
            let behind = |number: &usize| position(*number).is_some_and(|at| at < *from);
            let first = slots.thoughts.partition_point(behind);
            let number = slots.thoughts.get(first).copied();
            number.filter(|number| position(*number).is_some_and(|at| at < *to))
        });
        let others = [hidden, inserted, withdrawn, stripped];
        let first = shown.chain(others.into_iter().flatten()).min();
        first.unwrap_or(slots.slots.len())
    }

    /// What is known of a slot. An unedited message was measured at admission.
    fn slot_info(&self, slot: &Slot) -> SlotInfo {
        let at = slot.source.in_log();
        let came = at.and_then(|at| self.log.get(at).zip(self.log_measures.get(at)));
        // An edited message is a new `Arc`, so equal pointers mean that the measure still holds.
        let came = came.filter(|(message, _)| Arc::ptr_eq(message, &slot.message));
        SlotInfo {
            measure: came.map_or_else(|| Measure::of(&slot.message), |(_, measure)| *measure),
            as_it_came: came.is_some(),
        }
    }
}
