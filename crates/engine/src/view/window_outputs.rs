//! All outputs of a window, with the queries that plans for old outputs need.

use std::borrow::{Borrow, Cow};
use std::collections::HashSet;

use trimtab_model::rounds::{Pairing, PartPosition, pair};
use trimtab_model::{Message, Output, work};

use super::output_index::{IndexedOutput, OutputIndex, output_at};

/// All outputs of a window.
pub struct WindowOutputs<'a, M> {
    messages: &'a [M],
    /// The outputs of the settled front, if the window has one.
    settled: Option<&'a OutputIndex>,
    /// The outputs of the messages after it.
    later: OutputIndex,
    newest: HashSet<PartPosition>,
}

impl<'a, M: Borrow<Message>> WindowOutputs<'a, M> {
    /// The outputs of `messages`.
    pub fn of(messages: &'a [M]) -> Self {
        Self::new(messages, None, 0, &pair(messages))
    }

    /// The outputs of `messages`. The first `in_settled` messages are in the index `settled`; the
    /// others are paired in `pairing`.
    pub(crate) fn new(
        messages: &'a [M],
        settled: Option<&'a OutputIndex>,
        in_settled: usize,
        pairing: &Pairing,
    ) -> Self {
        let mut later = OutputIndex::default();
        let behind = messages.get(in_settled..).unwrap_or_default();
        later.extend(behind, pairing, in_settled);
        let newest = match settled {
            Some(settled) => settled.newest.followed_by(later.newest.clone()),
            None => later.newest.clone(),
        };
        Self {
            messages,
            settled,
            later,
            newest: newest.places(),
        }
    }

    /// Both indexes, in the order of the messages.
    fn indexes(&self) -> impl Iterator<Item = &OutputIndex> {
        self.settled.into_iter().chain([&self.later])
    }

    /// The sum of their tokens: a quarter of their bytes.
    pub fn tokens(&self) -> u64 {
        self.indexes().map(|index| index.tokens).sum()
    }

    /// The output at a position, with its message.
    pub(crate) fn get(&self, position: PartPosition) -> Option<(&'a Message, Cow<'a, Output>)> {
        let message: &Message = self.messages.get(position.message)?.borrow();
        Some((message, output_at(message, position.part)?))
    }

    /// The outputs of a message, each with the name of its tool if its call is known.
    pub(crate) fn named_in(&self, message: usize) -> Vec<Output> {
        let is_inside = |output: &&IndexedOutput| output.place.message == message;
        let indexes = self.indexes();
        let found = indexes.flat_map(|index| index.outputs_from(message).take_while(is_inside));
        let named = found.filter_map(|indexed| {
            let output = self.get(indexed.place)?.1.into_owned();
            let called = Some(indexed.tool.to_string()).filter(|tool| !tool.is_empty());
            let tool = output.tool.clone().or(called);
            Some(Output { tool, ..output })
        });
        named.collect()
    }

    /// The positions of the outputs from message number `from` on, oldest first, without
    /// observations and those that must be whole.
    pub(crate) fn places_from(&self, from: usize) -> impl Iterator<Item = PartPosition> {
        let outputs = self
            .indexes()
            .flat_map(move |index| index.outputs_from(from));
        let from_tools = outputs.filter(|output| !output.is_observation && !output.is_whole);
        from_tools.map(|output| output.place)
    }

    /// The outputs of more than `chars` characters whose end may be cut off, except the newest,
    /// oldest first.
    pub(crate) fn longer_than(&self, chars: usize) -> Vec<PartPosition> {
        // The smallest position, so that the range begins with the first output of more characters.
        let first = PartPosition {
            message: 0,
            part: 0,
        };
        let longer = (chars.saturating_add(1), first)..;
        let all = self.indexes();
        let all = all.flat_map(|index| index.by_chars.range(longer.clone()));
        let old = all.map(|(_, place)| *place);
        let mut places: Vec<PartPosition> =
            old.filter(|place| !self.newest.contains(place)).collect();
        work::step(places.len());
        places.sort_unstable();
        places
    }

    /// The outputs that may become placeholders, with what each saves, oldest first: either those
    /// that save much or those that save little. Never the newest, nor those of tools that
    /// `protect` names.
    pub(crate) fn to_trim<'s>(
        &'s self,
        is_large: bool,
        protect: &'s dyn Fn(&str) -> bool,
    ) -> impl Iterator<Item = (PartPosition, u64)> + 's {
        let found = self.indexes().flat_map(move |index| {
            let saving = if is_large { &index.large } else { &index.small };
            saving
                .iter()
                .map(move |(place, saves)| (index, *place, *saves))
        });
        found.filter_map(|(index, place, saves)| {
            work::step(1);
            let is_protected = || {
                index
                    .find(place)
                    .is_some_and(|output| protect(&output.tool))
            };
            (!self.newest.contains(&place) && !is_protected()).then_some((place, saves))
        })
    }
}
