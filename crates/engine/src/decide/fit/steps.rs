//! The rungs of the ladder: the ways to make a window smaller.

use std::borrow::Cow;
use std::collections::HashSet;

use trimtab_model::Output;

use super::dropping::{drop_half_of_turns, drop_oldest};
use crate::budget::cut_level;
use crate::decide::age::{as_edits, protected};
use crate::decide::compact::{CompactionRequest, draft};
use crate::decide::summary::conversation::by_structure;
use crate::decide::{ConversationState, PlanStep, plan_step};
use crate::normalise::Slot;
use crate::observation::{outputs_of, show, shown_beside_media};
use crate::plan::{Edit, PlanReason};
use crate::policy::Rung;
use crate::view::retrieval::{AnswerLimits, LONGEST_REST_LINE};
use crate::view::tools::is_retrieval;

/// No output is cut below this many bytes if room is short, because less is of no use.
const LEAST_VIEW: usize = 400;
/// The approximate bytes that a shorter view adds: its marker and the marks of its gaps.
const MARKER: usize = 200;

/// A step that frees `excess` tokens, or as many as it can; none if it can free nothing.
pub fn step_for_rung(
    conversation: &ConversationState<'_>,
    rung: Rung,
    excess: u64,
    reason: &PlanReason,
) -> Option<PlanStep> {
    let call = conversation.call;
    let draft = match rung {
        Rung::LowerAnswer => {
            let (answer, least) = (call.answer_reserve(), call.least_answer());
            let lowered = answer.saturating_sub(excess).max(least);
            return (lowered < answer).then_some(PlanStep::LowerAnswer(lowered));
        }
        Rung::ShortenNew => return shorten(conversation, conversation.sent, excess, reason),
        Rung::Trim => return plan_step(reason, trim(conversation, excess), None),
        Rung::Compact => {
            let request = CompactionRequest {
                excess,
                ..CompactionRequest::new(reason.clone())
            };
            draft(conversation, &request)
        }
        Rung::DropHalfOfTurns => drop_half_of_turns(conversation, reason),
        Rung::DropOldest => drop_oldest(conversation, excess, reason),
    };
    draft.map(PlanStep::from)
}

/// The last resort: a step that also shortens outputs that were sent before, if the policy shortens
/// outputs at all. A model may have a smaller window than the one before it.
pub fn shorten_sent(
    conversation: &ConversationState<'_>,
    excess: u64,
    reason: &PlanReason,
) -> Option<PlanStep> {
    let shortens = conversation.policy.ladder.contains(&Rung::ShortenNew);
    shortens
        .then(|| shorten(conversation, 0, excess, reason))
        .flatten()
}

/// A step that shortens the outputs from position `first` of the log on: the longest first, all to
/// one level. Answers of the retrieval tools stay, because the model asked for exactly these lines.
fn shorten(
    conversation: &ConversationState<'_>,
    first: usize,
    excess: u64,
    reason: &PlanReason,
) -> Option<PlanStep> {
    let is_new = |slot: &&Slot| slot.source.in_log().is_some_and(|at| at >= first);
    let new = || conversation.slots.iter().filter(is_new);
    let calls = new().flat_map(|slot| slot.message.calls());
    let reads = calls.filter(|call| is_retrieval(&call.name));
    let reads: HashSet<&str> = reads.map(|call| call.id.as_str()).collect();
    // A client's own server with tools of these names does not know the window, and may answer at
    // any length. Our own answers are limited to as many bytes as there is room in tokens, plus one
    // line.
    let longest_page = AnswerLimits::for_room(conversation.call.messages_room(), 1).max_bytes;
    let is_page = |output: &Output, bytes: usize| {
        reads.contains(output.call_id.as_str()) && bytes <= longest_page + LONGEST_REST_LINE
    };
    let mut found: Vec<(&Slot, usize, Cow<'_, Output>, usize)> = Vec::new();
    for slot in new() {
        for (part, output) in outputs_of(&slot.message).filter(|(_, output)| has_text(output)) {
            let bytes = output.text().len();
            let is_whole = conversation.log.is_whole(slot.source.position(), part);
            if !is_whole && !is_page(&output, bytes) {
                found.push((slot, part, output, bytes));
            }
        }
    }
    let total: usize = found.iter().map(|(.., bytes)| bytes).sum();
    let excess = usize::try_from(excess).unwrap_or(usize::MAX);
    // Views are cut by bytes here: four bytes for each excess token, plus the marker.
    let wanted = total.saturating_sub(excess.saturating_mul(4).saturating_add(MARKER));
    let sizes: Vec<usize> = found.iter().map(|(.., bytes)| *bytes).collect();
    // One level for all: short outputs stay unchanged, and the longest ones are cut.
    let level = cut_level(sizes, wanted).max(LEAST_VIEW);
    let mut edits = Vec::new();
    for (slot, part, shown, bytes) in found {
        if bytes > level {
            let at = slot.source.position();
            let output = shorter_view(conversation, at, part, &shown, level);
            edits.extend(output.map(|output| show(&slot.message, at, part, output)));
        }
    }
    plan_step(reason, edits, None)
}

/// A view of an output within `bytes`, cut from the full output.
fn shorter_view(
    conversation: &ConversationState<'_>,
    at: usize,
    part: usize,
    shown: &Output,
    bytes: usize,
) -> Option<Output> {
    // Cut the original. A view of a view would count the lines of the first view, not those of the
    // output.
    let came = conversation.log.get(at).map(|message| outputs_of(message));
    let mut came = came.into_iter().flatten();
    let whole = came.find(|(place, came)| *place == part && has_text(came));
    let text = whole.as_ref().map_or(shown, |(_, came)| came);
    let text = text.text();
    shown_beside_media(shown, by_structure(&text, bytes, shown.stored.as_ref()))
}

/// True if a part of an output is text, which can be shortened. Its images cannot.
fn has_text(output: &Output) -> bool {
    output.content.iter().any(|part| part.as_text().is_some())
}

/// Shows old outputs as placeholders, oldest first, until `excess` tokens are free.
fn trim(conversation: &ConversationState<'_>, excess: u64) -> Vec<Edit> {
    let outputs = conversation.outputs();
    let views = protected(conversation);
    // The budget of all outputs after the removal, by the estimate that `over_budget` uses.
    let budget = outputs.tokens().saturating_sub(excess);
    let changes = outputs.over_budget(budget, |tool| views.protects(tool));
    as_edits(conversation.slots, changes)
}
