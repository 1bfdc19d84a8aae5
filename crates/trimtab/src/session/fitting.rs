//! Making the window fit before it is sent.

use trimtab_engine::compaction::recovery::Rung;
use trimtab_engine::plan::{Plan, Reason};
use trimtab_engine::planner::{self, Need, Step};

use trimtab_model::Ref;
use trimtab_store::Put;

use super::bound::UnderWay;
use super::{Event, EventKind, Session, SessionError};

/// How many steps are taken at most: each makes the window smaller, so this is never reached
/// but by a mistake of ours.
const STEPS: usize = 64;

/// A window that fits, ready to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// How long an answer to ask for, in tokens, where it had to be lowered or is known.
    pub max_output: Option<u64>,
    /// The tokens of the window by estimate, tool definitions included.
    pub tokens: u64,
}

impl Session {
    /// Makes the window fit, step by step, and counts it as sent. [`window`](Self::window) is
    /// what to send then.
    ///
    /// An error names what alone is too large, or says that the policy forbids what would
    /// help. Nothing is lost by it.
    pub fn ready(&mut self) -> Result<Ready, SessionError> {
        self.windows += 1;
        self.handed_out = None;
        if self.setup.policy.fit {
            self.fit()?;
        }
        let tokens = self.decide(|state, now| {
            let total = state.window.measures().total();
            (now.prompt_tokens(&total), total)
        })?;
        self.sent = self.projection.log().len();
        self.cold = false;
        self.under_way = UnderWay::Answer;
        self.handed_out = Some(tokens.1);
        Ok(Ready {
            max_output: self.lowered.or(self.setup.limits.max_output),
            tokens: tokens.0,
        })
    }

    fn fit(&mut self) -> Result<(), SessionError> {
        self.shed_media()?;
        let policy = self.setup.policy.clone();
        let mut rungs = policy.ladder.iter().copied().filter(|rung| {
            policy.compaction.auto || !matches!(rung, Rung::Compact | Rung::DropHalfOfTurns)
        });
        let mut rung = rungs.next();
        if self.excess()?.is_some() {
            self.decide(|state, now| now.check_hard_floor(state.window))??;
        }
        for _ in 0..STEPS {
            let Some(excess) = self.excess()? else {
                return Ok(());
            };
            let Some(step) = rung else {
                return Err(self.does_not_fit()?);
            };
            if !self.step(step, excess, &Reason::Fit)? {
                rung = rungs.next();
            }
        }
        Err(self.does_not_fit()?)
    }

    /// Shows the oldest media as text, behind refs, while a request would have too many bytes.
    fn shed_media(&mut self) -> Result<(), SessionError> {
        let places = self.decide(planner::media_to_shed)?;
        let (mut edits, mut refs) = (Vec::new(), Vec::new());
        for (at, place) in places.into_iter().enumerate() {
            let stored = match place.to_store() {
                Some(raw) => {
                    let call = format!("media-{}-{at}", self.journal_position);
                    let put = Put::new(&call, raw).media_type("application/json");
                    Some(self.store.put(&self.id, put)?)
                }
                None => None,
            };
            edits.push(place.edit(stored.as_ref().map(Ref::id)));
            refs.extend(stored);
        }
        if !edits.is_empty() {
            let mut plan = Plan::new(Reason::Fit, edits);
            plan.refs.extend(refs);
            self.carry_out_quietly(plan, EventKind::Trimmed, |event| event)?;
        }
        Ok(())
    }

    /// True if the window does not fit, and all that the ladder has before a compaction does
    /// not make it: then there is time to ask for a summary.
    pub(super) fn needs_compaction(&mut self) -> Result<bool, SessionError> {
        let ladder = self.setup.policy.ladder.clone();
        if !self.setup.policy.fit || !ladder.contains(&Rung::Compact) {
            return Ok(false);
        }
        if self.excess()?.is_none() {
            return Ok(false);
        }
        let hopeless = self.decide(|state, now| now.check_hard_floor(state.window).is_err())?;
        if hopeless {
            return Ok(false);
        }
        for rung in ladder.into_iter().take_while(|rung| *rung != Rung::Compact) {
            let Some(excess) = self.excess()? else {
                return Ok(false);
            };
            self.step(rung, excess, &Reason::Fit)?;
        }
        Ok(self.excess()?.is_some())
    }

    /// True if the window fits as it is, or its model's window is not known.
    pub fn fits(&mut self) -> Result<bool, SessionError> {
        Ok(self.excess()?.is_none())
    }

    /// How many tokens the window is over; none if it fits.
    pub(super) fn excess(&mut self) -> Result<Option<u64>, SessionError> {
        self.decide(|state, now| now.excess(state.window, now.answer()))
    }

    /// One step of the ladder; false if it did not make the window smaller.
    pub(super) fn step(
        &mut self,
        rung: Rung,
        excess: u64,
        reason: &Reason,
    ) -> Result<bool, SessionError> {
        let policy = self.setup.policy.clone();
        let step = self.decide(|state, now| {
            let need = Need {
                excess,
                reason: reason.clone(),
                answer: now.answer(),
            };
            planner::rung(state, &policy, now, rung, &need)
        })?;
        match step {
            None => Ok(false),
            Some(Step::LowerAnswer(tokens)) => {
                self.lowered = Some(tokens);
                let mut event = Event::new(EventKind::AnswerLowered, reason.clone());
                event.note = Some(format!("the answer may have {tokens} tokens"));
                self.events.push(event);
                Ok(true)
            }
            Some(Step::Compact(mut draft)) => {
                // The model can look up what it replaces.
                self.keep_replaced(&mut draft)?;
                let plan = draft.finish(None).plan;
                self.carry_out_quietly(plan, EventKind::Compacted, |event| event)
            }
            Some(Step::Plan(plan)) => {
                let kind = match rung {
                    Rung::DropHalfOfTurns | Rung::DropOldest => EventKind::Dropped,
                    _ => EventKind::Trimmed,
                };
                self.carry_out_quietly(plan, kind, |event| event)
            }
        }
    }

    /// Why the window cannot be made to fit.
    fn does_not_fit(&mut self) -> Result<SessionError, SessionError> {
        let preset = self.setup.policy.preset.clone();
        self.decide(|state, now| {
            if let Err(floor) = now.check_floor(state.window) {
                return SessionError::TooLarge(floor);
            }
            let total = state.window.measures().total();
            SessionError::OverBudget {
                tokens: now.prompt_tokens(&total).saturating_add(now.answer()),
                window: now.window.unwrap_or_default(),
                preset,
            }
        })
    }
}
