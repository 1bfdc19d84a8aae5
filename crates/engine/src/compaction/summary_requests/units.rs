//! Divides messages into units that are never split, and packs them into chunks.

use std::borrow::Borrow;
use std::ops::Range;
use std::sync::Arc;

use trimtab_model::{Dialect, Message, Part};

use super::fit::RequestBudget;
use crate::compaction::request;
use crate::normalise::{NormaliseOptions, OpenCallRepair, normalise};
use crate::removal::SafeCuts;

/// The shortest runs of messages that can be separated without splitting a round.
pub(super) fn units<M: Borrow<Message>>(messages: &[M]) -> Vec<Range<usize>> {
    let cuts = SafeCuts::of(messages);
    let starts = (0..messages.len()).filter(|at| !cuts.splits(*at));
    let starts: Vec<usize> = starts.collect();
    let ends = starts.iter().skip(1).copied().chain([messages.len()]);
    starts
        .iter()
        .zip(ends)
        .map(|(from, to)| *from..to)
        .collect()
}

/// The messages in chunks that fit, in a valid form.
pub(super) fn in_messages<M: Borrow<Message>>(
    all: &[M],
    output_limit: usize,
    dialect: Dialect,
    room: &RequestBudget<'_>,
) -> Vec<Vec<Message>> {
    let sized = units(all).into_iter().map(|unit| {
        let messages = all.get(unit).unwrap_or_default();
        let fits = within(sendable(messages, output_limit), output_limit, room);
        (room.weight(&fits), fits)
    });
    let chunks = packed(sized, room.budget);
    let chunks = chunks.into_iter().map(|units| units.concat());
    // A chunk begins and ends anywhere in the conversation, so it needs the same repairs as a
    // window.
    let valid = chunks.map(|chunk| valid(chunk, dialect));
    let valid = valid.filter(|chunk| !chunk.is_empty());
    // Repairs may have made a chunk longer.
    valid
        .map(|chunk| within(chunk, output_limit, room))
        .collect()
}

/// Cuts `messages` to what fits, as text if there are too many of them.
fn within(messages: Vec<Message>, output_limit: usize, room: &RequestBudget<'_>) -> Vec<Message> {
    room.messages(messages).unwrap_or_else(|messages| {
        let messages: Vec<&Message> = messages.iter().collect();
        vec![Message::user(room.conversation(&messages, output_limit))]
    })
}

/// The visible content of `messages` without reasoning, which only the model that wrote it may get.
fn sendable<M: Borrow<Message>>(messages: &[M], output_limit: usize) -> Vec<Message> {
    let shown = request::project_to(messages.iter().map(Borrow::borrow), output_limit);
    let without_reasoning = shown.map(|mut message: Message| {
        message
            .parts
            .retain(|part| !matches!(part, Part::Reasoning(_)));
        message
    });
    without_reasoning
        .filter(|message| !message.is_empty())
        .collect()
}

fn valid(chunk: Vec<Message>, dialect: Dialect) -> Vec<Message> {
    if chunk.is_empty() {
        return chunk;
    }
    let chunk: Vec<Arc<Message>> = chunk.into_iter().map(Arc::new).collect();
    let options = NormaliseOptions {
        habit: OpenCallRepair::Strip,
        ..NormaliseOptions::for_dialect(dialect)
    };
    let normalised = normalise(&chunk, options);
    let messages = normalised.entries.into_iter().map(|entry| entry.message);
    messages.map(Arc::unwrap_or_clone).collect()
}

/// The messages as texts that fit, each between its tags.
pub(super) fn in_text(
    all: &[&Message],
    output_limit: usize,
    room: &RequestBudget<'_>,
) -> Vec<String> {
    let room = room.without(&request::framed(""));
    let sized = units(all).into_iter().map(|unit| {
        let messages = all.get(unit).unwrap_or_default();
        let whole = request::conversation(messages.iter().copied(), output_limit);
        let weight = room.weight_of(&whole);
        if weight <= room.budget {
            return (weight, whole);
        }
        let cut = room.conversation(messages, output_limit);
        (room.weight_of(&cut), cut)
    });
    let chunks = packed(sized, room.budget);
    let texts = chunks.into_iter().map(|units| units.concat());
    let said = texts.filter(|text| !text.trim().is_empty());
    said.map(|text| request::framed(&text)).collect()
}

/// Packs as many units into each chunk as fit, in order.
fn packed<U>(units: impl Iterator<Item = (u64, U)>, budget: u64) -> Vec<Vec<U>> {
    let mut chunks: Vec<Vec<U>> = Vec::new();
    let mut left = 0;
    for (weight, unit) in units {
        match chunks.last_mut() {
            Some(chunk) if weight <= left => chunk.push(unit),
            _ => {
                // A unit that is too large by itself was cut before, so every unit fits an empty
                // chunk.
                chunks.push(vec![unit]);
                left = budget;
            }
        }
        left = left.saturating_sub(weight);
    }
    chunks
}
