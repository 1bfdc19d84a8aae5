//! Our own policy at work: outputs as they come in, and rewrites at switch points.

use trimtab_engine::plan::{Plan, Reason};
use trimtab_engine::planner::{Now, State};
use trimtab_engine::policy::{BoundReasoning, Moment};
use trimtab_engine::steady::{Rewrite, Room, Situation, Steady, Switch, weight};
use trimtab_model::Output;
use trimtab_model::estimate::Measure;
use trimtab_store::Put;

use super::switch::{Due, messages_room};
use super::{EventKind, Session, SessionError};

/// How many further calls are expected at least, and at most: a session that has lasted so long
/// is taken to last as long again.
const CALLS: (u64, u64) = (5, 50);

impl Session {
    /// What an output is shown as under our own policy; none where another one decides, or
    /// where it is shown as it came. `observed` says that the user told it, `round` is what other
    /// outputs of its message take.
    pub(super) fn steady_view(
        &mut self,
        output: &Output,
        observed: bool,
        round: u64,
    ) -> Option<Output> {
        let steady = self.setup.policy.ageing.cards;
        if !steady.enabled || self.setup.limits.window.is_none() {
            return None;
        }
        let mut repeats = std::mem::take(&mut self.repeats);
        let earlier = repeats.shown_before(&self.projection, output);
        let view = self.now(|now| {
            let used = weigh(now, self.projection.total());
            let room = Room {
                messages: messages_room(now),
                used: used.saturating_add(round),
                round: round.saturating_add(weigh(now, self.projection.open_outputs())),
            };
            let weigh = |measure: &Measure| weigh(now, measure);
            if observed {
                steady.admit_observation(output, room, &weigh)
            } else {
                steady.admit(earlier, output, room, &weigh)
            }
        });
        self.repeats = repeats;
        view
    }

    /// What an output weighs, for the next one of its message.
    pub(super) fn steady_weight(&self, output: &Output) -> u64 {
        self.now(|now| weigh(now, &Measure::of_text(&output.text())))
    }

    /// Rewrites the window where that is due: above its high-water mark, or below it where the
    /// cache is cold or a higher price is ahead.
    pub(super) fn steady_rewrite(&mut self, moment: Moment) -> Result<(), SessionError> {
        let policy = &self.setup.policy;
        let (steady, bound) = (policy.ageing.cards, policy.compaction.bound_reasoning);
        if !steady.enabled || moment != Moment::BeforeCall || self.setup.limits.window.is_none() {
            return Ok(());
        }
        let edge = self.edge();
        let rewrite = self.decide(|state, now| {
            let total = weigh(now, &state.window.measures().total());
            let due = edge.due(&steady, now, total)?;
            rewrite(&steady, state, now, due, bound)
        })?;
        if let Some(rewrite) = rewrite {
            self.carry_out_rewrite(rewrite)?;
        }
        Ok(())
    }

    fn carry_out_rewrite(&mut self, rewrite: Rewrite) -> Result<bool, SessionError> {
        let stored = match rewrite.archive() {
            Some(text) => {
                let call = format!("rewrite-{}", self.projection.log().len());
                Some(self.store.put(&self.id, Put::new(&call, text))?)
            }
            None => None,
        };
        let note = rewrite.account().to_string();
        let switch = rewrite.account().switch.to_string();
        let edits = rewrite.finish(stored.as_ref());
        let mut plan = Plan::new(Reason::Triggered { trigger: switch }, edits);
        plan.refs.extend(stored);
        let kind = if plan.compacts() {
            EventKind::Compacted
        } else {
            EventKind::Trimmed
        };
        let judged = self.judged_by();
        let about = |mut event: super::Event| {
            event.note = Some(note.clone());
            event
        };
        let done = self.carry_out_quietly(plan, kind, about)?;
        if done {
            self.judging = judged;
        }
        Ok(done)
    }
}

/// The rewrite for a switch point, if it is worth it.
fn rewrite(
    steady: &Steady,
    state: &State<'_>,
    now: &Now<'_>,
    due: Due,
    bound: BoundReasoning,
) -> Option<Rewrite> {
    let messages = state.log.messages().iter();
    let calls = messages.filter(|message| message.has_calls());
    let calls = calls.zip(0..CALLS.1).count() as u64;
    let weigh = |measure: &Measure| weigh(now, measure);
    let situation = Situation {
        switch: due.switch,
        room: due.room,
        opening: now.opening,
        weigh: &weigh,
        rates: due.rates,
        calls: calls.clamp(CALLS.0, CALLS.1),
        bound_reasoning: bound == BoundReasoning::Strip,
    };
    let rewrite = steady.rewrite(state.slots, &situation)?;
    let account = rewrite.account();
    // A cliff that it does not get below, or that costs less than the rewrite, is no reason.
    let worth = due.switch != Switch::PriceCliff || (account.after <= due.room && account.pays());
    worth.then_some(rewrite)
}

fn weigh(now: &Now<'_>, measure: &Measure) -> u64 {
    weight((now.tokens)(measure), measure)
}
