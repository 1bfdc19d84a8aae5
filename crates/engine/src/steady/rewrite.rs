//! One batch of reductions at a switch point.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::sync::Arc;

use trimtab_model::estimate::Measure;
use trimtab_model::{Message, Output, Part, Ref};

use super::arithmetic::Account;
use super::block::{self, Line};
use super::card::{BYTES_PER_TOKEN, card};
use super::names::Known;
use super::settings::{Steady, percent};
use super::situation::Situation;
use super::survey::{Piece, Seen, Segment, Survey};
use crate::normalise::{Slot, Source};
use crate::plan::Edit;
use crate::view::structure::{Cut, cut};

/// What a rewrite has to gain, in percent of the room beside what always stays.
const LEAST_GAIN: u64 = 5;

/// A batch of reductions. What it hides has to be stored before it is carried out.
#[derive(Clone, Debug)]
pub struct Rewrite {
    edits: Vec<Edit>,
    hides: Option<Hides>,
    account: Account,
}

#[derive(Clone, Debug)]
struct Hides {
    messages: Vec<Arc<Message>>,
    archive: String,
    lines: Vec<Line>,
    bytes: usize,
    before: usize,
}

impl Rewrite {
    /// What is hidden, as text: to be stored, and its ref given to [`finish`](Self::finish).
    pub fn archive(&self) -> Option<&str> {
        self.hides.as_ref().map(|hides| hides.archive.as_str())
    }

    /// The messages that are hidden, oldest first.
    pub fn hidden(&self) -> &[Arc<Message>] {
        self.hides.as_ref().map_or(&[], |hides| &hides.messages)
    }

    /// What it costs and saves.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// The edits. Without a ref nothing is hidden, and the window may stay above its mark.
    pub fn finish(self, archived: Option<&Ref>) -> Vec<Edit> {
        let mut edits = self.edits;
        match (self.hides, archived) {
            (Some(hides), Some(archived)) => edits.push(Edit::Insert {
                before: hides.before,
                message: block::block(archived, &hides.lines, hides.bytes),
            }),
            (Some(_), None) => edits.retain(|edit| matches!(edit, Edit::Show { .. })),
            (None, _) => {}
        }
        edits
    }
}

impl Steady {
    /// The reductions that bring a window down to its low-water mark; none if there is nothing
    /// to reduce. `slots` is the window as it is now, not yet normalised.
    pub fn rewrite(&self, slots: &[Slot], situation: &Situation<'_>) -> Option<Rewrite> {
        let survey = Survey::new(slots, situation);
        let fixed = survey.fixed(self.user(situation.room)).min(situation.room);
        let flexible = situation.room - fixed;
        let mut draft = Draft::new(self, &survey, situation, fixed, flexible);
        draft.supersede();
        draft.cards();
        draft.hide();
        draft.shorten();
        draft.finish()
    }
}

struct Draft<'s, 'a> {
    settings: &'s Steady,
    survey: &'s Survey<'a>,
    situation: &'s Situation<'s>,
    /// Tokens of the window as it would be.
    now: u64,
    low: u64,
    /// The room beside what always stays.
    flexible: u64,
    /// The first segment that stays as it is.
    tail: usize,
    /// Outputs to show as cards, by index in the survey, with their share of names.
    carded: HashMap<usize, u64>,
    /// Outputs of the tail that are shortened, with what they are shown as.
    shortened: Vec<(usize, Output)>,
    /// Segments that are hidden.
    hidden: BTreeSet<usize>,
}

impl<'s, 'a> Draft<'s, 'a> {
    fn new(
        settings: &'s Steady,
        survey: &'s Survey<'a>,
        situation: &'s Situation<'s>,
        fixed: u64,
        flexible: u64,
    ) -> Self {
        Self {
            settings,
            survey,
            situation,
            now: survey.total,
            low: fixed + settings.low(flexible),
            flexible,
            tail: tail(&survey.segments, settings.tail(flexible)),
            carded: HashMap::new(),
            shortened: Vec::new(),
            hidden: BTreeSet::new(),
        }
    }

    fn old(&self) -> impl Iterator<Item = (usize, &'s Segment)> + use<'s, 'a> {
        self.survey.segments.iter().enumerate().take(self.tail)
    }

    /// What a card would save of an output, in tokens.
    fn card_saves(&self, seen: &Seen<'_>, share: u64) -> u64 {
        let text = seen.output.text().len();
        if seen.output.stored.is_none() || text < self.settings.small_bytes {
            return 0;
        }
        let already =
            seen.output.trimmed && seen.output.text().starts_with("[trimtab: output left out");
        if already {
            return 0;
        }
        let names = self.settings.names(text) as u64 * share / 100;
        seen.tokens
            .saturating_sub((names + 110).div_ceil(BYTES_PER_TOKEN))
    }

    /// An older output of a call that was made again, with the same arguments, later.
    fn supersede(&mut self) {
        let mut newest: HashMap<(&str, &str), usize> = HashMap::new();
        for (index, seen) in self.survey.outputs.iter().enumerate() {
            if let Some(call) = seen.call {
                newest.insert((&call.name, &call.arguments), index);
            }
        }
        let end = self
            .survey
            .segments
            .get(self.tail)
            .map_or(0, |segment| segment.start);
        for (index, seen) in self.survey.outputs.iter().enumerate() {
            let Some(call) = seen.call.filter(|_| seen.slot < end) else {
                continue;
            };
            let again = newest.get(&(call.name.as_str(), call.arguments.as_str()));
            if again.is_some_and(|again| *again > index) {
                self.take_card(index, 0);
            }
        }
    }

    fn take_card(&mut self, index: usize, share: u64) {
        let Some(seen) = self.survey.outputs.get(index) else {
            return;
        };
        let saves = self.card_saves(seen, share);
        if saves > 0 && !self.carded.contains_key(&index) {
            self.now = self.now.saturating_sub(saves);
            self.carded.insert(index, share);
        }
    }

    /// Oldest first, outputs become cards until the low-water mark is reached.
    fn cards(&mut self) {
        let end = self
            .survey
            .segments
            .get(self.tail)
            .map_or(usize::MAX, |segment| segment.start);
        for (index, seen) in self.survey.outputs.iter().enumerate() {
            if self.now <= self.low || seen.slot >= end {
                break;
            }
            self.take_card(index, 100);
        }
    }

    fn is_block(&self, segment: &Segment) -> bool {
        let slot = self.survey.slots.get(segment.start);
        slot.is_some_and(|slot| block::is_block(&slot.message))
    }

    /// What is left of a segment, in tokens.
    fn left(&self, segment: &Segment) -> u64 {
        let outputs = self.survey.outputs.iter().enumerate();
        let saved: u64 = outputs
            .filter(|(_, seen)| (segment.start..segment.end).contains(&seen.slot))
            .filter_map(|(index, seen)| Some(self.card_saves(seen, *self.carded.get(&index)?)))
            .sum();
        segment.tokens.saturating_sub(saved)
    }

    /// Oldest first, rounds are hidden until the low-water mark is reached.
    fn hide(&mut self) {
        if self.now <= self.low {
            return;
        }
        let block = self.settings.block(self.flexible);
        let earlier: u64 = self
            .old()
            .filter(|(_, segment)| segment.piece == Piece::Ours && self.is_block(segment))
            .map(|(_, segment)| segment.tokens)
            .sum();
        self.now = self.now.saturating_sub(earlier) + block;
        let mut users = self.settings.user(self.situation.room);
        let old: Vec<(usize, &Segment)> = self.old().collect();
        let mut cut = 0;
        for (index, segment) in &old {
            if self.now <= self.low {
                break;
            }
            if segment.piece == Piece::Round {
                self.now = self.now.saturating_sub(self.left(segment));
                self.hidden.insert(*index);
            }
            cut = index + 1;
        }
        // What the user said stays, the newest first.
        for (index, segment) in old.iter().take(cut).rev() {
            if segment.piece == Piece::User {
                if let Some(left) = users.checked_sub(segment.tokens) {
                    users = left;
                } else {
                    users = 0;
                    self.now = self.now.saturating_sub(segment.tokens);
                    self.hidden.insert(*index);
                }
            }
        }
    }

    /// The newest outputs are shortened if nothing else brings the window below its high-water
    /// mark.
    fn shorten(&mut self) {
        let high = self.settings.high(self.situation.room);
        if self.now <= high {
            return;
        }
        let start = self
            .survey
            .segments
            .get(self.tail)
            .map_or(0, |segment| segment.start);
        let outputs = self.survey.outputs.iter().enumerate();
        let tail: Vec<(usize, &Seen<'_>)> =
            outputs.filter(|(_, seen)| seen.slot >= start).collect();
        let all: u64 = tail.iter().map(|(_, seen)| seen.tokens).sum();
        let allowed = all.saturating_sub(self.now - high);
        for (index, seen) in tail {
            let cap = allowed
                .saturating_mul(seen.tokens)
                .checked_div(all)
                .unwrap_or(0);
            let measure = |text: &str| (self.situation.weigh)(&Measure::of_text(text));
            let text = seen.output.text();
            let how = Cut {
                cap,
                measure: &measure,
                stored: seen.output.stored.as_ref(),
            };
            let view = cut(&text, &how);
            if view.trimmed && seen.output.stored.is_some() {
                let shown = Output {
                    content: vec![Part::text(view.text)],
                    trimmed: true,
                    ..seen.output.clone()
                };
                self.shortened.push((index, shown));
            }
        }
    }

    fn finish(self) -> Option<Rewrite> {
        if self.carded.is_empty() && self.hidden.is_empty() && self.shortened.is_empty() {
            return None;
        }
        // A window that fits is not rewritten for next to nothing.
        let enough = percent(self.flexible, LEAST_GAIN);
        if self.survey.total <= self.situation.room && self.now + enough > self.survey.total {
            return None;
        }
        let mut known = self.known();
        let mut edits = self.card_edits(&mut known);
        for (index, output) in &self.shortened {
            if let Some(seen) = self.survey.outputs.get(*index) {
                edits.push(show(seen, output.clone()));
            }
        }
        let hides = self.hides(&known);
        if let Some(hides) = &hides {
            edits.extend(self.hide_edits(hides.before));
        }
        if self.situation.bound_reasoning {
            edits.push(Edit::StripReasoning { before: self.end() });
        }
        let account = self.account();
        Some(Rewrite {
            edits,
            hides,
            account,
        })
    }

    /// The position behind the last message of the log.
    fn end(&self) -> usize {
        let ends = self.survey.slots.iter().map(|slot| match slot.source {
            Source::Log(at) => at + 1,
            Source::Inserted(at) => at,
        });
        ends.max().unwrap_or(0)
    }

    /// The names that the window shows anyway.
    fn known(&self) -> Known {
        let mut known = Known::default();
        let segments = self.survey.segments.iter().enumerate();
        for (_, segment) in segments.filter(|(index, _)| !self.hidden.contains(index)) {
            let slots = self.survey.slots.get(segment.start..segment.end);
            for (at, slot) in (segment.start..).zip(slots.unwrap_or_default()) {
                for (part, content) in slot.message.parts.iter().enumerate() {
                    if !self.is_carded(at, part) {
                        add_part(&mut known, content);
                    }
                }
            }
        }
        known
    }

    fn is_carded(&self, slot: usize, part: usize) -> bool {
        let outputs = self.survey.outputs.iter().enumerate();
        outputs
            .filter(|(_, seen)| seen.slot == slot && seen.part == part)
            .any(|(index, _)| self.carded.contains_key(&index))
    }

    fn is_hidden(&self, slot: usize) -> bool {
        let segments = self.survey.segments.iter().enumerate();
        segments
            .filter(|(index, _)| self.hidden.contains(index))
            .any(|(_, segment)| (segment.start..segment.end).contains(&slot))
    }

    /// Cards, the newest first to choose its names.
    fn card_edits(&self, known: &mut Known) -> Vec<Edit> {
        let mut edits = Vec::new();
        for (index, seen) in self.survey.outputs.iter().enumerate().rev() {
            let Some(share) = self.carded.get(&index) else {
                continue;
            };
            if self.is_hidden(seen.slot) {
                continue;
            }
            if let Some(output) = card(seen.output, self.settings, *share, known) {
                edits.push(show(seen, output));
            }
        }
        edits
    }

    fn hides(&self, known: &Known) -> Option<Hides> {
        let last = self.hidden.last()?;
        let segment = self.survey.segments.get(*last)?;
        let before = self
            .survey
            .slots
            .get(segment.end)
            .map_or_else(|| self.end(), |slot| slot.source.position());
        let earlier = block::earlier(self.survey.slots);
        let mut lines = block::lines(earlier.as_deref());
        // What was hidden before is found from here: the text names its ref.
        let mut archive = earlier.map_or_else(String::new, |text| format!("{text}\n"));
        let mut messages = Vec::new();
        for segment in self
            .hidden
            .iter()
            .filter_map(|index| self.survey.segments.get(*index))
        {
            for seen in self.survey.outputs_of(segment) {
                lines.extend(Line::new(seen.output, seen.call, self.settings, known));
            }
            let slots = self.survey.slots.get(segment.start..segment.end);
            for slot in slots.unwrap_or_default() {
                write_down(&mut archive, slot);
                messages.push(Arc::clone(&slot.message));
            }
        }
        let tokens = self.settings.block(self.flexible);
        let bytes = usize::try_from(tokens * BYTES_PER_TOKEN).unwrap_or(usize::MAX);
        Some(Hides {
            messages,
            archive,
            lines,
            bytes,
            before,
        })
    }

    /// Hides what goes, and once more what was hidden before: this plan stands for all of it.
    fn hide_edits(&self, before: usize) -> Vec<Edit> {
        let mut stays = BTreeSet::new();
        for (at, slot) in self.survey.slots.iter().enumerate() {
            if let Source::Log(position) = slot.source
                && !self.is_hidden(at)
            {
                stays.insert(position);
            }
        }
        let mut edits = vec![Edit::Withdraw { to: before }];
        let mut from = 0;
        for at in stays.range(..before).copied().chain([before]) {
            if from < at {
                edits.push(Edit::Hide { from, to: at });
            }
            from = at + 1;
        }
        edits.extend(self.put_back(before));
        edits
    }

    /// What others put in before `before` stays.
    fn put_back(&self, before: usize) -> impl Iterator<Item = Edit> {
        let slots = self.survey.slots.iter();
        slots.filter_map(move |slot| match slot.source {
            Source::Inserted(at) if at <= before && !block::is_block(&slot.message) => {
                let message = Arc::clone(&slot.message);
                Some(Edit::Insert {
                    before: at,
                    message,
                })
            }
            _ => None,
        })
    }

    fn account(&self) -> Account {
        let situation = self.situation;
        let first = self.first_changed();
        let segments = self.survey.segments.iter().enumerate();
        let kept: u64 = segments
            .filter(|(_, segment)| segment.end <= first)
            .map(|(_, segment)| segment.tokens)
            .sum();
        let tokens = (self.survey.total, self.now, self.now.saturating_sub(kept));
        let mut account = Account::new(situation.switch, tokens, situation.rates, situation.calls);
        account.cards = self.carded.len();
        account.hidden = self.hidden.len();
        account.shortened = self.shortened.len();
        account
    }

    /// The first slot that changes.
    fn first_changed(&self) -> usize {
        let cards = self
            .carded
            .keys()
            .chain(self.shortened.iter().map(|(index, _)| index));
        let cards = cards.filter_map(|index| Some(self.survey.outputs.get(*index)?.slot));
        let hidden = self
            .hidden
            .iter()
            .filter_map(|index| Some(self.survey.segments.get(*index)?.start));
        cards.chain(hidden).min().unwrap_or(usize::MAX)
    }
}

fn show(seen: &Seen<'_>, output: Output) -> Edit {
    Edit::Show {
        message: seen.position,
        part: seen.part,
        output,
    }
}

/// The first segment of the newest ones that take no more than `tokens`; the last round is
/// always among them.
fn tail(segments: &[Segment], tokens: u64) -> usize {
    let mut left = tokens;
    let mut tail = segments.len();
    for (index, segment) in segments.iter().enumerate().rev() {
        let newest = !segments
            .iter()
            .skip(index + 1)
            .any(|later| later.piece == Piece::Round);
        match left.checked_sub(segment.tokens) {
            Some(rest) => left = rest,
            None if newest => left = 0,
            None => break,
        }
        tail = index;
    }
    tail
}

fn add_part(known: &mut Known, part: &Part) {
    match part {
        Part::Text(text) => known.add(&text.text),
        Part::Reasoning(reasoning) => known.add(&reasoning.text),
        Part::Call(call) => known.add(&call.arguments),
        Part::Output(output) => known.add(&output.text()),
        Part::Media(_) | Part::Opaque(_) => {}
    }
}

/// Writes a message down as text; outputs by their ref, under which they are stored.
fn write_down(archive: &mut String, slot: &Slot) {
    let message: &Arc<Message> = &slot.message;
    let _ = writeln!(
        archive,
        "## message {}, {}",
        slot.source.position(),
        message.role.as_str()
    );
    for part in &message.parts {
        let _ = match part {
            Part::Text(text) => writeln!(archive, "{}", text.text),
            Part::Reasoning(reasoning) => writeln!(archive, "(thought) {}", reasoning.text),
            Part::Call(call) => {
                writeln!(archive, "call {} {} {}", call.id, call.name, call.arguments)
            }
            Part::Output(output) => match &output.stored {
                Some(stored) => writeln!(archive, "output {}: ref={stored}", output.call_id),
                None => writeln!(archive, "output {}: {}", output.call_id, output.text()),
            },
            Part::Media(media) => writeln!(archive, "{}", media.raw.as_str()),
            Part::Opaque(opaque) => writeln!(archive, "{}", opaque.raw.as_str()),
        };
    }
}
