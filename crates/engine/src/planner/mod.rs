//! Planning: what to do before a call, as pure functions of values.
//!
//! [`ConversationState`] is the conversation as it stands, [`CallConditions`] is what is known
//! beside it, a [`Policy`](crate::policy::Policy) says what is wanted. Out comes nothing or a
//! [`PlanStep`]: a plan, or a [`CompactionDraft`] of one, which says what has to be stored, and
//! perhaps summarised, before it can be carried out.
//!
//! - [`age`] decides about old outputs, at the moments that [`ageing_methods`] lists;
//! - [`time_to_compact`] asks the triggers, [`draft`](draft()) says what a compaction would be;
//! - [`Ladder`] makes a window fit, step by step, before a call and after an overflow.
//!
//! How an output is shown when it comes in is decided in [`admission`](crate::admission).

mod ageing;
mod briefing;
mod conditions;
mod draft;
mod dropping;
mod floor;
mod ladder;
mod ladder_steps;
mod media;
mod output_digest;
mod overflow;
mod rewrite;
mod survivors;
mod timing;

pub use ageing::{AgeingMethod, ArchivedOutputs, age, ageing_methods};
pub use conditions::{CallConditions, ConversationState, conservative_tokens};
pub use draft::{CompactionDraft, CompactionRequest, EstimateTokens, FinishedCompaction, draft};
pub use dropping::DropDraft;
pub use ladder::{Ladder, Misfit, NextStep};
pub use media::MediaPlace;
pub use overflow::Overflow;
pub use rewrite::{PriceCliff, RewriteAccount, SwitchReason, TokenRates};
pub use timing::{
    failed_before, gained_enough, is_suspended, is_worth_it, should_warn, time_to_compact,
};

use trimtab_model::{Message, MessageKind, Part, Ref, Role, work};

use crate::normalise::{MessageSource, Slot};
use crate::plan::{Edit, Plan, PlanReason};
use crate::policy::BoundReasoning;

/// Something to do about a window.
#[derive(Clone, Debug)]
pub enum PlanStep {
    /// Carry out this plan, with a line for the person who watches.
    Plan(Plan, Option<String>),
    /// Store what this replaces, then finish it.
    Draft(Box<CompactionDraft>),
    /// Store what goes, then carry out its plan.
    Drop(Box<DropDraft>),
    /// Ask a model for a few words on each of these outputs.
    ToolSummaries(Box<ArchivedOutputs>),
    /// Store these media where they are not stored, then show them as text.
    Media(Vec<MediaPlace>),
    /// Reserve no more than this for the answer.
    LowerAnswer(u64),
}

impl PlanStep {
    /// The position behind the last output that it archives; none if it archives none.
    pub fn archived_before(&self) -> Option<usize> {
        let edits = match self {
            Self::Plan(plan, _) => &plan.edits,
            Self::ToolSummaries(archived) => &archived.plan.edits,
            Self::Draft(_) | Self::Drop(_) | Self::Media(_) | Self::LowerAnswer(_) => return None,
        };
        let archived = edits.iter().filter_map(|edit| match edit {
            Edit::Archive { message } => Some(message + 1),
            _ => None,
        });
        archived.max()
    }
}

/// A plan of `edits`, which take out no slots.
fn plan(conversation: &ConversationState<'_>, reason: PlanReason, edits: Vec<Edit>) -> Plan {
    let bound = conversation.policy.compaction.bound_reasoning;
    plan_without(reason, edits, conversation.slots, &[], bound)
}

/// A plan of `edits`, which take out the slots at `gone`: it names every ref among them, and
/// leaves out reasoning that a provider would refuse behind a change.
fn plan_without(
    reason: PlanReason,
    mut edits: Vec<Edit>,
    slots: &[Slot],
    gone: &[usize],
    bound: BoundReasoning,
) -> Plan {
    if bound == BoundReasoning::Strip
        && let Some(before) = bound_reasoning_after_edits(&edits, slots)
    {
        edits.push(Edit::StripReasoning { before });
    }
    let mut plan = Plan::new(reason, edits);
    let hidden = gone.iter().filter_map(|at| slots.get(*at));
    plan.name_refs(hidden.flat_map(|slot| refs(&slot.message)));
    plan
}

/// The plan as it has to be for a conversation that has gone on since it was made: bound
/// reasoning that came meanwhile stands behind its changes too.
#[must_use]
pub fn update_plan(mut plan: Plan, slots: &[Slot], bound: BoundReasoning) -> Plan {
    if bound == BoundReasoning::Strip
        && let Some(before) = bound_reasoning_after_edits(&plan.edits, slots)
    {
        let strips = |edit: &Edit| matches!(edit, Edit::StripReasoning { .. });
        plan.edits.retain(|edit| !strips(edit));
        plan.edits.push(Edit::StripReasoning { before });
    }
    plan
}

fn refs(message: &Message) -> impl Iterator<Item = &Ref> {
    message
        .outputs()
        .filter_map(|output| output.stored.as_ref())
}

/// The position behind the last bound reasoning that stands behind the first change; none if
/// there is no such reasoning.
pub(crate) fn bound_reasoning_after_edits(edits: &[Edit], slots: &[Slot]) -> Option<usize> {
    bound_reasoning_from(edits.iter().map(first_affected).min()?, slots)
}

/// The position behind the last bound reasoning from `first` on; none if there is none.
pub fn bound_reasoning_from(first: usize, slots: &[Slot]) -> Option<usize> {
    let newest_first = slots.iter().rev();
    let mut behind = newest_first.take_while(|slot| slot.source.position() >= first);
    behind.find_map(|slot| {
        work::step(1);
        match slot.source {
            MessageSource::Log(at) if has_bound_reasoning(&slot.message) => Some(at + 1),
            _ => None,
        }
    })
}

/// The first position that stands behind a change.
fn first_affected(edit: &Edit) -> usize {
    match edit {
        Edit::Show { message, .. }
        | Edit::ShowAsText { message, .. }
        | Edit::Archive { message } => message + 1,
        Edit::Hide { from, .. } => *from,
        // What the system says stands before everything in some dialects.
        Edit::Insert { message, .. } if message.role == Role::System => 0,
        Edit::Insert { before, .. } => *before,
        // What it takes out stands somewhere before; what matters is that it changes bytes.
        Edit::Withdraw { .. } => 0,
        Edit::StripReasoning { .. } => usize::MAX,
    }
}

fn has_bound_reasoning(message: &Message) -> bool {
    message
        .parts
        .iter()
        .any(|part| matches!(part, Part::Reasoning(thought) if thought.is_sealed()))
}

/// True for what we put in ourselves, in this or an earlier compaction.
fn is_ours(message: &Message) -> bool {
    matches!(
        message.meta.kind,
        Some(
            MessageKind::Summary
                | MessageKind::Retain
                | MessageKind::ToolSummary
                | MessageKind::Note
        )
    )
}

/// True for what an earlier compaction left: by itself it is nothing to compact again.
fn is_summary(message: &Message) -> bool {
    matches!(
        message.meta.kind,
        Some(MessageKind::Summary | MessageKind::Retain | MessageKind::Note)
    )
}
