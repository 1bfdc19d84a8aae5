//! Builds a window from its slots, step by step.
//!
//! The front of the window settles: settled slots are not read again. An edit takes back the steps
//! from the first changed slot on, and everything before stays.

use std::sync::Arc;

use trimtab_model::estimate::Measure;
use trimtab_model::rounds::OutputStatus;
use trimtab_model::{Message, Role, work};

use super::slots::{RemovedTail, SlotInfo, SlotList};
use super::{InvalidWindow, Window};
use crate::budget::RegionMeasures;
use crate::normalise::{
    NormaliseOptions, Normalised, NormalisedTail, SettledHistory, SettledStep, Slot,
    normalise_after, treats_alike,
};
use crate::removal::SafeCuts;
use crate::verify::{VerifiedPart, Verifier, WindowFault};
use crate::view::WindowOutputs;
use crate::view::output_index::{NewestOutputs, OutputIndex};

/// The newest messages never settle, so that a late output among them finds its call without
/// starting over.
const UNSETTLED: usize = 8;
/// The approximate number of slots that settle in one step. An edit of one of them takes back all
/// of them.
const STEP: usize = 32;

/// Slots, and the window that they produce.
#[derive(Debug, Default)]
pub(super) struct WindowBuilder {
    pub(super) options: NormaliseOptions,
    pub(super) slots: SlotList,
    front: SettledFront,
    /// The window as it was built last.
    pub(super) window: Window,
    /// For each slot the entry that shows it unchanged, if there is one. Valid while the window is
    /// up to date.
    entry_of: Vec<Option<usize>>,
    /// The faults of the window as it was built last; none if the window is out of date.
    faults: Option<Vec<WindowFault>>,
}

/// The part of the window that is settled.
#[derive(Debug, Default)]
struct SettledFront {
    settled: SettledHistory,
    verified: VerifiedPart,
    outputs: OutputIndex,
    faults: Vec<WindowFault>,
    ends: WindowExtent,
    measures: RegionMeasures,
    steps: Vec<FrontStep>,
}

/// How far a part of the window reaches.
#[derive(Clone, Copy, Debug, Default)]
struct WindowExtent {
    slots: usize,
    entries: usize,
    repairs: usize,
    faults: usize,
    non_system: usize,
}

/// One step in which the front settled, with what is needed to take it back.
#[derive(Debug)]
struct FrontStep {
    /// The extent of the front before the step.
    previous: WindowExtent,
    /// The measures of the entries of this step.
    measures: RegionMeasures,
    settled: SettledStep,
    verified: VerifiedPart,
    outputs: NewestOutputs,
}

/// The slots cannot settle yet: one of them waits for its place, or belongs to an earlier call.
struct NotSettledYet;

impl WindowBuilder {
    /// Without any slots.
    pub(super) fn new(options: NormaliseOptions) -> Self {
        Self {
            options,
            ..Self::default()
        }
    }

    /// Adds a slot at the end.
    pub(super) fn push(&mut self, slot: Slot, known: SlotInfo) {
        self.slots.push(slot, known);
        self.faults = None;
    }

    /// Cuts off the slots from `at` on.
    pub(super) fn cut_off(&mut self, at: usize) -> RemovedTail {
        // Take back the steps first: they refer to slots that are about to go.
        self.front.take_back(at);
        self.faults = None;
        self.slots.cut_off(at)
    }

    /// How many slots are settled.
    pub(super) fn settled(&self) -> usize {
        self.front.ends.slots
    }

    /// Takes back the steps in which slots from `at` on settled.
    pub(super) fn unsettle(&mut self, at: usize) {
        self.front.take_back(at);
        self.faults = None;
    }

    /// Puts slots behind the others.
    pub(super) fn extend(&mut self, end: RemovedTail) {
        self.slots.extend(end);
        self.faults = None;
    }

    /// The window of all slots.
    pub(super) fn window(&mut self) -> Result<&Window, InvalidWindow> {
        // Deciding on one call asks for the window many times.
        if self.faults.is_none() {
            self.faults = Some(self.build());
        }
        match self.faults.as_deref() {
            None | Some([]) => Ok(&self.window),
            Some(faults) => Err(InvalidWindow {
                faults: faults.to_vec(),
            }),
        }
    }

    /// The outputs of the window as it was built last.
    pub(super) fn outputs(&self) -> WindowOutputs<'_, Slot> {
        let slots = &self.slots.slots;
        let in_index = self.front.ends.slots;
        let pairing = self.front.settled.pair(self.unsettled());
        WindowOutputs::new(slots, Some(&self.front.outputs), in_index, &pairing)
    }

    /// True if the window stays the same except for one message when the slot at `at` shows
    /// `message`. Then it can be [shown](Self::show).
    pub(super) fn is_shown_alone(&self, at: usize, message: &Message) -> bool {
        let entry = self.entry_of.get(at).copied().flatten();
        let slot = self.slots.slots.get(at);
        // What the verifier reads of a message is a part of what is compared here.
        let alike = |slot: &Slot| treats_alike(&slot.message, message);
        // `entry_of` is valid only while the window is up to date.
        self.faults.is_some() && entry.is_some() && slot.is_some_and(alike)
    }

    /// Shows the slot at `at` as `message`. Nothing else of the window changes.
    pub(super) fn show(&mut self, at: usize, message: Arc<Message>, measure: Measure) {
        let entry = self.entry_of.get(at).copied().flatten();
        let entry = entry.and_then(|entry| self.window.entries.get_mut(entry));
        let (Some(entry), Some(old)) = (entry, self.slots.measure(at)) else {
            return;
        };
        entry.message = Arc::clone(&message);
        self.window.measures.replace(&message, old, measure);
        self.front.show(at, &message, old, measure);
        self.slots.show(at, message, measure);
    }

    fn unsettled(&self) -> &[Slot] {
        let settled = self.front.ends.slots;
        self.slots.slots.get(settled..).unwrap_or_default()
    }

    fn build(&mut self) -> Vec<WindowFault> {
        // Settling first keeps short what must be normalised on every call.
        self.settle();
        let after = loop {
            let tail = self.unsettled();
            // An output may belong to a settled call. Then more steps are taken back, twice as
            // much each time, so that the total work stays linear.
            let after = normalise_after(&self.front.settled, tail, self.options, true);
            if !after.reaches_back {
                break after;
            }
            self.reach_back();
        };
        // Faults of settled slots are not found again, so they are kept with the front.
        let mut faults = self.front.faults.clone();
        let end = self.slots.slots.len();
        faults.extend(self.add_normalised(after.normalised, end).finish());
        faults
    }

    /// Takes back twice as many slots as are unsettled, because an output belongs to an earlier
    /// call.
    fn reach_back(&mut self) {
        let further = 2 * self.unsettled().len().max(UNSETTLED);
        let at = self.front.ends.slots.saturating_sub(further);
        self.front.take_back(at);
    }

    /// Appends normalised entries to the settled front, and verifies them. They show the slots
    /// before `end`.
    fn add_normalised(&mut self, normalised: Normalised, end: usize) -> Verifier<'_> {
        let WindowExtent {
            slots,
            entries,
            repairs,
            non_system: spoken,
            ..
        } = self.front.ends;
        // Everything after the settled front is written again.
        self.window.entries.truncate(entries);
        self.window.repairs.truncate(repairs);
        self.window.measures = self.front.measures;
        self.window.spoken = spoken;
        self.entry_of.truncate(slots);
        self.entry_of.resize(end, None);
        let mut verifier = Verifier::resume(self.options.dialect, &self.front.verified);
        let written = normalised.entries.iter().zip(normalised.slots);
        for (number, (entry, slot)) in (entries..).zip(written) {
            let slot = slot.map(|slot| slots + slot);
            // Entries that normalisation made or changed have no slot, and are measured here.
            let known = slot.and_then(|slot| self.slots.measure(slot));
            let measure = known.unwrap_or_else(|| Measure::of(&entry.message));
            self.window.measures.add(&entry.message, measure);
            self.window.spoken += usize::from(entry.message.role != Role::System);
            if let Some(of_slot) = slot.and_then(|slot| self.entry_of.get_mut(slot)) {
                *of_slot = Some(number);
            }
            verifier.push(&entry.message);
        }
        self.window.entries.extend(normalised.entries);
        self.window.repairs.extend(normalised.repairs);
        verifier
    }

    /// Settles slots that are old enough, so that they are not read again.
    fn settle(&mut self) {
        let tail = self.unsettled();
        // Settle in batches: a call settles nothing, or several messages at once.
        if tail.len() < 2 * UNSETTLED {
            return;
        }
        let settled = self.front.ends.slots;
        let points = settling_points(&self.front.settled, tail);
        let newest = points.last().copied();
        for point in points {
            if self.settle_to(settled + point).is_err() {
                // A system message may find its place further on, so one larger step can succeed
                // where a small one separates the message from its place.
                let newest = newest.filter(|newest| *newest > point);
                newest.map(|newest| self.settle_to(settled + newest));
                return;
            }
        }
    }

    /// Settles the slots before `end`. Fails if a message waits for a place after them, or belongs
    /// to a call before them.
    fn settle_to(&mut self, end: usize) -> Result<(), NotSettledYet> {
        let cut = end - self.front.ends.slots;
        let old = self.unsettled().get(..cut).unwrap_or_default();
        let after = normalise_after(&self.front.settled, old, self.options, false);
        if after.reaches_back {
            self.reach_back();
        }
        if after.reaches_back || after.has_waiting {
            return Err(NotSettledYet);
        }
        self.settle_step(cut, after);
        Ok(())
    }

    /// Settles the first `cut` of the unsettled slots.
    fn settle_step(&mut self, cut: usize, after: NormalisedTail) {
        let before = self.front.ends;
        let end = before.slots + cut;
        let (verified, faults) = self.add_normalised(after.normalised, end).pause();
        let settled = self.slots.slots.get(before.slots..end);
        let settled = settled.unwrap_or_default();
        let outputs = self
            .front
            .outputs
            .extend(settled, &after.pairing, before.slots);
        self.front.faults.extend(faults);
        self.front.ends = WindowExtent {
            slots: end,
            entries: self.window.entries.len(),
            repairs: self.window.repairs.len(),
            faults: self.front.faults.len(),
            non_system: self.window.spoken,
        };
        self.front.steps.push(FrontStep {
            previous: before,
            // Keep only the difference, so that an edit can subtract the step.
            measures: self.window.measures - self.front.measures,
            settled: self.front.settled.extend(after.learnt),
            verified: self.front.verified.extend(verified),
            outputs,
        });
        self.front.measures = self.window.measures;
    }
}

impl SettledFront {
    /// Takes back the steps in which slots from `at` on settled.
    fn take_back(&mut self, at: usize) {
        while self.ends.slots > at {
            let Some(step) = self.steps.pop() else {
                return;
            };
            work::step(1 + self.ends.slots - step.previous.slots);
            self.settled.take_back(step.settled);
            self.verified.take_back(step.verified);
            self.outputs.take_back(step.previous.slots, step.outputs);
            self.faults.truncate(step.previous.faults);
            self.measures = self.measures - step.measures;
            self.ends = step.previous;
        }
    }

    /// The slot at `at` is shown as `message`, and nothing else changes.
    fn show(&mut self, at: usize, message: &Message, old: Measure, new: Measure) {
        if at >= self.ends.slots {
            return;
        }
        // Correct the step that settled the slot, too. Otherwise taking it back would subtract the
        // wrong measure.
        let step = self.steps.partition_point(|step| step.previous.slots <= at);
        let step = step
            .checked_sub(1)
            .and_then(|step| self.steps.get_mut(step));
        if let Some(step) = step {
            step.measures.replace(message, old, new);
        }
        self.measures.replace(message, old, new);
        self.outputs.show(at, message);
    }
}

/// Positions in `tail` where a cut separates no output from its call, at least [`UNSETTLED`]
/// messages from its end and about [`STEP`] messages apart. The newest such position is among them.
fn settling_points(settled: &SettledHistory, tail: &[Slot]) -> Vec<usize> {
    let pairing = settled.pair(tail);
    let outputs = pairing.outputs.iter();
    // The call of an orphan may be the next message.
    let orphans = outputs.filter(|(_, answer)| *answer == OutputStatus::Orphan);
    let orphans = orphans.map(|(place, _)| (place.message, place.message + 1));
    let cuts = SafeCuts::between(tail.len(), pairing.spans().chain(orphans));
    let is_tool = |slot: &Slot| slot.message.role == Role::Tool;
    let is_point =
        |cut: &usize| !cuts.splits(*cut) && tail.get(*cut).is_some_and(|slot| !is_tool(slot));
    let newest = tail.len().saturating_sub(UNSETTLED);
    let mut points: Vec<usize> = Vec::new();
    let mut last = None;
    for cut in (1..=newest).filter(is_point) {
        last = Some(cut);
        if cut >= points.last().map_or(0, |point| *point) + STEP {
            points.push(cut);
        }
    }
    points.extend(last.filter(|last| points.last() != Some(last)));
    points
}
