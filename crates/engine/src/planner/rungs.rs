//! The ladder that makes a window fit: one step at a time, each of which must shrink it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use trimtab_model::{Kind, Message, Output, Part, Role};

use super::ageing::{position, shows};
use super::draft::{Asked, Draft, draft};
use super::survivors::{must_stay, task};
use super::{Now, State, is_ours, plan};
use crate::budget::level;
use crate::compaction::keep::Kept;
use crate::compaction::rebuild::{Placement, Replacement, rebuild};
use crate::compaction::recovery::{Rung, half_of_turns, with_note};
use crate::normalise::Slot;
use crate::observation::{outputs_of, show};
use crate::plan::{Edit, Plan, Reason};
use crate::policy::Policy;
use crate::removal::Groups;
use crate::view::policy::Views;
use crate::view::trim::{estimate, trim_outputs};
use crate::view::{Given, Shape, Structure, view};

/// No output is shown shorter than this many bytes when room is short: less is of no use.
const LEAST_VIEW: usize = 400;
/// What a byte of a shorter view is worth less than a byte before: its marker and its gaps.
const MARKER: usize = 200;

/// What a rung comes to.
#[derive(Clone, Debug)]
pub enum Step {
    /// A plan.
    Plan(Plan),
    /// A compaction, to be finished without a model.
    Compact(Box<Draft>),
    /// A smaller reserve for the answer.
    LowerAnswer(u64),
}

/// What a rung is to achieve.
#[derive(Clone, Debug)]
pub struct Need {
    /// How many tokens have to go.
    pub excess: u64,
    /// Why.
    pub reason: Reason,
    /// What is reserved for the answer now.
    pub answer: u64,
}

/// One step of the ladder that frees the tokens that have to go, or as many as it can; none
/// if it cannot do anything.
pub fn rung(
    state: &State<'_>,
    policy: &Policy,
    now: &Now<'_>,
    rung: Rung,
    need: &Need,
) -> Option<Step> {
    let Need {
        excess,
        reason,
        answer,
    } = need;
    let (excess, answer) = (*excess, *answer);
    let bound = policy.compaction.bound_reasoning;
    let edits_of = |edits: Vec<Edit>, gone: &[usize]| {
        let made = plan(reason.clone(), edits, state.slots, gone, bound);
        (!made.is_empty()).then_some(Step::Plan(made))
    };
    match rung {
        Rung::LowerAnswer => lower(answer, now.least_answer(), excess).map(Step::LowerAnswer),
        Rung::ShortenNew => edits_of(shorten_new(state, excess), &[]),
        Rung::Trim => edits_of(trim(state, policy, excess), &[]),
        Rung::Compact => {
            let asked = Asked {
                reason: reason.clone(),
                excess,
                ..Asked::default()
            };
            let draft = draft(state, policy, now, &asked)?;
            Some(Step::Compact(Box::new(draft)))
        }
        Rung::DropHalfOfTurns => {
            let (edits, gone) = drop_half(state, policy, now.opening)?;
            edits_of(edits, &gone)
        }
        Rung::DropOldest => {
            let gone = drop_oldest(state, policy, now.opening, excess);
            let positions = gone.iter().filter_map(|at| state.slots.get(*at));
            let hide = |at: usize| Edit::Hide {
                from: at,
                to: at + 1,
            };
            let edits = positions.filter_map(position).map(hide).collect();
            edits_of(edits, &gone)
        }
    }
}

fn lower(answer: u64, least: u64, excess: u64) -> Option<u64> {
    let lowered = answer.saturating_sub(excess).max(least);
    (lowered < answer).then_some(lowered)
}

/// Outputs that nobody was sent yet, shown shorter: the longest first, all to one level.
fn shorten_new(state: &State<'_>, excess: u64) -> Vec<Edit> {
    let mut found: Vec<(&Slot, usize, Cow<'_, Output>, usize)> = Vec::new();
    for slot in state.slots {
        if position(slot).is_none_or(|at| at < state.sent) {
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
            let output = shorter(state, at, part, &shown, level);
            edits.push(show(&slot.message, at, part, output));
        }
    }
    edits
}

fn is_plain(output: &Output) -> bool {
    matches!(output.content.as_slice(), [part] if part.as_text().is_some())
}

/// The view of an output within `bytes`, cut from all of it.
fn shorter(state: &State<'_>, at: usize, part: usize, shown: &Output, bytes: usize) -> Output {
    let came = state.log.get(at).map(|message| outputs_of(message));
    let mut came = came.into_iter().flatten();
    let whole = came.find(|(place, came)| *place == part && is_plain(came));
    let text = whole.as_ref().map_or(shown, |(_, came)| came);
    let text = text.text().into_owned();
    let shape = Shape::Structure(Structure { cap: bytes as u64 });
    let given = Given {
        stored: shown.stored.as_ref(),
        ..Given::default()
    };
    let view = view(&text, &shape, &given);
    Output {
        content: vec![Part::text(view.text)],
        trimmed: true,
        ..shown.clone()
    }
}

/// Old outputs as placeholders, oldest first, until `excess` is free.
fn trim(state: &State<'_>, policy: &Policy, excess: u64) -> Vec<Edit> {
    let visible = state
        .slots
        .iter()
        .filter(|slot| slot.message.agent_visible());
    let outputs = visible.flat_map(|slot| outputs_of(&slot.message));
    let total: u64 = outputs.map(|(_, output)| estimate(&output.text())).sum();
    let views = Views::new(&policy.views).unwrap_or_default();
    let budget = total.saturating_sub(excess);
    let changes = trim_outputs(state.slots, budget, |tool| views.protects(tool));
    shows(state.slots, changes)
}

/// The oldest half of the turns goes, and a note in the summary says so.
fn drop_half(
    state: &State<'_>,
    policy: &Policy,
    opening: usize,
) -> Option<(Vec<Edit>, Vec<usize>)> {
    let said: Vec<usize> = (0..state.slots.len())
        .filter(|at| state.slots.get(*at).is_some_and(is_said))
        .collect();
    let messages: Vec<&Message> = said
        .iter()
        .filter_map(|at| state.slots.get(*at))
        .map(|slot| &*slot.message)
        .collect();
    let cut = half_of_turns(&messages)?;
    let (gone, stays) = said.split_at_checked(cut)?;
    let question = state
        .slots
        .iter()
        .rposition(|slot| slot.message.is_real_user());
    let before: BTreeSet<usize> = task(state.slots, opening)
        .filter(|at| gone.contains(at))
        .collect();
    let question = question.filter(|at| gone.contains(at) && !before.contains(at));
    let kept = Kept {
        behind: question.into_iter().chain(stays.iter().copied()).collect(),
        before,
        system_stays: state.system_stays(),
        ..Kept::default()
    };
    let gone: Vec<usize> = gone
        .iter()
        .copied()
        .filter(|at| Some(*at) != question && !kept.before.contains(at))
        .collect();
    if gone.is_empty() {
        return None;
    }
    let replacement = Replacement {
        retain: said_before(state.slots, Kind::Retain, ""),
        summary: with_note(&previous_summary(state.slots, policy), gone.len()),
    };
    let edits = rebuild(
        state.slots,
        &kept,
        &replacement,
        &policy.compaction.placement,
    );
    Some((edits, gone))
}

fn is_said(slot: &Slot) -> bool {
    slot.message.role != Role::System && !is_ours(&slot.message)
}

/// The text of the summary that holds now, without what we put before it.
pub(super) fn previous_summary(slots: &[Slot], policy: &Policy) -> String {
    let prefix = match &policy.compaction.placement {
        Placement::Message { prefix } | Placement::System { prefix } => prefix,
    };
    said_before(slots, Kind::Summary, prefix)
}

pub(super) fn said_before(slots: &[Slot], kind: Kind, prefix: &str) -> String {
    let said = slots
        .iter()
        .rfind(|slot| slot.message.meta.kind == Some(kind));
    let text = said
        .map(|slot| slot.message.text().into_owned())
        .unwrap_or_default();
    text.strip_prefix(prefix).map(str::to_owned).unwrap_or(text)
}

/// The oldest messages with their counterparts, until `excess` tokens are free; never the
/// task, the newest question or the newest round.
fn drop_oldest(state: &State<'_>, policy: &Policy, opening: usize, excess: u64) -> Vec<usize> {
    let must = must_stay(state.slots, opening);
    let groups = Groups::of(state.slots);
    let mut gone: BTreeSet<usize> = BTreeSet::new();
    let mut freed = 0u64;
    for (at, slot) in state.slots.iter().enumerate() {
        if freed >= excess && !gone.is_empty() {
            break;
        }
        if !is_said(slot) || position(slot).is_none() || must.contains(&at) || gone.contains(&at) {
            continue;
        }
        for one in groups.together([at]) {
            if let Some(slot) = state.slots.get(one)
                && gone.insert(one)
            {
                freed = freed.saturating_add(policy.estimate.message(&slot.message));
            }
        }
    }
    gone.into_iter().collect()
}
