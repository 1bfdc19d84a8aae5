//! The ways to make a window smaller: the rungs of the ladder.

use std::borrow::Cow;
use std::collections::BTreeSet;

use trimtab_model::{Kind, Message, Output, Role};

use super::ageing::{position, shows};
use super::draft::{Asked, draft};
use super::survivors::{must_stay, task};
use super::{Conditions, Conversation, Step, is_ours, plan};
use crate::budget::level;
use crate::compaction::keep::Kept;
use crate::compaction::rebuild::{Placement, Replacement, rebuild};
use crate::compaction::recovery::{Rung, half_of_turns, with_note};
use crate::normalise::Slot;
use crate::observation::{outputs_of, show, shown_as};
use crate::plan::{Edit, Reason};
use crate::policy::Policy;
use crate::removal::Groups;
use crate::view::policy::Views;
use crate::view::{Given, Shape, Structure, view};

/// No output is shown shorter than this many bytes when room is short: less is of no use.
const LEAST_VIEW: usize = 400;
/// What a byte of a shorter view is worth less than a byte before: its marker and its gaps.
const MARKER: usize = 200;

/// One step that frees `excess` tokens, or as many as it can; none if it cannot do anything.
pub(super) fn rung(
    conversation: &Conversation<'_>,
    policy: &Policy,
    conditions: &Conditions<'_>,
    rung: Rung,
    excess: u64,
    reason: &Reason,
) -> Option<Step> {
    let (edits, gone) = match rung {
        Rung::LowerAnswer => {
            let lowered = lower(conditions.answer(), conditions.least_answer(), excess)?;
            return Some(Step::LowerAnswer(lowered));
        }
        Rung::Compact => {
            let asked = Asked {
                reason: reason.clone(),
                excess,
                ..Asked::default()
            };
            let draft = draft(conversation, policy, conditions, &asked)?;
            return Some(Step::Draft(Box::new(draft)));
        }
        Rung::ShortenNew => (shorten_new(conversation, excess), Vec::new()),
        Rung::Trim => (trim(conversation, policy, excess), Vec::new()),
        Rung::DropHalfOfTurns => drop_half(conversation, policy)?,
        Rung::DropOldest => {
            let gone = drop_oldest(conversation, policy, excess);
            let positions = gone.iter().filter_map(|at| conversation.slots.get(*at));
            let hide = |at: usize| Edit::Hide {
                from: at,
                to: at + 1,
            };
            let edits = positions.filter_map(position).map(hide).collect();
            (edits, gone)
        }
    };
    let bound = policy.compaction.bound_reasoning;
    let plan = plan(reason.clone(), edits, conversation.slots, &gone, bound);
    (!plan.is_empty()).then_some(Step::Plan(plan, None))
}

fn lower(answer: u64, least: u64, excess: u64) -> Option<u64> {
    let lowered = answer.saturating_sub(excess).max(least);
    (lowered < answer).then_some(lowered)
}

/// Outputs that nobody was sent yet, shown shorter: the longest first, all to one level.
fn shorten_new(conversation: &Conversation<'_>, excess: u64) -> Vec<Edit> {
    let mut found: Vec<(&Slot, usize, Cow<'_, Output>, usize)> = Vec::new();
    for slot in conversation.slots {
        if position(slot).is_none_or(|at| at < conversation.sent) {
            continue;
        }
        for (part, output) in outputs_of(&slot.message).filter(|(_, output)| is_plain(output)) {
            let bytes = output.text().len();
            found.push((slot, part, output, bytes));
        }
    }
    let total: usize = found.iter().map(|(.., bytes)| bytes).sum();
    let excess = usize::try_from(excess).unwrap_or(usize::MAX);
    let wanted = total.saturating_sub(excess.saturating_mul(4).saturating_add(MARKER));
    let sizes: Vec<usize> = found.iter().map(|(.., bytes)| *bytes).collect();
    let level = level(sizes, wanted).max(LEAST_VIEW);
    let mut edits = Vec::new();
    for (slot, part, shown, bytes) in found {
        if bytes > level {
            let at = slot.source.position();
            let output = shorter(conversation, at, part, &shown, level);
            edits.push(show(&slot.message, at, part, output));
        }
    }
    edits
}

fn is_plain(output: &Output) -> bool {
    matches!(output.content.as_slice(), [part] if part.as_text().is_some())
}

/// The view of an output within `bytes`, cut from all of it.
fn shorter(
    conversation: &Conversation<'_>,
    at: usize,
    part: usize,
    shown: &Output,
    bytes: usize,
) -> Output {
    let came = conversation.log.get(at).map(|message| outputs_of(message));
    let mut came = came.into_iter().flatten();
    let whole = came.find(|(place, came)| *place == part && is_plain(came));
    let text = whole.as_ref().map_or(shown, |(_, came)| came);
    let text = text.text().into_owned();
    let shape = Shape::Structure(Structure {
        cap: bytes as u64,
        ..Structure::default()
    });
    let given = Given {
        stored: shown.stored.as_ref(),
        ..Given::default()
    };
    shown_as(shown, view(&text, &shape, &given))
}

/// Old outputs as placeholders, oldest first, until `excess` is free.
fn trim(conversation: &Conversation<'_>, policy: &Policy, excess: u64) -> Vec<Edit> {
    let outputs = conversation.projection.outputs();
    let views = Views::new(&policy.views).unwrap_or_default();
    let budget = outputs.tokens().saturating_sub(excess);
    let changes = outputs.over_budget(budget, |tool| views.protects(tool));
    shows(conversation.slots, changes)
}

/// The oldest half of the turns goes, and a note in the summary says so.
fn drop_half(conversation: &Conversation<'_>, policy: &Policy) -> Option<(Vec<Edit>, Vec<usize>)> {
    let slots = conversation.slots;
    let said = slots.iter().enumerate().filter(|(_, slot)| is_said(slot));
    let (said, messages): (Vec<usize>, Vec<&Message>) =
        said.map(|(at, slot)| (at, &*slot.message)).unzip();
    let (gone, stays) = said.split_at_checked(half_of_turns(&messages)?)?;
    let before: BTreeSet<usize> = task(slots, conversation.opening)
        .filter(|at| gone.binary_search(at).is_ok())
        .collect();
    let question = slots.iter().rposition(|slot| slot.message.is_real_user());
    let question = question.filter(|at| gone.binary_search(at).is_ok() && !before.contains(at));
    let goes = |at: &usize| Some(*at) != question && !before.contains(at);
    let gone: Vec<usize> = gone.iter().copied().filter(goes).collect();
    if gone.is_empty() {
        return None;
    }
    let kept = Kept {
        behind: question.into_iter().chain(stays.iter().copied()).collect(),
        before,
        system_stays: conversation.system_stays(),
        ..Kept::default()
    };
    let replacement = Replacement {
        retain: said_before(slots, Kind::Retain, ""),
        summary: with_note(&previous_summary(slots, policy), gone.len()),
    };
    let edits = rebuild(slots, &kept, &replacement, &policy.compaction.placement);
    Some((edits, gone))
}

fn is_said(slot: &Slot) -> bool {
    slot.message.role != Role::System && !is_ours(&slot.message)
}

/// The text of the summary that holds now, without what we put before it.
fn previous_summary(slots: &[Slot], policy: &Policy) -> String {
    let prefix = match &policy.compaction.placement {
        Placement::Message { prefix } | Placement::System { prefix } => prefix,
    };
    said_before(slots, Kind::Summary, prefix)
}

pub(super) fn said_before(slots: &[Slot], kind: Kind, prefix: &str) -> String {
    let mut said = slots.iter().rev().map(|slot| &slot.message);
    let said = said.find(|message| message.meta.kind == Some(kind));
    let text = said.map(|message| message.text()).unwrap_or_default();
    text.strip_prefix(prefix).unwrap_or(&text).to_owned()
}

/// The oldest messages with their counterparts, until `excess` tokens are free; never the
/// task, the newest question or the newest round.
fn drop_oldest(conversation: &Conversation<'_>, policy: &Policy, excess: u64) -> Vec<usize> {
    let slots = conversation.slots;
    let must = must_stay(slots, conversation.opening);
    let groups = Groups::of(slots);
    let mut gone: BTreeSet<usize> = BTreeSet::new();
    let mut freed = 0u64;
    for (at, slot) in slots.iter().enumerate() {
        if freed >= excess && !gone.is_empty() {
            break;
        }
        if !is_said(slot) || position(slot).is_none() || must.contains(&at) || gone.contains(&at) {
            continue;
        }
        for one in groups.together([at]) {
            if let Some(slot) = slots.get(one).filter(|_| gone.insert(one)) {
                freed = freed.saturating_add(policy.estimate.message(&slot.message));
            }
        }
    }
    gone.into_iter().collect()
}
