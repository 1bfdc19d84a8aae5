//! Old outputs become index cards at a switch point, and the oldest rounds a block of facts (ours).
//!
//! Rewriting what was sent before costs more than it saves, most of the time: everything behind
//! the first change has to be paid for again. So nothing changes until a [`Switch`] point, and
//! then all at once: the window comes down from its high-water mark to its low-water mark. What
//! is hidden goes through the same [`Draft`] as what a summary replaces.
//!
//! Every figure is the smaller of an absolute one and a share of the window, so that a window
//! of 4,000 tokens works like one of a million. What goes on a card, where the marks are and in
//! which order outputs go was measured on recorded sessions; `docs/steady.md` has the figures.

mod account;
mod block;
mod card;
mod reductions;
mod segments;
mod switch;
mod words;

use std::collections::HashSet;

use trimtab_model::{Output, Part};

use super::draft::Draft;
use super::survivors::Survivors;
use super::{Conditions, Conversation};
use crate::budget::percent;
use crate::compaction::keep::Kept;
use crate::log::Log;
use crate::observation::show;
use crate::plan::{Edit, Reason};
use crate::policy::Policy;
use crate::view::names::Known;
use block::Line;
use card::{BYTES_PER_TOKEN, card};
use reductions::Reductions;
use segments::{Seen, Segment, Survey};
use switch::{Due, due};
use words::Words;

pub use account::Account;
pub(super) use block::Contents;
pub use switch::{Cliff, Rates, Switch};

/// What a rewrite has to gain, in percent of the room beside what always stays.
const LEAST_GAIN: u64 = 5;
/// How many further calls are expected at least, and at most: a session that has lasted so long
/// is taken to last as long again.
const CALLS: (u64, u64) = (5, 50);

/// What a rewrite changes, beside what it hides.
#[derive(Clone, Debug)]
pub(super) struct Rewritten {
    /// The outputs that are shown as cards, or shorter.
    pub(super) edits: Vec<Edit>,
    /// What the block says that stands for what is hidden.
    pub(super) block: Option<Contents>,
    /// What it costs and saves.
    pub(super) account: Account,
}

/// The rewrite that brings the window down to its low-water mark; none if this is no switch
/// point, or if it is not worth it.
pub(super) fn rewrite(
    conversation: &Conversation<'_>,
    policy: &Policy,
    conditions: &Conditions<'_>,
) -> Option<Draft> {
    let settings = &policy.ageing.cards;
    if !settings.enabled {
        return None;
    }
    let total = conditions.weigh(&conversation.window.measures().total());
    let due = due(settings, conditions, total)?;
    let survey = Survey::new(conversation, conditions);
    let reductions = Reductions::of(settings, &survey, conditions, due.room);
    if !reductions.gain_enough() {
        return None;
    }
    let account = reductions.account(&due, expected_calls(conversation.log));
    // A cliff that it does not get below, or that costs less than the rewrite, is no reason.
    let in_vain =
        due.switch == Switch::PriceCliff && !(account.after <= due.room && account.pays());
    if in_vain {
        return None;
    }
    let mut known = reductions.known();
    let hidden = reductions.hidden_slots();
    let mut edits = reductions.card_edits(&mut known, &hidden);
    for (index, output) in &reductions.shortened {
        if let Some(seen) = survey.outputs.get(*index) {
            edits.extend(reductions.show(seen, output.clone()));
        }
    }
    let rewritten = Rewritten {
        edits,
        block: (!hidden.is_empty()).then(|| reductions.block(&known)),
        account,
    };
    let trigger = due.switch.to_string();
    let survivors = reductions.survivors(&hidden);
    let reason = Reason::Triggered { trigger };
    Some(Draft::of_rewrite(
        conversation,
        policy,
        reason,
        survivors,
        rewritten,
    ))
}

/// How many further calls are expected.
fn expected_calls(log: &Log) -> u64 {
    let calls = log.messages().iter().filter(|message| message.has_calls());
    let calls = calls.zip(0..CALLS.1).count() as u64;
    calls.clamp(CALLS.0, CALLS.1)
}

impl Reductions<'_, '_> {
    /// No window is rewritten for next to nothing, unless it would not fit otherwise.
    fn gain_enough(&self) -> bool {
        let before = self.survey.total;
        let any = !(self.carded.is_empty() && self.hidden.is_empty() && self.shortened.is_empty());
        let makes_it_fit = before > self.room && self.now <= self.room;
        any && (makes_it_fit || self.now + percent(self.flexible, LEAST_GAIN) <= before)
    }

    /// The names that the window shows anyway.
    fn known(&self) -> Known {
        let mut known = Known::default();
        let carded = self.carded.keys().filter_map(|index| {
            let seen = self.survey.outputs.get(*index)?;
            Some((seen.slot, seen.part))
        });
        let carded: HashSet<(usize, usize)> = carded.collect();
        let segments = self.survey.segments.iter().enumerate();
        // A block that another one replaces is not shown any more.
        let goes = |segment: &Segment| !self.hidden.is_empty() && self.is_block(segment);
        let stays =
            |index: &usize, segment: &Segment| !self.hidden.contains(index) && !goes(segment);
        for (_, segment) in segments.filter(|(index, segment)| stays(index, segment)) {
            let slots = self.survey.slots.get(segment.start..segment.end);
            for (at, slot) in (segment.start..).zip(slots.unwrap_or_default()) {
                for (part, content) in slot.message.parts.iter().enumerate() {
                    if !carded.contains(&(at, part)) {
                        add_part(&mut known, content);
                    }
                }
            }
        }
        known
    }

    /// The slots of the segments that are hidden.
    fn hidden_slots(&self) -> HashSet<usize> {
        let segments = self.hidden.iter();
        let segments = segments.filter_map(|index| self.survey.segments.get(*index));
        segments
            .flat_map(|segment| segment.start..segment.end)
            .collect()
    }

    /// Cards, the newest first to choose its names.
    fn card_edits(&self, known: &mut Known, hidden: &HashSet<usize>) -> Vec<Edit> {
        let mut edits = Vec::new();
        for (index, seen) in self.survey.outputs.iter().enumerate().rev() {
            let Some(share) = self.carded.get(&index) else {
                continue;
            };
            if hidden.contains(&seen.slot) {
                continue;
            }
            if let Some(output) = card(&seen.output, self.settings, *share, known) {
                edits.extend(self.show(seen, output));
            }
        }
        edits
    }

    fn show(&self, seen: &Seen<'_>, output: Output) -> Option<Edit> {
        let slot = self.survey.slots.get(seen.slot)?;
        Some(show(&slot.message, seen.position, seen.part, output))
    }

    /// What stays where it is, and what the block replaces: what is hidden, and an earlier block.
    fn survivors(&self, hidden: &HashSet<usize>) -> Survivors {
        let slots = self.survey.slots;
        let goes = |at: &usize| {
            let slot = slots.get(*at);
            let is_block = slot.is_some_and(|slot| block::is_block(&slot.message));
            hidden.contains(at) || (is_block && !hidden.is_empty())
        };
        let last = self
            .hidden
            .last()
            .and_then(|last| self.survey.segments.get(*last));
        let end = last.map_or(0, |segment| segment.end);
        let (replaced, stays): (Vec<usize>, Vec<usize>) = (0..slots.len()).partition(goes);
        let (before, behind): (Vec<usize>, Vec<usize>) = stays.iter().partition(|at| **at < end);
        let before = before.into_iter().collect();
        Survivors {
            slots: slots.to_vec(),
            kept: Kept {
                before,
                behind,
                system_stays: true,
                ..Kept::default()
            },
            replaced,
            summary: true,
        }
    }

    /// What the block says: what an earlier one said, and what is hidden now.
    fn block(&self, known: &Known) -> Contents {
        let earlier = block::earlier(self.survey.slots);
        let (mut words, mut lines) = block::read(earlier.as_deref());
        let hidden = self.hidden.iter();
        for segment in hidden.filter_map(|index| self.survey.segments.get(*index)) {
            for (_, seen) in self.survey.outputs_of(segment) {
                lines.extend(Line::new(&seen.output, seen.call, self.settings, known));
            }
            let slots = self.survey.slots.get(segment.start..segment.end);
            let slots = slots.unwrap_or_default().iter();
            words.extend(slots.filter_map(|slot| Words::of(&slot.message)));
        }
        let bytes = self.block * BYTES_PER_TOKEN;
        let words_bytes = percent(bytes, self.settings.words_percent);
        let [bytes, words_bytes] =
            [bytes, words_bytes].map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        Contents {
            words,
            lines,
            bytes,
            words_bytes,
        }
    }

    fn account(&self, due: &Due, calls: u64) -> Account {
        let first = self.first_changed();
        let segments = self.survey.segments.iter();
        let kept = segments.filter(|segment| segment.end <= first);
        let kept: u64 = kept.map(|segment| segment.tokens).sum();
        let tokens = (self.survey.total, self.now, self.now.saturating_sub(kept));
        let mut account = Account::new(due.switch, tokens, due.rates, calls);
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

fn add_part(known: &mut Known, part: &Part) {
    match part {
        Part::Text(text) => known.add(&text.text),
        Part::Reasoning(reasoning) => known.add(&reasoning.text),
        Part::Call(call) => known.add(&call.arguments),
        Part::Output(output) => known.add(&output.text()),
        Part::Media(_) | Part::Opaque(_) => {}
    }
}
