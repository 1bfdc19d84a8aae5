//! An index of the outputs of a window, to find the oldest ones without walking all of them.

use std::borrow::{Borrow, Cow};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::slice;
use std::sync::Arc;

use trimtab_model::rounds::{Pairing, PartPosition, RoundCall};
use trimtab_model::{Call, Message, Output, work};

use super::prefix::PrefixCut;
use super::retention::written_as_string;
use super::trim::{LARGE_SAVING, estimate, saving};
use crate::observation::observed;

/// An output that the model sees, with its figures.
#[derive(Clone, Debug)]
pub(crate) struct IndexedOutput {
    pub(crate) place: PartPosition,
    /// The tool's name, from the output or from the call that it answers; may be empty.
    pub(crate) tool: Arc<str>,
    pub(crate) tokens: u64,
    /// The tokens that a placeholder would save; 0 if it may not become one.
    pub(crate) saves: u64,
    /// Its characters if its end may be cut off; otherwise 0.
    pub(crate) chars: usize,
    /// True if it is an observation.
    pub(crate) is_observation: bool,
    /// True if a program reads it or if it loads a tool, so that it must be whole.
    pub(crate) is_whole: bool,
}

/// The outputs of some messages, in order.
#[derive(Debug, Default)]
pub(crate) struct OutputIndex {
    /// The outputs that the model sees.
    outputs: Vec<IndexedOutput>,
    /// The sum of their tokens.
    pub(super) tokens: u64,
    /// What a placeholder saves, for the outputs that may become one: those that save much, and
    /// those that save little.
    pub(super) large: BTreeMap<PartPosition, u64>,
    pub(super) small: BTreeMap<PartPosition, u64>,
    /// The outputs whose end may be cut off, by their characters.
    pub(super) by_chars: BTreeSet<(usize, PartPosition)>,
    pub(super) newest: NewestOutputs,
}

/// The outputs that no plan shortens, because the model has not used them yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewestOutputs {
    /// The outputs of the newest round that has any.
    round: Arc<[PartPosition]>,
    /// The last output, whatever it answers.
    last: Option<PartPosition>,
    /// The last observation.
    observation: Option<PartPosition>,
}

impl NewestOutputs {
    /// The newest outputs of paired messages, the first of which has number `from`.
    fn of<M: Borrow<Message>>(messages: &[M], pairing: &Pairing, from: usize) -> Self {
        let behind = |position: PartPosition| PartPosition {
            message: position.message + from,
            ..position
        };
        let outputs = |calls: &[RoundCall]| -> Arc<[PartPosition]> {
            let outputs = calls.iter().filter_map(|call| call.output);
            outputs.map(behind).collect()
        };
        let rounds = pairing.rounds.iter().rev();
        let mut rounds = rounds.map(|round| outputs(&round.calls));
        let observation = messages.iter().enumerate().rev().find_map(|(at, message)| {
            let (part, _) = observed(message.borrow())?;
            Some(behind(PartPosition { message: at, part }))
        });
        let last = pairing.outputs.iter().map(|(place, _)| *place).max();
        Self {
            round: rounds.find(|round| !round.is_empty()).unwrap_or_default(),
            last: last.map(behind),
            observation,
        }
    }

    /// The newest outputs if the messages of `later` follow.
    pub(super) fn followed_by(&self, later: Self) -> Self {
        let round = if later.round.is_empty() {
            Arc::clone(&self.round)
        } else {
            later.round
        };
        Self {
            round,
            last: later.last.or(self.last),
            observation: later.observation.or(self.observation),
        }
    }

    pub(super) fn places(&self) -> HashSet<PartPosition> {
        match self.last {
            // The last output can be outside the newest round, if it came late.
            Some(last) => self.round.iter().copied().chain([last]).collect(),
            // An agent that has outputs sends no observations.
            None => self.observation.into_iter().collect(),
        }
    }
}

impl OutputIndex {
    /// Adds the outputs of messages after the others; the first of these has number `from`. Returns
    /// what [`take_back`](Self::take_back) needs if they change later.
    pub(crate) fn extend<M: Borrow<Message>>(
        &mut self,
        messages: &[M],
        pairing: &Pairing,
        from: usize,
    ) -> NewestOutputs {
        for output in indexed(messages, pairing, from) {
            self.insert(&output);
            self.outputs.push(output);
        }
        let newest = NewestOutputs::of(messages, pairing, from);
        let newest = self.newest.followed_by(newest);
        std::mem::replace(&mut self.newest, newest)
    }

    /// Removes the outputs of the messages from number `from` on; `newest` is what `extend`
    /// returned for them.
    pub(crate) fn take_back(&mut self, from: usize, newest: NewestOutputs) {
        let first = self.first_from(from);
        for output in self.outputs.split_off(first) {
            self.remove(&output);
        }
        self.newest = newest;
    }

    /// Updates the message at number `at`, which has the same outputs at the same places.
    pub(crate) fn show(&mut self, at: usize, message: &Message) {
        let mut number = self.first_from(at);
        while let Some(old) = self
            .outputs
            .get(number)
            .filter(|old| old.place.message == at)
        {
            let old = old.clone();
            number += 1;
            let Some(shown) = output_at(message, old.place.part) else {
                continue;
            };
            let tool = shown
                .tool
                .as_deref()
                .map_or_else(|| Arc::clone(&old.tool), Arc::from);
            let new = IndexedOutput::new(message, old.place, &shown, tool, old.is_whole);
            self.remove(&old);
            self.insert(&new);
            if let Some(output) = self.outputs.get_mut(number - 1) {
                *output = new;
            }
        }
    }

    /// The outputs from message number `from` on.
    pub(super) fn outputs_from(&self, from: usize) -> slice::Iter<'_, IndexedOutput> {
        let outputs = self.outputs.get(self.first_from(from)..);
        outputs.unwrap_or_default().iter()
    }

    /// The index of the first output from message number `from` on.
    fn first_from(&self, from: usize) -> usize {
        self.outputs
            .partition_point(|output| output.place.message < from)
    }

    pub(super) fn find(&self, position: PartPosition) -> Option<&IndexedOutput> {
        let found = self
            .outputs
            .binary_search_by_key(&position, |output| output.place);
        self.outputs.get(found.ok()?)
    }

    fn insert(&mut self, output: &IndexedOutput) {
        work::step(1);
        self.tokens += output.tokens;
        if output.chars > 0 {
            self.by_chars.insert((output.chars, output.place));
        }
        match output.saves {
            0 => {}
            LARGE_SAVING.. => drop(self.large.insert(output.place, output.saves)),
            saves => drop(self.small.insert(output.place, saves)),
        }
    }

    fn remove(&mut self, output: &IndexedOutput) {
        work::step(1);
        self.tokens -= output.tokens;
        self.by_chars.remove(&(output.chars, output.place));
        self.large.remove(&output.place);
        self.small.remove(&output.place);
    }
}

impl IndexedOutput {
    fn new(
        message: &Message,
        position: PartPosition,
        output: &Output,
        tool: Arc<str>,
        is_whole: bool,
    ) -> Self {
        let text = output.text();
        let cuttable = written_as_string(message, output)
            .filter(|text| !is_whole && !PrefixCut::was_cut(text));
        Self {
            place: position,
            tool,
            tokens: estimate(&text),
            saves: if is_whole { 0 } else { saving(output, &text) },
            chars: cuttable.map_or(0, |text| text.chars().count()),
            // `output_at` finds an output in a message without outputs only if it is an
            // observation.
            is_observation: !message.has_outputs(),
            is_whole,
        }
    }
}

/// The outputs of paired messages that the model sees, in order.
fn indexed<M: Borrow<Message>>(
    messages: &[M],
    pairing: &Pairing,
    from: usize,
) -> Vec<IndexedOutput> {
    let found = |position: PartPosition, call: Option<&Call>| {
        let message: &Message = messages.get(position.message)?.borrow();
        let output = output_at(message, position.part).filter(|_| message.agent_visible())?;
        let called = call.map(|call| call.name.as_str());
        let tool = output.tool.as_deref().or(called).unwrap_or_default();
        let place_of_all = PartPosition {
            message: position.message + from,
            ..position
        };
        Some(IndexedOutput::new(
            message,
            place_of_all,
            &output,
            Arc::from(tool),
            output.is_for_program(call) || output.loads(),
        ))
    };
    let from_tools = pairing.outputs.iter();
    let from_tools =
        from_tools.filter_map(|(place, answer)| found(*place, pairing.call_of(messages, *answer)));
    let observations = messages.iter().enumerate().filter_map(|(at, message)| {
        let (part, _) = observed(message.borrow())?;
        found(PartPosition { message: at, part }, None)
    });
    // `first_from` and `find` search by position.
    let mut outputs: Vec<IndexedOutput> = observations.chain(from_tools).collect();
    outputs.sort_by_key(|output| output.place);
    outputs
}

/// The output in a part of a message. An observation counts as one.
pub(super) fn output_at(message: &Message, part: usize) -> Option<Cow<'_, Output>> {
    let found = message.parts.get(part)?;
    if let Some(output) = found.as_output() {
        return Some(Cow::Borrowed(output));
    }
    let (told, output) = observed(message)?;
    (told == part).then_some(Cow::Owned(output))
}
