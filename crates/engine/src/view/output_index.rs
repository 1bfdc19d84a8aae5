//! The outputs of a window in order, so that the oldest ones are found without walking all.

use std::borrow::{Borrow, Cow};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use trimtab_model::rounds::{Answer, Pairing, Place, pair};
use trimtab_model::{Message, Output, work};

use super::prefix::Prefix;
use super::retention::plain_text;
use super::trim::{LARGE_SAVING, estimate, saving};
use crate::observation::observed;

/// An output that the model sees, and what is known of it.
#[derive(Clone, Debug)]
pub(crate) struct IndexedOutput {
    pub(crate) place: Place,
    /// The tool's name, from the output or from the call that it answers; may be empty.
    pub(crate) tool: Arc<str>,
    pub(crate) tokens: u64,
    /// What a placeholder would save of it; 0 if it may not become one.
    pub(crate) saves: u64,
    /// Its characters, where its end may be cut off; else 0.
    pub(crate) chars: usize,
    /// True if the user told it.
    pub(crate) is_observation: bool,
}

/// The outputs of one tool that placeholders could stand for, with what each saves.
#[derive(Debug, Default)]
struct ToolOutputs {
    /// Those that save much, and those that save little.
    large: BTreeMap<Place, u64>,
    small: BTreeMap<Place, u64>,
    /// What all the small ones save together.
    small_saves: u64,
}

/// The outputs of some messages, in order.
#[derive(Debug, Default)]
pub(crate) struct OutputIndex {
    /// Those that the model sees.
    outputs: Vec<IndexedOutput>,
    /// Their tokens together.
    tokens: u64,
    /// How many of them are no observations.
    said_by_tools: usize,
    by_tool: HashMap<Arc<str>, ToolOutputs>,
    /// Those whose end may be cut off, by their characters.
    by_chars: BTreeSet<(usize, Place)>,
    newest: NewestOutputs,
}

/// The outputs that no plan shortens: the model has not worked with them yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewestOutputs {
    /// The outputs of the newest round that has any.
    round: Arc<[Place]>,
    /// The last output, whatever it answers.
    last: Option<Place>,
    /// The last observation.
    observation: Option<Place>,
}

impl NewestOutputs {
    /// Those of messages that were paired, the first of which is number `from`.
    fn of<M: Borrow<Message>>(messages: &[M], pairing: &Pairing, from: usize) -> Self {
        let behind = |place: Place| Place {
            message: place.message + from,
            ..place
        };
        let outputs = |calls: &[trimtab_model::rounds::CallPlace]| -> Arc<[Place]> {
            let outputs = calls.iter().filter_map(|call| call.output);
            outputs.map(behind).collect()
        };
        let rounds = pairing.rounds.iter().rev();
        let mut rounds = rounds.map(|round| outputs(&round.calls));
        let observation = messages.iter().enumerate().rev().find_map(|(at, message)| {
            let (part, _) = observed(message.borrow())?;
            Some(behind(Place { message: at, part }))
        });
        let last = pairing.outputs.iter().map(|(place, _)| *place).max();
        Self {
            round: rounds.find(|round| !round.is_empty()).unwrap_or_default(),
            last: last.map(behind),
            observation,
        }
    }

    /// Those of messages of which `later` are the newest.
    fn followed_by(&self, later: Self) -> Self {
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

    fn places(&self) -> HashSet<Place> {
        match self.last {
            Some(last) => self.round.iter().copied().chain([last]).collect(),
            // Who has outputs tells no observations.
            None => self.observation.into_iter().collect(),
        }
    }
}

impl OutputIndex {
    /// The outputs of all `messages`.
    pub(crate) fn of<M: Borrow<Message>>(messages: &[M]) -> Self {
        let mut index = Self::default();
        index.extend(messages, &pair(messages), 0);
        index
    }

    /// Adds the outputs of messages behind the others, the first of which is number `from`. Gives
    /// what to [take back](Self::take_back) if they change after all.
    pub(crate) fn extend<M: Borrow<Message>>(
        &mut self,
        messages: &[M],
        pairing: &Pairing,
        from: usize,
    ) -> NewestOutputs {
        for mut output in indexed(messages, pairing, from) {
            // One copy of each name is enough.
            if let Some((tool, _)) = self.by_tool.get_key_value(&output.tool) {
                output.tool = Arc::clone(tool);
            }
            self.insert(&output);
            self.outputs.push(output);
        }
        let newest = NewestOutputs::of(messages, pairing, from);
        let newest = self.newest.followed_by(newest);
        std::mem::replace(&mut self.newest, newest)
    }

    /// Takes out the outputs of the messages from number `from` on; `newest` is what adding
    /// those gave.
    pub(crate) fn take_back(&mut self, from: usize, newest: NewestOutputs) {
        let first = self.first_from(from);
        for output in self.outputs.split_off(first) {
            self.remove(&output);
        }
        self.newest = newest;
    }

    /// The message at number `at` is shown as `message`, with the same outputs in the same places.
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
            let new = IndexedOutput::new(message, old.place, &shown, tool);
            self.remove(&old);
            self.insert(&new);
            if let Some(output) = self.outputs.get_mut(number - 1) {
                *output = new;
            }
        }
    }

    /// The number of the first output from message number `from` on.
    fn first_from(&self, from: usize) -> usize {
        self.outputs
            .partition_point(|output| output.place.message < from)
    }

    fn find(&self, place: Place) -> Option<&IndexedOutput> {
        let found = self
            .outputs
            .binary_search_by_key(&place, |output| output.place);
        self.outputs.get(found.ok()?)
    }

    fn insert(&mut self, output: &IndexedOutput) {
        work::step(1);
        self.tokens += output.tokens;
        self.said_by_tools += usize::from(!output.is_observation);
        if output.chars > 0 {
            self.by_chars.insert((output.chars, output.place));
        }
        if output.saves > 0 {
            let of_tool = self.by_tool.entry(Arc::clone(&output.tool)).or_default();
            if output.saves >= LARGE_SAVING {
                of_tool.large.insert(output.place, output.saves);
            } else {
                of_tool.small.insert(output.place, output.saves);
                of_tool.small_saves += output.saves;
            }
        }
    }

    fn remove(&mut self, output: &IndexedOutput) {
        work::step(1);
        self.tokens -= output.tokens;
        self.said_by_tools -= usize::from(!output.is_observation);
        self.by_chars.remove(&(output.chars, output.place));
        if let Some(of_tool) = self.by_tool.get_mut(&output.tool) {
            of_tool.large.remove(&output.place);
            of_tool.small_saves -= of_tool.small.remove(&output.place).unwrap_or(0);
        }
    }
}

impl IndexedOutput {
    fn new(message: &Message, place: Place, output: &Output, tool: Arc<str>) -> Self {
        let text = output.text();
        let cuttable = plain_text(message, output).filter(|text| !Prefix::was_cut(text));
        Self {
            place,
            tool,
            tokens: estimate(&text),
            saves: saving(output, &text),
            chars: cuttable.map_or(0, |text| text.chars().count()),
            is_observation: message.outputs().next().is_none(),
        }
    }
}

/// The outputs that the model sees of messages that were paired, in order.
fn indexed<M: Borrow<Message>>(
    messages: &[M],
    pairing: &Pairing,
    from: usize,
) -> Vec<IndexedOutput> {
    let found = |place: Place, tool: Option<&str>| {
        let message: &Message = messages.get(place.message)?.borrow();
        let output = output_at(message, place.part).filter(|_| message.agent_visible())?;
        let tool = output.tool.as_deref().or(tool).unwrap_or_default();
        let place_of_all = Place {
            message: place.message + from,
            ..place
        };
        Some(IndexedOutput::new(
            message,
            place_of_all,
            &output,
            Arc::from(tool),
        ))
    };
    let said = pairing.outputs.iter();
    let said = said.filter_map(|(place, answer)| found(*place, called(messages, pairing, *answer)));
    let observations = messages.iter().enumerate().filter_map(|(at, message)| {
        let (part, _) = observed(message.borrow())?;
        found(Place { message: at, part }, None)
    });
    let mut outputs: Vec<IndexedOutput> = observations.chain(said).collect();
    outputs.sort_by_key(|output| output.place);
    outputs
}

/// The output in a part of a message. An observation is one.
fn output_at(message: &Message, part: usize) -> Option<Cow<'_, Output>> {
    let found = message.parts.get(part)?;
    if let Some(output) = found.as_output() {
        return Some(Cow::Borrowed(output));
    }
    let (told, output) = observed(message)?;
    (told == part).then_some(Cow::Owned(output))
}

fn called<'a, M: Borrow<Message>>(
    messages: &'a [M],
    pairing: &Pairing,
    answer: Answer,
) -> Option<&'a str> {
    let Answer::Answers { round, call } = answer else {
        return None;
    };
    let place = pairing.rounds.get(round)?.calls.get(call)?.call;
    let message: &Message = messages.get(place.message)?.borrow();
    let call = message.parts.get(place.part)?.as_call()?;
    Some(&call.name)
}

/// All outputs of a window: those of an index, and those of the messages behind it.
pub struct WindowOutputs<'a, M> {
    messages: &'a [M],
    index: &'a OutputIndex,
    behind: Vec<IndexedOutput>,
    newest: HashSet<Place>,
}

impl<'a, M: Borrow<Message>> WindowOutputs<'a, M> {
    /// The outputs of `messages`. Those of the first so many are in the index, the others were
    /// paired by themselves.
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
            behind: indexed(behind, pairing, in_index),
            newest: index.newest.followed_by(newest).places(),
        }
    }

    /// The outputs of messages that are all in `index`.
    pub(crate) fn indexed(messages: &'a [M], index: &'a OutputIndex) -> Self {
        Self::new(messages, index, messages.len(), &Pairing::default())
    }

    /// The tokens of all of them by the estimate of [`estimate`].
    pub fn tokens(&self) -> u64 {
        let behind = self.behind.iter().map(|output| output.tokens);
        self.index.tokens + behind.sum::<u64>()
    }

    /// The output at a place, with the message that it is in.
    pub(crate) fn get(&self, place: Place) -> Option<(&'a Message, Cow<'a, Output>)> {
        let message: &Message = self.messages.get(place.message)?.borrow();
        Some((message, output_at(message, place.part)?))
    }

    /// How many there are from message number `from` on, observations aside.
    pub(crate) fn count_from(&self, from: usize) -> usize {
        // Who has outputs tells no observations: all of these stand before the outputs.
        let outputs = self.index.outputs.len() - self.index.first_from(from);
        let behind = self
            .behind
            .iter()
            .filter(|output| output.place.message >= from);
        let behind = behind.filter(|output| !output.is_observation);
        outputs.min(self.index.said_by_tools) + behind.count()
    }

    /// The places of those from message number `from` on, observations aside, oldest first.
    pub(crate) fn places_from(&self, from: usize) -> impl Iterator<Item = Place> {
        let first = self.index.first_from(from);
        let indexed = self.index.outputs.iter().skip(first);
        let behind = self.behind.iter();
        let behind = behind.filter(move |output| output.place.message >= from);
        indexed
            .chain(behind)
            .filter(|output| !output.is_observation)
            .map(|output| output.place)
    }

    /// Those of more than so many characters whose end may be cut off, but the newest, oldest
    /// first.
    pub(crate) fn longer_than(&self, chars: usize) -> Vec<Place> {
        let from = Place {
            message: 0,
            part: 0,
        };
        let indexed = self.index.by_chars.range((chars.saturating_add(1), from)..);
        let indexed = indexed.map(|(_, place)| *place);
        let behind = self.behind.iter().filter(|output| output.chars > chars);
        let all = indexed.chain(behind.map(|output| output.place));
        let mut places: Vec<Place> = all.filter(|place| !self.newest.contains(place)).collect();
        work::step(places.len());
        places.sort_unstable();
        places
    }

    /// Those that placeholders could stand for, with what each saves, oldest first: either those
    /// that save much or those that save little. Never the newest, nor those of tools that
    /// `protect` names.
    pub(crate) fn to_trim(
        &self,
        is_large: bool,
        protect: &dyn Fn(&str) -> bool,
    ) -> impl Iterator<Item = (Place, u64)> {
        let tools = self.index.by_tool.iter();
        let tools = tools.filter(|(tool, _)| !protect(tool));
        let mut tools: Vec<_> = tools
            .map(|(_, outputs)| outputs.saving(is_large).iter().peekable())
            .collect();
        let indexed = std::iter::from_fn(move || {
            let heads = tools.iter_mut().enumerate();
            let heads = heads.filter_map(|(tool, outputs)| Some((*outputs.peek()?.0, tool)));
            let (_, tool) = heads.min()?;
            tools.get_mut(tool)?.next()
        });
        let indexed = indexed.map(|(place, saves)| (*place, *saves));
        let behind = self.behind.iter().filter(move |output| {
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

    /// What all those save together that save little by themselves.
    pub(crate) fn small_savings(&self, protect: &dyn Fn(&str) -> bool) -> u64 {
        let tools = self.index.by_tool.iter();
        let tools = tools.filter(|(tool, _)| !protect(tool));
        let indexed: u64 = tools.map(|(_, outputs)| outputs.small_saves).sum();
        let is_small = |output: &&IndexedOutput| {
            output.saves > 0 && output.saves < LARGE_SAVING && !protect(&output.tool)
        };
        let behind = self.behind.iter().filter(is_small);
        let behind = behind.filter(|output| !self.newest.contains(&output.place));
        let newest = self
            .newest
            .iter()
            .filter_map(|place| self.index.find(*place));
        let newest: u64 = newest.filter(is_small).map(|output| output.saves).sum();
        indexed - newest + behind.map(|output| output.saves).sum::<u64>()
    }
}

impl ToolOutputs {
    fn saving(&self, is_large: bool) -> &BTreeMap<Place, u64> {
        if is_large { &self.large } else { &self.small }
    }
}
