//! Old outputs: placeholders, prefixes, archives.

use trimtab_model::Output;

use super::{Now, State, plan};
use crate::compaction::archive::{self, ToolSummaries};
use crate::normalise::{Slot, Source};
use crate::observation::show;
use crate::plan::{Edit, Plan, Reason};
use crate::policy::{Moment, Policy};
use crate::view::policy::Views;
use crate::view::retention::{Retention, retain_in};
use crate::view::{Change, Prefix};

/// What is to be done about old outputs.
#[derive(Clone, Debug)]
pub struct Aged {
    /// The plan. Where outputs are archived, excerpts stand for them.
    pub plan: Plan,
    /// One line for the person who watches.
    pub note: Option<String>,
    /// The outputs that were archived, for a model to summarise; empty if nobody asks for it.
    pub to_summarise: Vec<Output>,
}

impl Aged {
    fn new(plan: Plan) -> Self {
        Self {
            plan,
            note: None,
            to_summarise: Vec::new(),
        }
    }

    /// The same plan with what a model wrote of each archived output instead of its excerpt;
    /// none where it wrote nothing usable.
    #[must_use]
    pub fn with_summaries(mut self, written: &[Option<String>]) -> Self {
        let outputs = std::mem::take(&mut self.to_summarise);
        let mut summaries = outputs.iter().zip(written);
        for edit in &mut self.plan.edits {
            let Edit::Insert { message, .. } = edit else {
                continue;
            };
            if let Some((output, written)) = summaries.next() {
                *message = archive::tool_summary(output, written.as_deref()).into();
            }
        }
        self
    }
}

/// What `policy` does about old outputs at this moment; none if there is nothing to do.
pub fn age(state: &State<'_>, policy: &Policy, now: &Now<'_>, moment: Moment) -> Option<Aged> {
    let aged = match moment {
        Moment::BeforeCall => placeholders(state, policy, now).or_else(|| archived(state, policy)),
        Moment::AfterAnswer | Moment::BeforeFinal => prefixes(state, policy, now),
        Moment::AfterOutputs => archived(state, policy),
        Moment::AfterTurn | Moment::ByHand => None,
    };
    aged.filter(|aged| !aged.plan.is_empty())
}

fn placeholders(state: &State<'_>, policy: &Policy, now: &Now<'_>) -> Option<Aged> {
    let placeholder = &policy.ageing.placeholder;
    if !placeholder.enabled {
        return None;
    }
    let budget = placeholder.budget.resolve(now.window);
    let log = state.window.measures().log;
    // No output can be over a budget that the whole log is within.
    if u64::from(log.sizes().text.bytes).div_ceil(4) <= budget {
        return None;
    }
    let protect = protected(policy);
    let outputs = state.projection.outputs();
    let changes = outputs.over_budget(budget, |tool| protect.protects(tool));
    let edits = shows(state.slots, changes);
    let bound = policy.compaction.bound_reasoning;
    Some(Aged::new(plan(
        Reason::OutputsOverBudget,
        edits,
        state.slots,
        &[],
        bound,
    )))
}

fn prefixes(state: &State<'_>, policy: &Policy, now: &Now<'_>) -> Option<Aged> {
    let prefix = &policy.ageing.prefix;
    if !prefix.enabled {
        return None;
    }
    let retention = Retention {
        input_budget: Some(prefix.input_budget),
        keep: Prefix {
            chars: prefix.chars,
        },
    };
    let (usage, _) = now.usage?;
    let retained = retain_in(&state.projection.outputs(), &retention, usage.prompt());
    let edits = shows(state.slots, retained.changes);
    let reason = Reason::OutputsOverBudget;
    let bound = policy.compaction.bound_reasoning;
    Some(Aged {
        note: retained.note,
        ..Aged::new(plan(reason, edits, state.slots, &[], bound))
    })
}

fn archived(state: &State<'_>, policy: &Policy) -> Option<Aged> {
    let archiving = &policy.ageing.archive;
    if !archiving.enabled || archiving.summaries == ToolSummaries::Off {
        return None;
    }
    let over = archive::excess_in(&state.projection.outputs(), archiving.cutoff);
    let protect = protected(policy);
    let over: Vec<&Slot> = over
        .iter()
        .filter_map(|at| state.slots.get(*at))
        .filter(|slot| {
            let named = |output: &Output| output.tool.as_deref().map(|tool| protect.protects(tool));
            !slot
                .message
                .outputs()
                .any(|output| named(output) == Some(true))
        })
        .collect();
    if over.is_empty() {
        return None;
    }
    let positions: Vec<usize> = over.iter().filter_map(|slot| position(slot)).collect();
    let outputs: Vec<Output> = over
        .iter()
        .flat_map(|slot| slot.message.outputs().cloned())
        .collect();
    let mut edits = archive::archive(&positions);
    for output in &outputs {
        let summary = archive::tool_summary(output, None);
        edits.push(archive::at_the_end(summary, state.log.len()));
    }
    let bound = policy.compaction.bound_reasoning;
    let mut aged = Aged::new(plan(
        Reason::OutputsOverBudget,
        edits,
        state.slots,
        &[],
        bound,
    ));
    aged.plan.refs = outputs.iter().filter_map(|o| o.stored.clone()).collect();
    if archiving.summaries == ToolSummaries::Llm {
        aged.to_summarise = outputs;
    }
    Some(aged)
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
