//! Collects the facts of the replaced messages, each once, with its occurrences.

use std::collections::hash_map::Entry;

use foldhash::{HashMap, HashMapExt as _};
use trimtab_model::{Message, Output, Part, Ref};

use super::MissingFact;
use crate::facts::{self, Fact, FactKind};
use crate::view::figures::{first_bytes, last_bytes};
use crate::view::placeholder::{is_about_refs, looks_like_ref, without_markers};

/// The bytes of all outputs together that are read: searching for facts must cost less than reading
/// the conversation did. The rest can be retrieved by its ref.
const READ_IN_ALL: usize = 128 << 10;
/// The minimum and maximum of bytes at either end of one output that are read.
const READ: (usize, usize) = (256, 64 << 10);
/// An output with more facts is a listing. To occur in a listing means little.
const LISTING: usize = 60;
/// Names of at least this many bytes cannot be guessed.
const UNGUESSABLE: usize = 6;

/// The place where a fact occurs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FactSource {
    User,
    Summary,
    Arguments,
    AssistantText,
    Output,
}

#[derive(Clone, Copy)]
struct SeenFact<'m> {
    kind: FactKind,
    /// The newest message that has it.
    message: usize,
    /// The number of messages that contain it.
    messages: u32,
    weight: u32,
    stored: Option<&'m Ref>,
    /// True while it occurs in one output only, which is not a listing.
    rare: bool,
}

pub(super) struct GatheredFacts<'m> {
    /// The bytes at either end of an output that are read.
    read: usize,
    seen: HashMap<&'m str, SeenFact<'m>>,
    /// The facts of the current part.
    part: Vec<(Fact<'m>, bool)>,
}

impl<'m> GatheredFacts<'m> {
    /// An empty collection for messages with this many outputs.
    pub(super) fn with_outputs(outputs: usize) -> Self {
        let share = READ_IN_ALL / 2 / outputs.max(1);
        Self {
            read: share.clamp(READ.0, READ.1),
            seen: HashMap::new(),
            part: Vec::new(),
        }
    }

    pub(super) fn read(&mut self, at: usize, message: &'m Message) {
        let place = if message.is_summary() {
            FactSource::Summary
        } else if message.is_real_user() {
            FactSource::User
        } else {
            FactSource::AssistantText
        };
        for part in &message.parts {
            match part {
                Part::Text(text) if place == FactSource::Summary => {
                    let lines = text.text.lines().filter(|line| !is_about_refs(line));
                    // Earlier facts are marked as quotations.
                    lines.for_each(|line| self.extract(line.trim_start_matches("> ")));
                    self.count_part(at, place, None);
                }
                Part::Text(text) => {
                    self.extract(&text.text);
                    if place == FactSource::User {
                        facts::constraints(&text.text, &mut |fact| self.part.push((fact, false)));
                    }
                    self.count_part(at, place, None);
                }
                Part::Call(call) => {
                    self.extract(&call.arguments);
                    facts::commands(&call.name, &call.arguments, &mut |fact| {
                        self.part.push((fact, false));
                    });
                    self.count_part(at, FactSource::Arguments, None);
                }
                Part::Output(output) => self.output(at, output),
                Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => {}
            }
        }
    }

    fn output(&mut self, at: usize, output: &'m Output) {
        for text in output.content.iter().filter_map(Part::as_text) {
            for piece in head_and_tail(text, self.read)
                .into_iter()
                .flat_map(without_markers)
            {
                self.extract(piece);
            }
        }
        self.count_part(at, FactSource::Output, output.stored.as_ref());
    }

    /// Extracts the facts of `text`, each with whether it occurs in an error line.
    fn extract(&mut self, text: &'m str) {
        // An error line is reported before the facts behind its error word, so their place in it is
        // known.
        let mut error = 0..0;
        facts::extract(text, &mut |fact| {
            if fact.kind == FactKind::Error {
                error = fact.at..fact.at + fact.text.len();
            }
            self.part.push((fact, error.contains(&fact.at)));
        });
    }

    /// Adds the facts of the current part.
    fn count_part(&mut self, at: usize, place: FactSource, stored: Option<&'m Ref>) {
        let listing = self.part.len() > LISTING;
        for (fact, in_error) in self.part.drain(..) {
            // Refs come from our own markers, and from the calls that read them.
            if place != FactSource::User && looks_like_ref(fact.text) {
                continue;
            }
            let weight = fact_weight(fact.kind, place, in_error);
            let rare = !listing && place == FactSource::Output;
            match self.seen.entry(fact.text) {
                Entry::Vacant(entry) => {
                    entry.insert(SeenFact {
                        kind: fact.kind,
                        message: at,
                        messages: 1,
                        weight,
                        stored,
                        rare,
                    });
                }
                Entry::Occupied(mut entry) => {
                    let seen = entry.get_mut();
                    // Two occurrences in one message are no repetition.
                    if seen.message != at {
                        seen.messages += 1;
                        seen.message = at;
                    }
                    // One bit per reason, so that a reason counts once however often it occurs.
                    seen.weight |= weight;
                    seen.rare &= rare;
                    seen.stored = stored.or(seen.stored);
                }
            }
        }
    }

    /// The important facts with their weights, in no order.
    pub(super) fn that_matter(self) -> impl Iterator<Item = MissingFact<'m>> {
        self.seen.into_iter().filter_map(|(text, seen)| {
            let weight = total(text, &seen);
            (weight > 0).then_some(MissingFact {
                kind: seen.kind,
                text,
                weight,
                message: seen.message,
                stored: seen.stored,
            })
        })
    }
}

// Reasons by rank: each outweighs all lower ones together.
const CONSTRAINT: u32 = 1 << 10;
const USER: u32 = 1 << 9;
const ERROR: u32 = 1 << 8;
const CARRIED: u32 = 1 << 7;
const ARGUMENTS: u32 = 1 << 6;
/// Repeated facts, and a little more for every repetition.
const REPEATED: u32 = 1 << 5;
const RARE: u32 = 1 << 3;

/// The reasons for which the place of a fact makes it important, one bit each.
fn fact_weight(kind: FactKind, place: FactSource, in_error: bool) -> u32 {
    let place = match place {
        _ if kind == FactKind::Constraint => CONSTRAINT,
        FactSource::User => USER,
        FactSource::Summary => CARRIED,
        FactSource::Arguments => ARGUMENTS,
        FactSource::AssistantText | FactSource::Output => 0,
    };
    place | if in_error { ERROR } else { 0 }
}

fn total(text: &str, seen: &SeenFact<'_>) -> u32 {
    let again = match seen.messages {
        0 | 1 => 0,
        times => REPEATED + times.min(16),
    };
    let unguessable = text.len() >= UNGUESSABLE && text.bytes().any(|byte| byte.is_ascii_digit());
    let named = matches!(seen.kind, FactKind::Path | FactKind::Url) || unguessable;
    let rare = if seen.rare && again == 0 && named {
        RARE
    } else {
        0
    };
    seen.weight + again + rare
}

/// The head and the tail of `text` that are read; all of it and nothing if it is short.
fn head_and_tail(text: &str, read: usize) -> [&str; 2] {
    if text.len() <= 2 * read {
        return [text, ""];
    }
    [first_bytes(text, read), last_bytes(text, read)]
}
