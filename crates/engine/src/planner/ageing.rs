//! Old outputs: when they are shortened, and how.

use trimtab_model::Output;

use super::rewrite::rewrite;
use super::{Conditions, Conversation, Step, plan};
use crate::compaction::archive::{self, ToolSummaries};
use crate::compaction::chunks::SummaryRequest;
use crate::normalise::{Slot, Source};
use crate::observation::show;
use crate::plan::{Edit, Plan, Reason};
use crate::policy::{Moment, Policy};
use crate::view::policy::Views;
use crate::view::retention::{note, retain_in};
use crate::view::{Change, Prefix};

/// How long the summary of one output may be, in tokens: 1,200 characters and some air.
const TOOL_SUMMARY_TOKENS: u64 = 600;

/// A way to shorten old outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgeingWay {
    /// All at once, at a switch point (ours).
    Rewrite,
    /// Placeholders above a budget (design `refs`).
    Placeholders,
    /// Prefixes above a budget (design `retention`).
    Prefixes,
    /// Archived above a number (design `archive`).
    Archive,
}

/// Outputs that are archived, for a model to summarise. Excerpts stand for them in the plan.
#[derive(Clone, Debug)]
pub struct Archived {
    /// The plan.
    pub plan: Plan,
    outputs: Vec<Output>,
    way_back: bool,
}

impl Archived {
    /// What to ask a model about the output at an index; none if there is no such output.
    pub fn request(&self, index: usize) -> Option<SummaryRequest> {
        let output = self.outputs.get(index)?;
        Some(archive::summary_request(output, TOOL_SUMMARY_TOKENS))
    }

    /// The plan with what a model wrote of each output instead of its excerpt; none where it
    /// wrote nothing usable.
    pub fn with_summaries(&self, written: &[Option<&str>]) -> Plan {
        let mut plan = self.plan.clone();
        let mut summaries = self.outputs.iter().zip(written);
        for edit in &mut plan.edits {
            if let Edit::Insert { message, .. } = edit
                && let Some((output, written)) = summaries.next()
            {
                *message = archive::tool_summary(output, *written, self.way_back).into();
            }
        }
        plan
    }
}

/// The ways that are tried at a moment, one after the other. The policy says which of them do
/// something.
pub fn ageing_ways(moment: Moment) -> &'static [AgeingWay] {
    use AgeingWay::{Archive, Placeholders, Prefixes, Rewrite};
    match moment {
        Moment::BeforeCall => &[Rewrite, Placeholders, Archive],
        Moment::AfterAnswer | Moment::BeforeFinal => &[Prefixes],
        Moment::AfterOutputs => &[Archive],
        Moment::AfterTurn | Moment::ByHand => &[],
    }
}

/// What `policy` does about old outputs in this way; none if there is nothing to do.
pub fn age(
    conversation: &Conversation<'_>,
    policy: &Policy,
    conditions: &Conditions<'_>,
    way: AgeingWay,
) -> Option<Step> {
    match way {
        AgeingWay::Rewrite => {
            let draft = rewrite(conversation, policy, conditions)?;
            Some(Step::Draft(Box::new(draft)))
        }
        AgeingWay::Placeholders => placeholders(conversation, policy, conditions),
        AgeingWay::Prefixes => prefixes(conversation, policy, conditions),
        AgeingWay::Archive => archived(conversation, policy, conditions.way_back),
    }
}

/// Old outputs are shown as `changes` say.
fn shortened(
    conversation: &Conversation<'_>,
    policy: &Policy,
    changes: Vec<Change>,
    note: Option<String>,
) -> Option<Step> {
    let edits = shows(conversation.slots, changes);
    let bound = policy.compaction.bound_reasoning;
    let plan = plan(
        Reason::OutputsOverBudget,
        edits,
        conversation.slots,
        &[],
        bound,
    );
    (!plan.is_empty()).then_some(Step::Plan(plan, note))
}

fn placeholders(
    conversation: &Conversation<'_>,
    policy: &Policy,
    conditions: &Conditions<'_>,
) -> Option<Step> {
    let placeholder = &policy.ageing.placeholder;
    if !placeholder.enabled {
        return None;
    }
    let budget = placeholder.budget.resolve(conditions.window);
    let log = conversation.window.measures().log;
    // No output can be over a budget that the whole log is within.
    if u64::from(log.sizes().text.bytes).div_ceil(4) <= budget {
        return None;
    }
    let protect = protected(policy);
    let outputs = conversation.projection.outputs();
    let changes = outputs.over_budget(budget, |tool| protect.protects(tool));
    shortened(conversation, policy, changes, None)
}

fn prefixes(
    conversation: &Conversation<'_>,
    policy: &Policy,
    conditions: &Conditions<'_>,
) -> Option<Step> {
    let prefix = &policy.ageing.prefix;
    if !prefix.enabled {
        return None;
    }
    let (used, budget) = (conditions.usage?.0.prompt(), prefix.input_budget);
    let keep = Prefix {
        chars: prefix.chars,
    };
    let outputs = conversation.projection.outputs();
    let changes = retain_in(&outputs, keep, (used, budget), conditions.way_back);
    let note = note(changes.len(), used, budget);
    shortened(conversation, policy, changes, Some(note))
}

fn archived(conversation: &Conversation<'_>, policy: &Policy, way_back: bool) -> Option<Step> {
    let archiving = &policy.ageing.archive;
    if !archiving.enabled || archiving.summaries == ToolSummaries::Off {
        return None;
    }
    let protect = protected(policy);
    let is_protected = |output: &Output| {
        let tool = output.tool.as_deref();
        tool.is_some_and(|tool| protect.protects(tool))
    };
    let before = |slot: &Slot| slot.source.position() < conversation.archive_from;
    let from = conversation.slots.partition_point(before);
    let outputs = conversation.projection.outputs();
    let mut over = archive::excess(&outputs, archiving.cutoff, from);
    over.retain(|at| !outputs.named_in(*at).iter().any(is_protected));
    if over.is_empty() {
        return None;
    }
    let slots = over.iter().filter_map(|at| conversation.slots.get(*at));
    let positions: Vec<usize> = slots.filter_map(position).collect();
    let outputs = archive::outputs_at(&outputs, &over);
    let mut edits = archive::archive(&positions);
    for output in &outputs {
        let summary = archive::tool_summary(output, None, way_back);
        edits.push(archive::at_the_end(summary, conversation.log.len()));
    }
    let bound = policy.compaction.bound_reasoning;
    let reason = Reason::OutputsOverBudget;
    let mut plan = plan(reason, edits, conversation.slots, &[], bound);
    plan.refs = outputs.iter().filter_map(|o| o.stored.clone()).collect();
    if archiving.summaries == ToolSummaries::Llm {
        return Some(Step::ToolSummaries(Box::new(Archived {
            plan,
            outputs,
            way_back,
        })));
    }
    Some(Step::Plan(plan, None))
}

/// The views of a policy, for the tools that they protect.
fn protected(policy: &Policy) -> Views {
    Views::new(&policy.views).unwrap_or_default()
}

/// Changes of slots as edits of the log. What a plan put in has no position there.
pub(super) fn shows(slots: &[Slot], changes: Vec<Change>) -> Vec<Edit> {
    let edit = |change: Change| {
        let slot = slots.get(change.message)?;
        let at = position(slot)?;
        Some(show(&slot.message, at, change.part, change.output))
    };
    changes.into_iter().filter_map(edit).collect()
}

pub(super) fn position(slot: &Slot) -> Option<usize> {
    match slot.source {
        Source::Log(at) => Some(at),
        Source::Inserted(_) => None,
    }
}
