//! A decided rewrite as edits.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write;
use std::sync::Arc;

use trimtab_model::{Message, Output, Part};

use super::arithmetic::Account;
use super::block::{self, Contents, Line};
use super::card::{BYTES_PER_TOKEN, card};
use super::draft::Draft;
use super::names::Known;
use super::rewrite::{Hides, Rewrite};
use super::settings::percent;
use super::survey::{Seen, Segment};
use super::words::Words;
use crate::normalise::{Slot, Source};
use crate::observation::show;
use crate::plan::Edit;
use crate::planner::bound_behind;

/// What a rewrite has to gain, in percent of the room beside what always stays.
const LEAST_GAIN: u64 = 5;

impl Draft<'_, '_> {
    pub(super) fn finish(self) -> Option<Rewrite> {
        if self.carded.is_empty() && self.hidden.is_empty() && self.shortened.is_empty() {
            return None;
        }
        // No window is rewritten for next to nothing, unless it would not fit otherwise.
        let (before, room) = (self.survey.total, self.situation.room);
        let makes_it_fit = before > room && self.now <= room;
        if !makes_it_fit && self.now + percent(self.flexible, LEAST_GAIN) > before {
            return None;
        }
        let hidden = self.hidden_slots();
        let mut known = self.known();
        let mut edits = self.card_edits(&mut known, &hidden);
        for (index, output) in &self.shortened {
            if let Some(seen) = self.survey.outputs.get(*index) {
                edits.extend(self.show(seen, output.clone()));
            }
        }
        let hides = self.hides(&known);
        if let Some(hides) = &hides {
            edits.extend(self.hide_edits(hides.before, &hidden));
        }
        if self.situation.bound_reasoning
            && let Some(before) = bound_behind(&edits, self.survey.slots)
        {
            edits.push(Edit::StripReasoning { before });
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

    fn hides(&self, known: &Known) -> Option<Hides> {
        let last = self.hidden.last()?;
        let segment = self.survey.segments.get(*last)?;
        let before = self
            .survey
            .slots
            .get(segment.end)
            .map_or_else(|| self.end(), |slot| slot.source.position());
        let earlier = block::earlier(self.survey.slots);
        let (mut words, mut lines) = block::read(earlier.as_deref());
        // What was hidden before is found from here: the text names its ref.
        let mut archive = earlier.map_or_else(String::new, |text| format!("{text}\n"));
        let mut messages = Vec::new();
        for segment in self
            .hidden
            .iter()
            .filter_map(|index| self.survey.segments.get(*index))
        {
            for (_, seen) in self.survey.outputs_of(segment) {
                lines.extend(Line::new(&seen.output, seen.call, self.settings, known));
            }
            let slots = self.survey.slots.get(segment.start..segment.end);
            for slot in slots.unwrap_or_default() {
                write_down(&mut archive, slot);
                words.extend(Words::of(&slot.message));
                messages.push(Arc::clone(&slot.message));
            }
        }
        let bytes = self.block * BYTES_PER_TOKEN;
        let words_bytes = percent(bytes, self.settings.words_percent);
        let [bytes, words_bytes] =
            [bytes, words_bytes].map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        Some(Hides {
            messages,
            archive,
            contents: Contents {
                words,
                lines,
                bytes,
                words_bytes,
            },
            before,
        })
    }

    /// Hides what goes, and once more what was hidden before: this plan stands for all of it.
    fn hide_edits(&self, before: usize, hidden: &HashSet<usize>) -> Vec<Edit> {
        let mut stays = BTreeSet::new();
        for (at, slot) in self.survey.slots.iter().enumerate() {
            if let Source::Log(position) = slot.source
                && !hidden.contains(&at)
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
