//! The ladder: decides which way to make a window smaller is tried next.

use std::collections::VecDeque;

use super::ladder_steps::{shorten, step_for_rung};
use super::media::media_to_shed;
use super::overflow::Overflow;
use super::{ConversationState, PlanStep};
use crate::budget::FloorTooLarge;
use crate::compaction::recovery::Rung;
use crate::plan::PlanReason;
use crate::policy::{EstimateBy, Policy};

/// The limit of steps. Each step makes the window smaller, so only a bug in this code can reach it.
const STEPS: usize = 64;

/// The next step on the ladder.
#[derive(Clone, Debug)]
pub enum NextStep {
    /// Execute this step, and say whether it made the window smaller.
    Step(PlanStep),
    /// The same; there is time to ask a model for the summary of the draft.
    Summarise(PlanStep),
    /// The goal is reached.
    Done,
    /// No rung is left. Contains the reason why the window does not fit.
    Stuck(Misfit),
}

/// Why a window does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The floor is larger than the window.
    TooLarge(FloorTooLarge),
    /// The policy allows nothing that would help.
    OverBudget {
        /// The size of the window and its answer.
        tokens: u64,
        /// The model's window.
        window: u64,
    },
}

/// The goal of a ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LadderGoal {
    /// The window fits. Each rung is used as long as it helps.
    Fits,
    /// The window fits. Each rung is used once.
    FitsCheaply,
    /// One step made the window smaller; it should free this many tokens.
    OneStep { excess: u64 },
}

/// The ways to make a window smaller, in the order in which they are tried.
///
/// Ask for the [`next`](Self::next) step, execute it, and report whether it helped when asking
/// again.
#[derive(Clone, Debug)]
pub struct Ladder {
    /// The remaining rungs, and whether a model may be asked for the summary of each.
    rungs: VecDeque<(Rung, bool)>,
    goal: LadderGoal,
    reason: PlanReason,
    steps: usize,
    /// True once the window was checked by the design's own estimate.
    is_judged: bool,
    /// True if outputs that were sent may be shortened once no other rung is left.
    shortens_sent: bool,
}

impl Ladder {
    fn new(rungs: impl IntoIterator<Item = Rung>, goal: LadderGoal, reason: PlanReason) -> Self {
        Self {
            rungs: rungs.into_iter().map(|rung| (rung, false)).collect(),
            goal,
            reason,
            steps: 0,
            is_judged: false,
            shortens_sent: false,
        }
    }

    /// The same, and as the last resort it shortens outputs that were sent before, if the policy
    /// shortens outputs at all. A model may have a smaller window than the one before it.
    fn with_last_resort(self, policy: &Policy) -> Self {
        Self {
            shortens_sent: policy.ladder.contains(&Rung::ShortenNew),
            ..self
        }
    }

    /// Makes a window fit before it is sent.
    pub fn before_call(policy: &Policy) -> Self {
        // A user who disabled automatic compaction still wants windows that fit, but no rounds
        // that are replaced without being asked.
        let replaces = |rung: &Rung| matches!(rung, Rung::Compact | Rung::DropHalfOfTurns);
        let rungs = policy.ladder.iter().copied();
        let allowed = rungs.filter(|rung| policy.compaction.auto || !replaces(rung));
        Self::new(allowed, LadderGoal::Fits, PlanReason::Fit).with_last_resort(policy)
    }

    /// The rungs before a compaction, which may make the window fit without a summary. None if the
    /// policy has no compaction to wait for.
    pub fn before_summary(policy: &Policy) -> Option<Self> {
        if !waits_for_summary(policy) {
            return None;
        }
        let rungs = policy.ladder.iter().copied();
        // The rungs after the compaction must wait for the summary.
        let cheap = rungs.take_while(|rung| *rung != Rung::Compact);
        Some(Self::new(cheap, LadderGoal::FitsCheaply, PlanReason::Fit))
    }

    /// The steps after the provider rejected a window, which should lose `excess` tokens, and at
    /// least `over_window` to fit the known window; none if the error is to be passed on. `attempt`
    /// is the number of earlier rejections of this call, and `by_new_outputs` says that new outputs
    /// are the cause.
    pub fn after_overflow(
        policy: &Policy,
        overflow: &Overflow,
        attempt: u32,
        by_new_outputs: bool,
        (excess, over_window): (u64, u64),
    ) -> Option<Self> {
        let recovery = &policy.recovery;
        if !policy.compaction.auto || attempt >= recovery.retries {
            return None;
        }
        // A shorter answer does not shorten the prompt.
        let helps = |rung: &Rung| *rung != Rung::LowerAnswer || overflow.counts_answer;
        let own: Vec<Rung> = recovery.ladder.iter().copied().filter(helps).collect();
        let attempt = usize::try_from(attempt).unwrap_or(usize::MAX);
        // Each rejection starts one rung lower, so that a rung that did not help is not tried
        // first again.
        let first = own.get(attempt).or(own.last()).copied();
        let others = own.iter().skip(attempt.saturating_add(1)).copied();
        let own = first.into_iter().chain(others);
        // The rungs that the policy uses before a call may still help.
        let all = policy.ladder.iter().copied().filter(helps);
        let lower = overflow.lower_answer.then_some(Rung::LowerAnswer);
        // If the error does not say how much is too much, a design that drops one message after
        // another begins with one.
        let drops_one = first == Some(Rung::DropOldest) && attempt == 0;
        let excess = match overflow.excess {
            None if drops_one => 1,
            _ => excess,
        };
        // One step should make the window fit. Otherwise a second one would replace most of it
        // right after the first.
        let excess = excess.max(over_window);
        let goal = LadderGoal::OneStep { excess };
        let of_new_outputs = |rung: &Rung| by_new_outputs && *rung == Rung::ShortenNew;
        let new_outputs = policy.ladder.iter().copied().filter(of_new_outputs);
        let cheapest = lower.into_iter().chain(new_outputs);
        let mut ladder = Self::new(cheapest, goal, PlanReason::Overflow).with_last_resort(policy);
        ladder.rungs.extend(own.map(|rung| (rung, true)));
        ladder.rungs.extend(all.map(|rung| (rung, false)));
        Some(ladder)
    }

    /// Drops the oldest half of the turns, once, if a design that begins with that considers the
    /// call too large by its own estimate of messages, tools and answer.
    fn by_design(&mut self, conversation: &ConversationState<'_>) -> Option<PlanStep> {
        let begins = self.rungs.front() == Some(&(Rung::DropHalfOfTurns, false));
        let has_estimate = conversation.policy.estimate != EstimateBy::Ours;
        if !begins || !has_estimate || self.goal != LadderGoal::Fits || self.is_judged {
            return None;
        }
        self.is_judged = true;
        // The design counts differently from us, and its own count decides here.
        let call = conversation.trigger_inputs().call_tokens;
        let excess = call
            .checked_sub(conversation.call.window?)
            .filter(|over| *over > 0)?;
        let way = Rung::DropHalfOfTurns;
        step_for_rung(conversation, way, excess, &self.reason)
    }

    /// The reason of its plans.
    pub fn reason(&self) -> &PlanReason {
        &self.reason
    }

    /// The next step. `helped` says whether the previous one made the window smaller; none if there
    /// was none.
    pub fn next(&mut self, helped: Option<bool>, conversation: &ConversationState<'_>) -> NextStep {
        let first = self.steps == 0;
        if first && self.goal == LadderGoal::Fits && helped.is_none() {
            // A request with too many bytes is rejected however many tokens are free, so media come
            // before all rungs.
            let media = media_to_shed(conversation);
            if !media.is_empty() {
                return NextStep::Step(PlanStep::Media(media));
            }
        }
        if let Some(step) = self.by_design(conversation) {
            return NextStep::Step(step);
        }
        // A rung is used again as long as it helps.
        if !first && (helped == Some(false) || self.goal == LadderGoal::FitsCheaply) {
            self.rungs.pop_front();
        }
        loop {
            let excess = match self.goal {
                LadderGoal::OneStep { .. } if helped == Some(true) => return NextStep::Done,
                LadderGoal::OneStep { excess } => excess,
                _ => match conversation.excess() {
                    Some(excess) => excess,
                    None => return NextStep::Done,
                },
            };
            // The floor may be too large. Then no rung helps, and the error names the part.
            if first
                && !matches!(self.goal, LadderGoal::OneStep { .. })
                && let Err(floor) = conversation.check_hard_floor()
            {
                return NextStep::Stuck(Misfit::TooLarge(floor));
            }
            // The limit ends a rung that claims to help forever.
            let Some(&(way, asks)) = self.rungs.front().filter(|_| self.steps < STEPS) else {
                let last = std::mem::take(&mut self.shortens_sent);
                let step = last.then(|| shorten(conversation, 0, excess, &self.reason));
                let stuck = || NextStep::Stuck(misfit(conversation));
                return step.flatten().map_or_else(stuck, NextStep::Step);
            };
            self.steps += 1;
            match step_for_rung(conversation, way, excess, &self.reason) {
                Some(step) if asks && way == Rung::Compact => return NextStep::Summarise(step),
                Some(step) => return NextStep::Step(step),
                None => self.rungs.pop_front(),
            };
        }
    }
}

/// True if a compaction is one of the ways in which `policy` makes a window fit automatically.
pub(super) fn waits_for_summary(policy: &Policy) -> bool {
    let compaction = &policy.compaction;
    compaction.enabled && compaction.auto && policy.fit && policy.ladder.contains(&Rung::Compact)
}

fn misfit(conversation: &ConversationState<'_>) -> Misfit {
    if let Err(floor) = conversation.check_floor() {
        return Misfit::TooLarge(floor);
    }
    let prompt = conversation.prompt_tokens();
    Misfit::OverBudget {
        tokens: prompt.saturating_add(conversation.call.answer_reserve()),
        window: conversation.call.window.unwrap_or_default(),
    }
}
