//! What to do when the provider says that the window was too large.

use trimtab_engine::compaction::recovery::Rung;
use trimtab_engine::plan::Reason;
use trimtab_engine::planner::Asked;
use trimtab_wire::overflow::{Action, Kind, Verdict};

use super::bound::UnderWay;
use super::{Pending, Session, SessionError};

/// How much goes where the error does not say how much is too much, in percent of the window.
const UNKNOWN_EXCESS_PERCENT: u64 = 20;
/// What is left beside the figure that an error names, in percent: counts differ.
const MARGIN_PERCENT: u64 = 2;

/// What to do after an overflow.
#[derive(Debug)]
pub enum Recovered {
    /// Ask for [`Session::ready`] again, and send what it gives: it is smaller.
    Retry,
    /// The same, after this summary was asked for and finished.
    Summarise(Pending),
    /// Hand on the provider's own error.
    GiveUp,
}

impl Session {
    /// Makes the window smaller after the provider refused it.
    ///
    /// The figures of the error are remembered: a limit that is less than the window that was
    /// known replaces it. The number of attempts per call is the policy's.
    pub fn recover(&mut self, verdict: &Verdict) -> Result<Recovered, SessionError> {
        let policy = self.setup.policy.clone();
        let recovery = &policy.recovery;
        if !verdict.is_overflow() || !policy.compaction.auto || self.recovered >= recovery.retries {
            return Ok(Recovered::GiveUp);
        }
        // What was refused is not answered.
        self.under_way = UnderWay::Nothing;
        let excess = self.learn_excess(verdict)?;
        let step = self.recovered as usize;
        self.recovered += 1;
        self.usage = None;
        if verdict.action == Action::LowerReserve
            && self.step(Rung::LowerAnswer, excess, &Reason::Overflow)?
        {
            return Ok(Recovered::Retry);
        }
        let asked = Asked {
            reason: Reason::Overflow,
            excess,
            ..Asked::default()
        };
        // A shorter answer leaves a prompt as long as it is.
        let counts_answer = verdict.kind == Kind::PromptAndAnswer;
        let helps = |rung: &&Rung| **rung != Rung::LowerAnswer || counts_answer;
        let ladder: Vec<Rung> = recovery.ladder.iter().filter(helps).copied().collect();
        let first = ladder.get(step).or(ladder.last()).copied();
        let others = ladder.iter().skip(step + 1).copied();
        for rung in first.into_iter().chain(others) {
            if rung == Rung::Compact
                && let Some(pending) = self.draft(&asked)?
            {
                return Ok(Recovered::Summarise(pending));
            }
            if rung != Rung::Compact && self.step(rung, excess, &Reason::Overflow)? {
                return Ok(Recovered::Retry);
            }
        }
        // Whatever the policy tries by itself before a call may still help.
        for rung in policy.ladder.iter().filter(helps).copied() {
            if self.step(rung, excess, &Reason::Overflow)? {
                return Ok(Recovered::Retry);
            }
        }
        Ok(Recovered::GiveUp)
    }

    /// How many tokens have to go, by what the error says; its limit is remembered.
    fn learn_excess(&mut self, verdict: &Verdict) -> Result<u64, SessionError> {
        let (estimate, answer) = self.decide(|state, now| {
            let total = state.window.measures().total();
            (now.prompt_tokens(&total), now.answer())
        })?;
        let sizes = &verdict.sizes;
        // Other limits are in bytes.
        let in_tokens = matches!(verdict.kind, Kind::Prompt | Kind::PromptAndAnswer);
        if let Some(limit) = sizes.limit.filter(|limit| in_tokens && *limit > 0) {
            let known = self.setup.limits.window;
            if known.is_none_or(|window| limit < window) {
                self.setup.limits.window = Some(limit);
            }
        }
        let excess = match (sizes.excess(), sizes.actual, sizes.limit) {
            (Some(excess), _, _) => in_our_tokens(excess, sizes.actual, estimate + answer),
            _ => estimate * UNKNOWN_EXCESS_PERCENT / 100,
        };
        Ok(excess + estimate * MARGIN_PERCENT / 100)
    }
}

/// The provider's figure in our tokens: where its count is larger than our estimate, ours
/// has to go down by as much in proportion.
fn in_our_tokens(excess: u64, actual: Option<u64>, estimate: u64) -> u64 {
    match actual.filter(|actual| *actual > 0) {
        Some(actual) => {
            let ours = u128::from(excess) * u128::from(estimate) / u128::from(actual);
            u64::try_from(ours).unwrap_or(u64::MAX).max(1)
        }
        None => excess,
    }
}
