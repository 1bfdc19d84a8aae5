//! The ageing of our own preset: shortens old text at a switch point. Outputs become excerpts, and
//! the oldest rounds become a block.
//!
//! Rewriting text that was sent before costs money: everything behind the first change must be
//! written to the provider's cache again. Reading old text with every call also costs money. So
//! nothing changes until a [`SwitchPoint`], and then everything at once. Hidden rounds go through
//! the same [`CompactionDraft`] as rounds that a summary replaces.
//!
//! The settings were measured on recorded sessions; `docs/steady.md` has the figures.

mod account;
mod block;
mod excerpt;
mod hidden;
mod purpose;
mod reductions;
mod segments;
mod switch;
mod words;

use std::collections::HashSet;

use trimtab_model::{Output, Part, Role};

use super::ConversationState;
use super::draft::{CompactionDraft, CompactionRequest, DraftContent};
use super::survivors::Survivors;
use crate::budget::percent;
use crate::compaction::keep_rules::KeptMessages;
use crate::observation::show;
use crate::plan::{Edit, PlanReason};
use crate::policy::RewriteAgeing;
use crate::view::names::NameSet;
use crate::view::policy::CompiledViews;
use excerpt::{NameInterest, excerpt};
use hidden::{BlockRoom, hidden_output_lines};
use reductions::Reductions;
use segments::{Segment, SurveyedOutput, WindowSurvey};
use switch::{
    SwitchPoint, SwitchReason, overfull, possible_switch_point, switch_point, was_read_too_often,
};
use words::MessageWords;

use account::RewriteAccount;
pub(super) use block::BlockContents;
pub use switch::{PriceCliff, TokenRates};

/// The minimum gain of a rewrite, in percent of the window.
const LEAST_GAIN: u64 = 5;
/// A session is expected to continue for this share of its calls so far, in percent.
const EXPECTED_PERCENT: u64 = 60;
/// The bytes per token of a block.
const BLOCK_BYTES_PER_TOKEN: u64 = 4;

/// What a rewrite changes besides hiding rounds.
#[derive(Clone, Debug)]
pub(super) struct RewriteResult {
    /// Outputs that are shown as excerpts, or shorter.
    pub(super) edits: Vec<Edit>,
    /// The contents of the block that represents the hidden rounds.
    pub(super) block: Option<BlockContents>,
    /// Its cost and savings.
    pub(super) account: RewriteAccount,
}

/// Drafts the rewrite that removes old text from the window; none if this is not a switch point, or
/// if it is not worth it.
pub(super) fn rewrite(conversation: &ConversationState<'_>) -> Option<CompactionDraft> {
    let policy = conversation.policy;
    let settings = &policy.ageing.cards;
    if !settings.enabled {
        return None;
    }
    let total = conversation.window.measures().total();
    let (calls, since) = calls(conversation);
    // Decided without calibration, so that all processes that serve this conversation decide alike.
    // Only a window that would not fit by what this process has learned is decided by that.
    let uncalibrated = ConversationState {
        call: conversation.uncalibrated,
        ..*conversation
    };
    let plain = uncalibrated.call;
    let weight = plain.weigh(&total);
    let optional = || {
        // The reasoning of the loop is worth more than what these reads cost.
        if plain.in_bound_loop {
            return None;
        }
        let newest = conversation.projection.journal().newest_compaction();
        let left = newest.map_or(0, |plan| plan.tokens_after);
        possible_switch_point(settings, plain, weight, (since, left))
    };
    let (due, conversation) = if let Some(due) = switch_point(settings, plain, weight) {
        (due, &uncalibrated)
    } else if let Some(due) = overfull(conversation.call, &total) {
        (due, conversation)
    } else {
        (optional()?, &uncalibrated)
    };
    let survey = WindowSurvey::new(conversation);
    let views = CompiledViews::new(&policy.views).unwrap_or_default();
    let reductions = Reductions::of(settings, &survey, conversation.call, &views, due.room);
    if !reductions.gain_enough() {
        return None;
    }
    let account = reductions.account(&due, percent(calls, EXPECTED_PERCENT));
    if !is_worth_it(settings, &due, &account, since) {
        return None;
    }
    let hidden = reductions.hidden_slots();
    let mut interest = reductions.interest();
    let mut edits = reductions.excerpt_edits(&mut interest, &hidden);
    for (index, output) in &reductions.shortened {
        if let Some(seen) = survey.outputs.get(*index) {
            edits.extend(reductions.show(seen, output.clone()));
        }
    }
    // Built last: it lists names that neither the window nor an excerpt shows.
    let block = || reductions.block(conversation, &hidden, &mut interest);
    let rewritten = RewriteResult {
        edits,
        block: (!hidden.is_empty()).then(block),
        account,
    };
    let request = CompactionRequest {
        reason: PlanReason::Triggered {
            trigger: due.switch.to_string(),
        },
        ..CompactionRequest::default()
    };
    let survivors = reductions.survivors(&hidden, rewritten);
    Some(CompactionDraft::new(conversation, request, survivors))
}

/// The number of calls to the model, and of those since the last rewrite. If nothing was sent yet,
/// none of them was a read that we caused.
fn calls(conversation: &ConversationState<'_>) -> (u64, u64) {
    let calls = conversation.log.answers_since(0) as u64;
    if conversation.sent == 0 {
        return (calls, 0);
    }
    let since = conversation.compacted_at.unwrap_or(0);
    (calls, conversation.log.answers_since(since) as u64)
}

fn is_worth_it(
    settings: &RewriteAgeing,
    switch_point: &SwitchPoint,
    account: &RewriteAccount,
    since: u64,
) -> bool {
    match switch_point.switch {
        SwitchReason::HighWater | SwitchReason::Cold => true,
        // A rewrite for a price cliff must get below it, and must cost less than it saves.
        SwitchReason::PriceCliff => account.after <= switch_point.room && account.pays(),
        SwitchReason::ReadTooOften => {
            let tokens = (account.before, account.after, account.suffix);
            account.pays() && was_read_too_often(settings, switch_point, tokens, since)
        }
    }
}

impl Reductions<'_, '_> {
    /// True if the reductions change enough to justify a rewrite, or make the window fit.
    fn gain_enough(&self) -> bool {
        let before = self.survey.total;
        let any =
            !(self.excerpts.is_empty() && self.hidden.is_empty() && self.shortened.is_empty());
        let makes_it_fit = before > self.room && self.now <= self.room;
        any && (makes_it_fit || self.now + percent(before, LEAST_GAIN) <= before)
    }

    /// The names that the window shows anyway, and those that the user or the model wrote.
    fn interest(&self) -> NameInterest {
        let (mut known, mut used) = (NameSet::default(), NameSet::default());
        // Names in these outputs do not count as shown: which lines stay is not decided yet.
        let excerpts = self.excerpts.keys().filter_map(|index| {
            let seen = self.survey.outputs.get(*index)?;
            Some((seen.slot, seen.part))
        });
        let excerpts: HashSet<(usize, usize)> = excerpts.collect();
        let segments = self.survey.segments.iter().enumerate();
        // A block that a new one replaces is no longer shown.
        let goes = |segment: &Segment| !self.hidden.is_empty() && self.is_block(segment);
        for (index, segment) in segments.filter(|(_, segment)| !goes(segment)) {
            let stays = !self.hidden.contains(&index);
            let slots = self.survey.slots.get(segment.start..segment.end);
            for (at, slot) in (segment.start..).zip(slots.unwrap_or_default()) {
                let is_said = matches!(slot.message.role, Role::User | Role::Assistant);
                for (part, content) in slot.message.parts.iter().enumerate() {
                    let is_output = matches!(content, Part::Output(_));
                    // Also from hidden rounds: what the agent wrote shows what it cares about.
                    if is_said && !is_output {
                        add_part(&mut used, content);
                    }
                    if stays && !excerpts.contains(&(at, part)) {
                        add_part(&mut known, content);
                    }
                }
            }
        }
        NameInterest { shown: known, used }
    }

    /// The slots of the hidden segments.
    fn hidden_slots(&self) -> HashSet<usize> {
        let segments = self.hidden.iter();
        let segments = segments.filter_map(|index| self.survey.segments.get(*index));
        segments
            .flat_map(|segment| segment.start..segment.end)
            .collect()
    }

    /// The edits for excerpts. The newest outputs choose their lines first, because later calls
    /// need them most.
    fn excerpt_edits(&self, interest: &mut NameInterest, hidden: &HashSet<usize>) -> Vec<Edit> {
        let mut edits = Vec::new();
        for (index, seen) in self.survey.outputs.iter().enumerate().rev() {
            let Some(allowed) = self.excerpts.get(&index) else {
                continue;
            };
            if hidden.contains(&seen.slot) {
                continue;
            }
            if let Some(output) = excerpt(&seen.output, &seen.full_text, *allowed, interest) {
                edits.extend(self.show(seen, output));
            }
        }
        edits
    }

    fn show(&self, seen: &SurveyedOutput<'_>, output: Output) -> Option<Edit> {
        let slot = self.survey.slots.get(seen.slot)?;
        Some(show(&slot.message, seen.position, seen.part, output))
    }

    /// What stays, and what the block replaces: hidden rounds, and an earlier block.
    fn survivors(&self, hidden: &HashSet<usize>, rewritten: RewriteResult) -> Survivors {
        let slots = self.survey.slots;
        let goes = |at: &usize| {
            let slot = slots.get(*at);
            let is_block = slot.is_some_and(|slot| block::is_block(&slot.message));
            hidden.contains(at) || (is_block && !hidden.is_empty())
        };
        // The block stands where the hidden rounds end. Everything kept before that, such as user
        // messages, stays before it.
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
            kept: KeptMessages {
                before_summary: before,
                after_summary: behind,
                system_stays: true,
                ..KeptMessages::default()
            },
            replaced,
            content: DraftContent::Rewrite(Box::new(rewritten)),
        }
    }

    /// The contents of the block: refs, what the model said in the hidden rounds, and lines from
    /// their outputs.
    fn block(
        &self,
        conversation: &ConversationState<'_>,
        hidden: &HashSet<usize>,
        interest: &mut NameInterest,
    ) -> BlockContents {
        let (mut earlier, mut words) = block::read(self.survey.slots);
        let slots = self.survey.slots.iter().enumerate();
        let (gone, stays): (Vec<_>, Vec<_>) = slots.partition(|(at, _)| hidden.contains(at));
        words.extend(
            gone.iter()
                .filter_map(|(_, slot)| MessageWords::of(&slot.message)),
        );
        let shown = stays.iter().filter_map(|(_, slot)| slot.source.in_log());
        let shown: HashSet<usize> = shown.collect();
        let in_bytes = |tokens: u64| usize::try_from(tokens).unwrap_or(usize::MAX);
        let bytes = in_bytes(self.block * BLOCK_BYTES_PER_TOKEN);
        earlier.fit(bytes);
        let words_bytes = percent(
            self.block * BLOCK_BYTES_PER_TOKEN,
            self.settings.words_percent,
        );
        let words_bytes = in_bytes(words_bytes);
        // Words that need less than their share leave the rest to the outputs.
        let bytes_of_words = words::render_words(&words, words_bytes).len();
        let room = BlockRoom {
            bytes: bytes.saturating_sub(block::fixed_bytes(&earlier) + bytes_of_words),
            messages: self.room,
        };
        let outputs = hidden_output_lines(conversation.log, &shown, room, interest);
        BlockContents {
            earlier,
            words,
            outputs,
            bytes,
            words_bytes,
        }
    }

    fn account(&self, switch_point: &SwitchPoint, calls: u64) -> RewriteAccount {
        let first = self.first_changed();
        let segments = self.survey.segments.iter();
        // Everything before the first change stays in the provider's cache. Only the rest is
        // written again.
        let kept = segments.filter(|segment| segment.end <= first);
        let kept: u64 = kept.map(|segment| segment.tokens).sum();
        let tokens = (self.survey.total, self.now, self.now.saturating_sub(kept));
        RewriteAccount::new(switch_point, tokens, calls)
    }

    /// The first changed slot.
    fn first_changed(&self) -> usize {
        let shorter = self
            .excerpts
            .keys()
            .chain(self.shortened.iter().map(|(index, _)| index));
        let shorter = shorter.filter_map(|index| Some(self.survey.outputs.get(*index)?.slot));
        let hidden = self
            .hidden
            .iter()
            .filter_map(|index| Some(self.survey.segments.get(*index)?.start));
        shorter.chain(hidden).min().unwrap_or(usize::MAX)
    }
}

fn add_part(known: &mut NameSet, part: &Part) {
    match part {
        Part::Text(text) => known.add(&text.text),
        Part::Reasoning(reasoning) => known.add(&reasoning.text),
        Part::Call(call) => known.add(&call.arguments),
        Part::Output(output) => known.add(&output.text()),
        Part::Media(_) | Part::Opaque(_) => {}
    }
}
