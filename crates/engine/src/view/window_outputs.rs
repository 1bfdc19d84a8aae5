//! All outputs of a window, with the queries that plans for old outputs need.

use std::borrow::{Borrow, Cow};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet, btree_map};

use trimtab_model::rounds::{Pairing, PartPosition};
use trimtab_model::{Message, Output, work};

use super::output_index::{IndexedOutput, NewestOutputs, OutputIndex, indexed, output_at};
use super::trim::LARGE_SAVING;

/// All outputs of a window: those in an index, and those of the messages after it.
pub struct WindowOutputs<'a, M> {
    messages: &'a [M],
    index: &'a OutputIndex,
    later: Vec<IndexedOutput>,
    newest: HashSet<PartPosition>,
}

impl<'a, M: Borrow<Message>> WindowOutputs<'a, M> {
    /// The outputs of `messages`. The first `in_index` messages are in the index; the others are
    /// paired in `pairing`.
    pub(crate) fn new(
        messages: &'a [M],
        index: &'a OutputIndex,
        in_index: usize,
        pairing: &Pairing,
    ) -> Self {
        let behind = messages.get(in_index..).unwrap_or_default();
        let newest = NewestOutputs::of(behind, pairing, in_index);
        Self {
            messages,
            index,
            later: indexed(behind, pairing, in_index),
            newest: index.newest.followed_by(newest).places(),
        }
    }

    /// The outputs of messages that are all in `index`.
    pub fn indexed(messages: &'a [M], index: &'a OutputIndex) -> Self {
        Self::new(messages, index, messages.len(), &Pairing::default())
    }

    /// The sum of their tokens: a quarter of their bytes.
    pub fn tokens(&self) -> u64 {
        let behind = self.later.iter().map(|output| output.tokens);
        self.index.tokens + behind.sum::<u64>()
    }

    /// The output at a position, with its message.
    pub(crate) fn get(&self, position: PartPosition) -> Option<(&'a Message, Cow<'a, Output>)> {
        let message: &Message = self.messages.get(position.message)?.borrow();
        Some((message, output_at(message, position.part)?))
    }

    /// The outputs of a message, each with the name of its tool if its call is known.
    pub(crate) fn named_in(&self, message: usize) -> Vec<Output> {
        let first = self.index.first_from(message);
        let indexed = self.index.outputs.iter().skip(first);
        // Both lists are in the order of positions. A search from their start for each message would
        // be quadratic.
        let later = |output: &IndexedOutput| output.place.message < message;
        let later = self.later.partition_point(later);
        let later = self.later.iter().skip(later);
        let is_inside = |output: &&IndexedOutput| output.place.message == message;
        let all = indexed
            .take_while(is_inside)
            .chain(later.take_while(is_inside));
        let named = all.filter_map(|indexed| {
            let output = self.get(indexed.place)?.1.into_owned();
            let called = Some(indexed.tool.to_string()).filter(|tool| !tool.is_empty());
            let tool = output.tool.clone().or(called);
            Some(Output { tool, ..output })
        });
        named.collect()
    }

    /// The number of outputs from message number `from` on, without observations.
    pub(crate) fn count_from(&self, from: usize) -> usize {
        // An agent that has outputs sends no observations, so all observations come before the
        // outputs.
        let outputs = self.index.outputs.len() - self.index.first_from(from);
        let behind = self
            .later
            .iter()
            .filter(|output| output.place.message >= from);
        let behind = behind.filter(|output| !output.is_observation);
        outputs.min(self.index.said_by_tools) + behind.count()
    }

    /// The positions of outputs from message number `from` on, without observations, oldest first.
    pub(crate) fn places_from(&self, from: usize) -> impl Iterator<Item = PartPosition> {
        let first = self.index.first_from(from);
        let indexed = self.index.outputs.iter().skip(first);
        let behind = self.later.iter();
        let behind = behind.filter(move |output| output.place.message >= from);
        indexed
            .chain(behind)
            .filter(|output| !output.is_observation)
            .map(|output| output.place)
    }

    /// The outputs of more than `chars` characters whose end may be cut off, except the newest,
    /// oldest first.
    pub(crate) fn longer_than(&self, chars: usize) -> Vec<PartPosition> {
        // The smallest position, so that the range begins with the first output of more characters.
        let from = PartPosition {
            message: 0,
            part: 0,
        };
        let indexed = self.index.by_chars.range((chars.saturating_add(1), from)..);
        let indexed = indexed.map(|(_, place)| *place);
        let behind = self.later.iter().filter(|output| output.chars > chars);
        let all = indexed.chain(behind.map(|output| output.place));
        let mut places: Vec<PartPosition> =
            all.filter(|place| !self.newest.contains(place)).collect();
        work::step(places.len());
        places.sort_unstable();
        places
    }

    /// The outputs that may become placeholders, with what each saves, oldest first: either those
    /// that save much or those that save little. Never the newest, nor those of tools that
    /// `protect` names.
    pub(crate) fn to_trim(
        &self,
        is_large: bool,
        protect: &dyn Fn(&str) -> bool,
    ) -> impl Iterator<Item = (PartPosition, u64)> {
        let tools = self.index.by_tool.iter();
        let tools = tools.filter(|(tool, _)| !protect(tool));
        let mut tools: Vec<_> = tools
            .map(|(_, outputs)| outputs.saving(is_large).iter())
            .collect();
        // Merges the tools with a heap: clients choose the number of tools, so looking at all of
        // them for each output would be quadratic.
        let mut oldest: BinaryHeap<_> = (0..tools.len())
            .filter_map(|tool| next_of(&mut tools, tool))
            .collect();
        let indexed = std::iter::from_fn(move || {
            let Reverse((place, saves, tool)) = oldest.pop()?;
            oldest.extend(next_of(&mut tools, tool));
            Some((place, saves))
        });
        let behind = self.later.iter().filter(move |output| {
            let is_of_this_size = (output.saves >= LARGE_SAVING) == is_large;
            output.saves > 0 && is_of_this_size && !protect(&output.tool)
        });
        indexed
            .chain(behind.map(|output| (output.place, output.saves)))
            .filter(|(place, _)| {
                work::step(1);
                !self.newest.contains(place)
            })
    }

    /// The sum of what small outputs save.
    pub(crate) fn small_savings(&self, protect: &dyn Fn(&str) -> bool) -> u64 {
        let tools = self.index.by_tool.iter();
        let tools = tools.filter(|(tool, _)| !protect(tool));
        let indexed: u64 = tools.map(|(_, outputs)| outputs.small_saves).sum();
        let is_small = |output: &&IndexedOutput| {
            output.saves > 0 && output.saves < LARGE_SAVING && !protect(&output.tool)
        };
        let behind = self.later.iter().filter(is_small);
        let behind = behind.filter(|output| !self.newest.contains(&output.place));
        // The index contains the newest outputs too, which may not be trimmed.
        let newest = self
            .newest
            .iter()
            .filter_map(|place| self.index.find(*place));
        let newest: u64 = newest.filter(is_small).map(|output| output.saves).sum();
        indexed - newest + behind.map(|output| output.saves).sum::<u64>()
    }
}

/// The next output of a tool, ordered by its position.
fn next_of(
    tools: &mut [btree_map::Iter<'_, PartPosition, u64>],
    tool: usize,
) -> Option<Reverse<(PartPosition, u64, usize)>> {
    let (place, saves) = tools.get_mut(tool)?.next()?;
    Some(Reverse((*place, *saves, tool)))
}
