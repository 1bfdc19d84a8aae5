//! What to reduce: cards first, then whole rounds, then what just came.

use std::collections::{BTreeSet, HashMap};

use trimtab_model::estimate::Measure;
use trimtab_model::{Output, Part};

use super::block;
use super::card::{BYTES_PER_TOKEN, is_card};
use super::segments::{Piece, Seen, Segment, Survey};
use crate::planner::Conditions;
use crate::policy::Rewriting;
use crate::view::structure::{Cut, cut};

/// A block has at least so many tokens: enough to say where everything is.
const LEAST_BLOCK: u64 = 80;
/// Tokens of a newest output that are shown in any case: its ref, and enough to go on with.
const LEAST_SHOWN: u64 = 256;

/// What a rewrite reduces, while it is being decided.
pub(super) struct Reductions<'s, 'a> {
    pub(super) settings: &'s Rewriting,
    pub(super) survey: &'s Survey<'a>,
    conditions: &'s Conditions<'s>,
    /// The room for messages.
    pub(super) room: u64,
    /// Tokens of the window as it would be.
    pub(super) now: u64,
    low: u64,
    /// The room beside what always stays.
    pub(super) flexible: u64,
    /// What the block may take.
    pub(super) block: u64,
    /// The first segment that stays as it is.
    tail: usize,
    /// Outputs to show as cards, by index in the survey, with their share of names.
    pub(super) carded: HashMap<usize, u64>,
    /// Outputs of the tail that are shortened, with what they are shown as.
    pub(super) shortened: Vec<(usize, Output)>,
    /// Segments that are hidden.
    pub(super) hidden: BTreeSet<usize>,
}

impl<'s, 'a> Reductions<'s, 'a> {
    /// What brings a window into `room`.
    pub(super) fn of(
        settings: &'s Rewriting,
        survey: &'s Survey<'a>,
        conditions: &'s Conditions<'s>,
        room: u64,
    ) -> Self {
        let fixed = survey.fixed(settings.user(room)).min(room);
        let flexible = room - fixed;
        let mut reductions = Self {
            settings,
            survey,
            conditions,
            room,
            now: survey.total,
            low: fixed + settings.low(flexible),
            flexible,
            block: settings.block(flexible),
            tail: tail(&survey.segments, settings.tail(flexible)),
            carded: HashMap::new(),
            shortened: Vec::new(),
            hidden: BTreeSet::new(),
        };
        reductions.supersede();
        reductions.cards();
        reductions.hide();
        reductions.shorten();
        reductions
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
        if is_card(&seen.output) {
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

    pub(super) fn is_block(&self, segment: &Segment) -> bool {
        let slot = self.survey.slots.get(segment.start);
        slot.is_some_and(|slot| block::is_block(&slot.message))
    }

    /// What is left of a segment, in tokens.
    fn left(&self, segment: &Segment) -> u64 {
        let outputs = self.survey.outputs_of(segment);
        let saved: u64 = outputs
            .filter_map(|(index, seen)| Some(self.card_saves(seen, *self.carded.get(&index)?)))
            .sum();
        segment.tokens.saturating_sub(saved)
    }

    /// Oldest first, rounds are hidden until the low-water mark is reached.
    fn hide(&mut self) {
        if self.now <= self.low {
            return;
        }
        let earlier: u64 = self
            .old()
            .filter(|(_, segment)| segment.piece == Piece::Ours && self.is_block(segment))
            .map(|(_, segment)| segment.tokens)
            .sum();
        self.now = self.now.saturating_sub(earlier) + self.block;
        let mut users = self.settings.user(self.room);
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
        let is_user = |segment: &Segment| segment.piece == Piece::User;
        let question = self.survey.segments.iter().rposition(is_user);
        // What the user said stays, the newest first; the newest always.
        for (index, segment) in old.iter().take(cut).rev() {
            if segment.piece != Piece::User || Some(*index) == question {
                continue;
            }
            if let Some(left) = users.checked_sub(segment.tokens) {
                users = left;
            } else {
                users = 0;
                self.now = self.now.saturating_sub(segment.tokens);
                self.hidden.insert(*index);
            }
        }
        self.shorten_block();
    }

    /// Where there is no room for it, the block has fewer lines.
    fn shorten_block(&mut self) {
        let over = self.now.saturating_sub(self.settings.high(self.room));
        let less = over.min(self.block.saturating_sub(LEAST_BLOCK));
        self.block -= less;
        self.now -= less;
    }

    /// The newest outputs are shortened if nothing else brings the window below its high-water
    /// mark.
    fn shorten(&mut self) {
        let high = self.settings.high(self.room);
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
            let share = allowed.saturating_mul(seen.tokens).checked_div(all);
            let cap = share.unwrap_or(0).max(LEAST_SHOWN);
            let measure = |text: &str| self.conditions.weigh(&Measure::of_text(text));
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
                    ..seen.output.clone().into_owned()
                };
                self.shortened.push((index, shown));
            }
        }
    }
}

/// The first segment of the newest ones that take no more than `tokens`; the last round is
/// always among them.
fn tail(segments: &[Segment], tokens: u64) -> usize {
    let mut left = tokens;
    let mut tail = segments.len();
    let mut newest = true;
    for (index, segment) in segments.iter().enumerate().rev() {
        match left.checked_sub(segment.tokens) {
            Some(rest) => left = rest,
            None if newest => left = 0,
            None => break,
        }
        newest &= segment.piece != Piece::Round;
        tail = index;
    }
    tail
}
