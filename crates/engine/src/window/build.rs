//! Builds a window from its slots, step by step: the front of it settles.

use std::sync::Arc;

use trimtab_model::estimate::Measure;
use trimtab_model::rounds::Answer;
use trimtab_model::{Message, Role};

use super::{Invalid, Window};
use crate::budget::Measures;
use crate::normalise::{Normalised, Options, Reach, Settled, Slot, normalise_after};
use crate::verify::{Fault, Verified, Verifier};

/// How many of the newest messages never settle, so that a late output among them finds its
/// call without starting over.
const UNSETTLED: usize = 8;

/// Slots, and the window that they make.
#[derive(Debug, Default)]
pub(super) struct WindowBuilder {
    options: Options,
    /// The log with the journal's edits, not yet normalised.
    slots: Vec<Slot>,
    /// The measure of each slot: a message is counted once.
    measured: Vec<Measure>,
    /// All of them together.
    total: Measure,
    /// Those at the end that hold outputs.
    open_outputs: Measure,
    front: Front,
    window: Window,
    /// What is wrong with the window as it was built last; none if it is stale.
    faults: Option<Vec<Fault>>,
}

/// The part of the window that is settled.
#[derive(Debug, Default)]
struct Front {
    settled: Settled,
    verified: Verified,
    slots: usize,
    entries: usize,
    repairs: usize,
    faults: Vec<Fault>,
    measures: Measures,
    spoken: usize,
}

impl WindowBuilder {
    /// For slots with their measures.
    pub(super) fn new(options: Options, slots: Vec<Slot>, measured: Vec<Measure>) -> Self {
        let open = slots.iter().zip(&measured).rev();
        let open = open.take_while(|(slot, _)| has_outputs(&slot.message));
        Self {
            options,
            total: measured.iter().copied().sum(),
            open_outputs: open.map(|(_, measure)| *measure).sum(),
            slots,
            measured,
            ..Self::default()
        }
    }

    pub(super) fn options(&self) -> Options {
        self.options
    }

    pub(super) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// What all slots take together.
    pub(super) fn total(&self) -> &Measure {
        &self.total
    }

    /// What the slots at the end take that hold outputs.
    pub(super) fn open_outputs(&self) -> &Measure {
        &self.open_outputs
    }

    /// Adds a slot at the end.
    pub(super) fn push(&mut self, slot: Slot, measure: Measure) {
        if has_outputs(&slot.message) {
            self.open_outputs += measure;
        } else {
            self.open_outputs = Measure::default();
        }
        self.total += measure;
        self.measured.push(measure);
        self.slots.push(slot);
        self.faults = None;
    }

    /// Shows the last slot as `message`.
    pub(super) fn replace_last(&mut self, message: Arc<Message>) {
        let (Some(mut slot), Some(measure)) = (self.slots.pop(), self.measured.pop()) else {
            return;
        };
        self.total -= measure;
        if has_outputs(&slot.message) {
            self.open_outputs -= measure;
        }
        let measure = Measure::of(&message);
        slot.message = message;
        self.push(slot, measure);
    }

    /// The window of all slots.
    pub(super) fn window(&mut self) -> Result<&Window, Invalid> {
        // Asked for again and again while one call is decided on.
        if self.faults.is_none() {
            self.faults = Some(self.build());
        }
        match self.faults.as_deref() {
            None | Some([]) => Ok(&self.window),
            Some(faults) => Err(Invalid {
                faults: faults.to_vec(),
            }),
        }
    }

    /// The window as it was built last.
    pub(super) fn built(&self) -> &Window {
        &self.window
    }

    fn build(&mut self) -> Vec<Fault> {
        self.settle();
        let after = loop {
            let tail = self.slots.get(self.front.slots..).unwrap_or_default();
            let after = normalise_after(&self.front.settled, tail, self.options, Reach::End);
            if !after.reaches_back {
                break after;
            }
            self.front = Front::default();
        };
        let mut faults = self.front.faults.clone();
        faults.extend(self.take(after.normalised).finish());
        faults
    }

    /// Puts what was normalised behind the settled front, and verifies it.
    fn take(&mut self, normalised: Normalised) -> Verifier<'_> {
        self.window.entries.truncate(self.front.entries);
        self.window.repairs.truncate(self.front.repairs);
        self.window.measures = self.front.measures;
        self.window.spoken = self.front.spoken;
        let mut verifier = Verifier::resume(self.options.dialect, &self.front.verified);
        for (entry, slot) in normalised.entries.iter().zip(normalised.slots) {
            let known = slot.and_then(|slot| self.measured.get(self.front.slots + slot));
            let measure = known
                .copied()
                .unwrap_or_else(|| Measure::of(&entry.message));
            self.window.measures.add(&entry.message, measure);
            self.window.spoken += usize::from(entry.message.role != Role::System);
            verifier.push(&entry.message);
        }
        self.window.entries.extend(normalised.entries);
        self.window.repairs.extend(normalised.repairs);
        verifier
    }

    /// Settles what is old enough, so that it is not looked at again.
    fn settle(&mut self) {
        let tail = self.slots.get(self.front.slots..).unwrap_or_default();
        if tail.len() < 2 * UNSETTLED {
            return;
        }
        let Some(cut) = settling_point(&self.front.settled, tail) else {
            return;
        };
        let old = tail.get(..cut).unwrap_or_default();
        let after = normalise_after(&self.front.settled, old, self.options, Reach::Middle);
        if after.reaches_back {
            self.front = Front::default();
            return;
        }
        if after.waits {
            return;
        }
        let (read, faults) = self.take(after.normalised).pause();
        self.front.settled.extend(after.learnt);
        self.front.verified.extend(read);
        self.front.faults.extend(faults);
        self.front.slots += cut;
        self.front.entries = self.window.entries.len();
        self.front.repairs = self.window.repairs.len();
        self.front.measures = self.window.measures;
        self.front.spoken = self.window.spoken;
    }
}

/// The newest place in `tail`, at least [`UNSETTLED`] messages from its end, where a cut
/// separates no output from its call.
fn settling_point(settled: &Settled, tail: &[Slot]) -> Option<usize> {
    let pairing = settled.pair(tail);
    let mut splits = vec![0i64; tail.len() + 1];
    let mut forbid = |from: usize, to: usize| {
        if let Some(at) = splits.get_mut(from) {
            *at += 1;
        }
        if let Some(at) = splits.get_mut(to) {
            *at -= 1;
        }
    };
    for (from, to) in pairing.spans() {
        forbid(from + 1, to + 1);
    }
    for (place, answer) in &pairing.outputs {
        // The call of an orphan may be the next message.
        if *answer == Answer::Orphan {
            forbid(place.message + 1, place.message + 2);
        }
    }
    let mut open = 0;
    let newest = tail.len().saturating_sub(UNSETTLED);
    let mut point = None;
    for (cut, (slot, splits)) in tail.iter().zip(splits).enumerate().take(newest + 1) {
        open += splits;
        if cut > 0 && open == 0 && slot.message.role != Role::Tool {
            point = Some(cut);
        }
    }
    point
}

fn has_outputs(message: &Message) -> bool {
    message.outputs().next().is_some()
}
