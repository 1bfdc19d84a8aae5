//! Decides what a rewrite reduces: old outputs become excerpts, the oldest rounds are hidden, and
//! only if that is not enough the newest outputs are shortened.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use trimtab_model::Output;
use trimtab_model::estimate::Measure;

use super::BLOCK_BYTES_PER_TOKEN;
use super::block;
use super::excerpt::{ExcerptBudget, is_excerpt, overhead_bytes};
use super::purpose::{OutputPurpose, purpose};
use super::segments::{Segment, SegmentKind, SurveyedOutput, WindowSurvey};
use crate::observation::shown_as;
use crate::planner::CallConditions;
use crate::policy::RewriteAgeing;
use crate::view::policy::CompiledViews;
use crate::view::structure::{CutRequest, cut};
use crate::view::tools::is_retrieval;

/// The newest outputs always stay unchanged.
const NEWEST_OUTPUTS: usize = 2;
/// A block has at least this many tokens: enough to name its refs.
const LEAST_BLOCK: u64 = 80;
/// At least this many tokens of a newest output are shown: its ref, and enough to continue with.
const LEAST_SHOWN: u64 = 256;
/// An excerpt must save at least this many tokens.
const LEAST_SAVED: u64 = 30;
/// Bytes per token of excerpts and blocks. They consist largely of names, which have fewer bytes
/// per token than prose.
const BYTES_PER_TOKEN: u64 = 3;

/// The reductions of a rewrite, while they are being decided.
pub(super) struct Reductions<'s, 'a> {
    pub(super) settings: &'s RewriteAgeing,
    pub(super) survey: &'s WindowSurvey<'a>,
    conditions: &'s CallConditions<'s>,
    /// The room for messages.
    pub(super) room: u64,
    /// Tokens of the window with the reductions so far.
    pub(super) now: u64,
    /// The room besides what always stays.
    flexible: u64,
    /// The tokens allowed for the block.
    pub(super) block: u64,
    /// The first segment of the tail, which stays unchanged.
    tail: usize,
    /// Outputs to show as excerpts, by index in the survey.
    pub(super) excerpts: HashMap<usize, ExcerptBudget>,
    /// Outputs of the tail that are shortened, with their new content.
    pub(super) shortened: Vec<(usize, Output)>,
    /// Hidden segments.
    pub(super) hidden: BTreeSet<usize>,
}

impl<'s, 'a> Reductions<'s, 'a> {
    /// The reductions that bring a window into `room`.
    pub(super) fn of(
        settings: &'s RewriteAgeing,
        survey: &'s WindowSurvey<'a>,
        conditions: &'s CallConditions<'s>,
        views: &CompiledViews,
        room: u64,
    ) -> Self {
        let fixed = survey.fixed(settings.user_budget(room)).min(room);
        let flexible = room - fixed;
        let mut reductions = Self {
            settings,
            survey,
            conditions,
            room,
            now: survey.total,
            flexible,
            block: settings.block_budget(flexible),
            tail: tail(survey, settings.tail_budget(flexible)),
            excerpts: HashMap::new(),
            shortened: Vec::new(),
            hidden: BTreeSet::new(),
        };
        // In the order of what later calls need least, see `docs/steady.md`: old outputs, old rounds,
        // files and searches, the block, and the newest outputs.
        let protected = reductions.protected(views);
        let whole = reductions.outputs_kept_whole(&protected);
        reductions.shorten_old(&whole);
        reductions.hide(&whole);
        if reductions.now > settings.high_mark(room) && whole.len() > protected.len() {
            reductions.shorten_old(&protected);
            reductions.hide(&protected);
        }
        reductions.shorten_block();
        reductions.shorten_newest();
        reductions
    }

    /// The first slot of the tail.
    fn tail_start(&self) -> usize {
        let first = self.survey.segments.get(self.tail);
        first.map_or(usize::MAX, |segment| segment.start)
    }

    fn old_outputs(&self) -> impl Iterator<Item = (usize, &'s SurveyedOutput<'a>)> + use<'s, 'a> {
        let end = self.tail_start();
        let outputs = self.survey.outputs.iter().enumerate();
        outputs.take_while(move |(_, seen)| seen.slot < end)
    }

    /// Old outputs of tools that the user protects. Old answers of the retrieval tools are not among
    /// them: a model that reads much would fill the window with them.
    fn protected(&self, views: &CompiledViews) -> HashSet<usize> {
        let is_protected = |seen: &SurveyedOutput<'_>| {
            let called = seen.call.map(|call| call.name.as_str());
            let tool = seen.output.tool.as_deref().or(called);
            tool.is_some_and(|tool| views.protects(tool) && !is_retrieval(tool))
        };
        let outputs = self.old_outputs().filter(|(_, seen)| is_protected(seen));
        outputs.map(|(index, _)| index).collect()
    }

    /// Old outputs that stay in full: the protected ones, and the newest files and searches.
    fn outputs_kept_whole(&self, protected: &HashSet<usize>) -> HashSet<usize> {
        let old: Vec<(usize, &SurveyedOutput<'_>)> = self.old_outputs().collect();
        let mut left = self.settings.whole_output_limit(self.flexible);
        let mut whole = protected.clone();
        for (index, seen) in old.into_iter().rev() {
            // A cut output cannot be shown in full again, so it does not use up this share.
            let is_read = purpose(seen.call) == OutputPurpose::Reading && !seen.output.trimmed;
            // A smaller, older file may still fit.
            if let Some(rest) = left.checked_sub(seen.tokens).filter(|_| is_read) {
                left = rest;
                whole.insert(index);
            }
        }
        whole
    }

    /// Turns all other old outputs into excerpts.
    fn shorten_old(&mut self, whole: &HashSet<usize>) {
        for (index, seen) in self.old_outputs() {
            if whole.contains(&index) || self.excerpts.contains_key(&index) {
                continue;
            }
            if let Some((allowed, saved)) = self.excerpt(seen) {
                self.now = self.now.saturating_sub(saved);
                self.excerpts.insert(index, allowed);
            }
        }
    }

    /// The budget of an output's excerpt, and the tokens that it saves; none if the output stays.
    fn excerpt(&self, seen: &SurveyedOutput<'_>) -> Option<(ExcerptBudget, u64)> {
        // Without a ref, the rest could not be retrieved.
        let stored = seen.output.stored.as_ref()?;
        if is_excerpt(&seen.output) {
            return None;
        }
        let length = seen.full_text.len();
        let bytes = match purpose(seen.call) {
            OutputPurpose::Reading if length <= self.settings.small_bytes => return None,
            OutputPurpose::Reading => self.settings.excerpt_bytes(length, self.room),
            OutputPurpose::Running => RewriteAgeing::command_excerpt_bytes(length),
        };
        let takes = (bytes + overhead_bytes(stored)) as u64;
        let shown = seen.output.text().len().max(1) as u64;
        // Dense texts, such as hashes, have more tokens than others of the same length. Take the
        // larger of two estimates, so that the window fits.
        let dense = takes.saturating_mul(seen.tokens) / shown;
        let takes = takes.div_ceil(BYTES_PER_TOKEN).max(dense);
        let saved = seen.tokens.checked_sub(takes)?;
        let allowed = ExcerptBudget {
            bytes,
            names_percent: self.settings.names_percent,
        };
        (saved >= LEAST_SAVED).then_some((allowed, saved))
    }

    pub(super) fn is_block(&self, segment: &Segment) -> bool {
        let slot = self.survey.slots.get(segment.start);
        slot.is_some_and(|slot| block::is_block(&slot.message))
    }

    /// The tokens that are left of a segment.
    fn remaining_tokens(&self, segment: &Segment) -> u64 {
        let outputs = self.survey.outputs_of(segment);
        let saved: u64 = outputs
            .filter(|(index, _)| self.excerpts.contains_key(index))
            .filter_map(|(_, seen)| Some(self.excerpt(seen)?.1))
            .sum();
        segment.tokens.saturating_sub(saved)
    }

    /// Hides rounds, except those with an output in `whole` and the newest of the others within
    /// their budget. User messages stay within a budget of their own.
    fn hide(&mut self, whole: &HashSet<usize>) {
        let segments = self.survey.segments.iter().enumerate().take(self.tail);
        let old: Vec<(usize, &Segment)> = segments.collect();
        let had_block = old.iter().find(|(_, segment)| self.is_block(segment));
        let had_block = had_block.map(|(_, segment)| segment.tokens);
        let hid_before = !self.hidden.is_empty();
        let mut keep = self.settings.keep_budget(self.flexible);
        let mut users = self.settings.user_budget(self.room);
        let is_user = |segment: &Segment| segment.kind == SegmentKind::User;
        let question = self.survey.segments.iter().rposition(is_user);
        // Newest first, so that the budgets go to the newest.
        for (index, segment) in old.iter().rev() {
            let stays = match segment.kind {
                SegmentKind::Kept | SegmentKind::Task | SegmentKind::Inserted => true,
                SegmentKind::User if Some(*index) == question => true,
                SegmentKind::User => within(&mut users, segment.tokens),
                SegmentKind::Round => {
                    let mut outputs = self.survey.outputs_of(segment);
                    outputs.any(|(output, _)| whole.contains(&output))
                        || within(&mut keep, self.remaining_tokens(segment))
                }
            };
            // The second call of this function finds segments that the first one has hidden.
            if !stays && self.hidden.insert(*index) {
                self.now = self.now.saturating_sub(self.remaining_tokens(segment));
            }
        }
        // One block replaces all hidden rounds and an earlier block, so it is added once.
        if !hid_before && !self.hidden.is_empty() {
            self.now = self.now.saturating_sub(had_block.unwrap_or(0)) + self.block_takes();
        }
    }

    /// The maximum of the block, in tokens.
    fn block_takes(&self) -> u64 {
        self.block * BLOCK_BYTES_PER_TOKEN / BYTES_PER_TOKEN
    }

    /// Shortens the block if there is not enough room for it.
    fn shorten_block(&mut self) {
        if self.hidden.is_empty() {
            return;
        }
        let over = self.now.saturating_sub(self.settings.high_mark(self.room));
        let less = over.min(self.block.saturating_sub(LEAST_BLOCK));
        let full_block = self.block_takes();
        self.block -= less;
        self.now = (self.now + self.block_takes()).saturating_sub(full_block);
    }

    /// Shortens the newest outputs if nothing else brings the window below its high-water mark.
    fn shorten_newest(&mut self) {
        let high = self.settings.high_mark(self.room);
        if self.now <= high {
            return;
        }
        let start = self.tail_start();
        let outputs = self.survey.outputs.iter().enumerate();
        let tail: Vec<(usize, &SurveyedOutput<'_>)> = outputs
            .filter(|(_, seen)| seen.slot >= start && !is_read_back(seen))
            .collect();
        let all: u64 = tail.iter().map(|(_, seen)| seen.tokens).sum();
        let allowed = all.saturating_sub(self.now - high);
        for (index, seen) in tail {
            // Each output loses the same share of its tokens.
            let share = allowed.saturating_mul(seen.tokens).checked_div(all);
            let cap = share.unwrap_or(0).max(LEAST_SHOWN);
            let measure = |text: &str| self.conditions.weigh(&Measure::of_text(text));
            let text = seen.output.text();
            let request = CutRequest {
                cap,
                measure: &measure,
                stored: seen.output.stored.as_ref(),
            };
            let view = cut(&text, &request);
            let is_cut = matches!(view, Cow::Owned(_)) && seen.output.stored.is_some();
            let saved = seen.tokens.saturating_sub(measure(&view));
            if let Some(output) = shown_as(&seen.output, view).filter(|_| is_cut) {
                self.now = self.now.saturating_sub(saved);
                self.shortened.push((index, output));
            }
        }
    }
}

/// True for an answer of the retrieval tools. Shortening it would make the model ask again.
fn is_read_back(seen: &SurveyedOutput<'_>) -> bool {
    seen.call.is_some_and(|call| is_retrieval(&call.name))
}

/// Takes `tokens` from what is left, if there is enough. Otherwise nothing is left: older segments
/// must not fill a gap that a newer one did not fit into.
fn within(left: &mut u64, tokens: u64) -> bool {
    let rest = left.checked_sub(tokens);
    *left = rest.unwrap_or(0);
    rest.is_some()
}

/// The first of the newest segments that take at most `tokens`; the last round and the newest
/// outputs are always among them.
fn tail(survey: &WindowSurvey<'_>, tokens: u64) -> usize {
    let newest = survey.outputs.iter().rev().nth(NEWEST_OUTPUTS - 1);
    let newest = newest.or(survey.outputs.first());
    let newest = newest.map_or(usize::MAX, |seen| seen.slot);
    let mut left = tokens;
    let mut tail = survey.segments.len();
    let mut is_newest = true;
    for (index, segment) in survey.segments.iter().enumerate().rev() {
        let must_stay = is_newest || segment.end > newest;
        if !within(&mut left, segment.tokens) && !must_stay {
            break;
        }
        // Everything after the last round, and that round itself.
        is_newest &= segment.kind != SegmentKind::Round;
        tail = index;
    }
    tail
}
