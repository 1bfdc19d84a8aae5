//! The ladder: the ways to make a window smaller, in the order in which they are tried.
//!
//! The caller tries one rung after the other: it asks [`step_for_rung`](super::step_for_rung) for a
//! step and executes it, again and again as long as that makes the window smaller.

use super::dropping::drop_half_of_turns;
use super::overflow::Overflow;
use crate::decide::{ConversationState, PlanStep};
use crate::plan::PlanReason;
use crate::policy::Rung;
use crate::policy::{EstimateBy, Policy};

/// The rungs that make a window fit before it is sent.
pub fn rungs_before_call(policy: &Policy) -> Vec<Rung> {
    // A user who disabled automatic compaction still wants windows that fit, but no rounds that are
    // replaced without being asked.
    let replaces = |rung: &Rung| matches!(rung, Rung::Compact | Rung::DropHalfOfTurns);
    let rungs = policy.ladder.iter().copied();
    let allowed = rungs.filter(|rung| policy.compaction.auto || !replaces(rung));
    allowed.collect()
}

/// The rungs before a compaction, which may make the window fit without a summary. None if the
/// policy has no compaction to wait for.
pub fn rungs_before_summary(policy: &Policy) -> Vec<Rung> {
    if !waits_for_summary(policy) {
        return Vec::new();
    }
    let rungs = policy.ladder.iter().copied();
    // The rungs after the compaction must wait for the summary.
    rungs.take_while(|rung| *rung != Rung::Compact).collect()
}

/// The rungs after the provider rejected a window, and whether a model may be asked for the summary
/// of each; none if the error is to be passed on. `attempt` is the number of earlier rejections of
/// this call, and `by_new_outputs` says that new outputs are the cause.
pub fn rungs_after_overflow(
    policy: &Policy,
    overflow: &Overflow,
    attempt: u32,
    by_new_outputs: bool,
) -> Option<Vec<(Rung, bool)>> {
    let recovery = &policy.recovery;
    if !policy.compaction.auto || attempt >= recovery.retries {
        return None;
    }
    // A shorter answer does not shorten the prompt.
    let helps = |rung: &Rung| *rung != Rung::LowerAnswer || overflow.counts_answer;
    let own: Vec<Rung> = recovery.ladder.iter().copied().filter(helps).collect();
    // Each rejection starts one rung lower, so that a rung that did not help is not tried first
    // again.
    let attempt = usize::try_from(attempt).unwrap_or(usize::MAX);
    let lower = attempt.min(own.len().saturating_sub(1));
    let own = own.into_iter().skip(lower).map(|rung| (rung, true));
    let lower = overflow.lower_answer.then_some(Rung::LowerAnswer);
    let of_new_outputs = |rung: &Rung| by_new_outputs && *rung == Rung::ShortenNew;
    let new_outputs = policy.ladder.iter().copied().filter(of_new_outputs);
    let cheapest = lower.into_iter().chain(new_outputs);
    // The rungs that the policy uses before a call may still help.
    let all = policy.ladder.iter().copied().filter(helps);
    let without_model = |rung| (rung, false);
    let rungs = cheapest.map(without_model).chain(own);
    Some(rungs.chain(all.map(without_model)).collect())
}

/// Drops the oldest half of the turns if a design that begins with that considers the call too
/// large by its own estimate of messages, tools and answer.
pub fn drop_by_own_estimate(conversation: &ConversationState<'_>) -> Option<PlanStep> {
    let policy = conversation.policy;
    let begins = rungs_before_call(policy).first() == Some(&Rung::DropHalfOfTurns);
    if !begins || policy.estimate == EstimateBy::Ours {
        return None;
    }
    // The design counts differently from us, and its own count decides here.
    let call = conversation.trigger_inputs().call_tokens;
    let is_over = call > conversation.call.window?;
    let draft = is_over.then(|| drop_half_of_turns(conversation, &PlanReason::Fit));
    draft.flatten().map(PlanStep::from)
}

/// True if a compaction is one of the ways in which `policy` makes a window fit automatically.
pub(in crate::decide) fn waits_for_summary(policy: &Policy) -> bool {
    let compaction = &policy.compaction;
    compaction.enabled && compaction.auto && policy.fit && policy.ladder.contains(&Rung::Compact)
}
