//! Our own policy at work: outputs as they come in, and rewrites at switch points.

use trimtab_engine::plan::{Plan, Reason};
use trimtab_engine::planner::{Now, State};
use trimtab_engine::policy::{BoundReasoning, Moment};
use trimtab_engine::steady::{Rates, Rewrite, Room, Situation, Steady, Switch, weight};
use trimtab_model::estimate::Measure;
use trimtab_model::{Message, Output};
use trimtab_store::Put;
use trimtab_wire::catalogue::Prices;

use super::{EventKind, Session, SessionError};

/// How many further calls are expected at least, and at most: a session that has lasted so long
/// is taken to last as long again.
const CALLS: (u64, u64) = (5, 50);

impl Session {
    /// What an output is shown as under our own policy; none where another one decides, or
    /// where it is shown as it came. `round` is what other outputs of its message take.
    pub(super) fn steady_view(
        &mut self,
        output: &Output,
        round: u64,
    ) -> Result<Option<Output>, SessionError> {
        let steady = self.setup.policy.ageing.cards;
        if !steady.enabled || self.setup.limits.window.is_none() {
            return Ok(None);
        }
        self.decide(|state, now| {
            let room = Room {
                messages: messages_room(now),
                used: weigh(now, &state.window.measures().total()).saturating_add(round),
                round: round.saturating_add(open_round(state, now)),
            };
            steady.admit(state.slots, output, room, &|measure| weigh(now, measure))
        })
    }

    /// What an output weighs, for the next one of its message.
    pub(super) fn steady_weight(&mut self, output: &Output) -> Result<u64, SessionError> {
        self.decide(|_, now| weigh(now, &Measure::of_text(&output.text())))
    }

    /// True for a system message that the window has already: it is archived as it comes in.
    pub(super) fn steady_repeats(&self, message: &Message) -> bool {
        let steady = self.setup.policy.ageing.cards;
        steady.enabled && steady.repeats_system(self.projection.slots(), message)
    }

    /// Rewrites the window where that is due: above its high-water mark, or below it where the
    /// cache is cold and the rewrite pays.
    pub(super) fn steady_rewrite(&mut self, moment: Moment) -> Result<(), SessionError> {
        let policy = &self.setup.policy;
        let (steady, bound) = (policy.ageing.cards, policy.compaction.bound_reasoning);
        if !steady.enabled || moment != Moment::BeforeCall || self.setup.limits.window.is_none() {
            return Ok(());
        }
        let rates = rates(self.setup.prices.as_ref());
        let rewrite = self.decide(|state, now| due(&steady, state, now, rates, bound))?;
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

/// The rewrite that is due now, if one is.
fn due(
    steady: &Steady,
    state: &State<'_>,
    now: &Now<'_>,
    rates: Rates,
    bound: BoundReasoning,
) -> Option<Rewrite> {
    let room = messages_room(now);
    let total = weigh(now, &state.window.measures().total());
    if total <= steady.high(room) {
        return None;
    }
    let calls = state
        .log
        .messages()
        .iter()
        .filter(|m| m.has_calls())
        .count() as u64;
    let weigh = |measure: &Measure| weigh(now, measure);
    let situation = Situation {
        switch: Switch::HighWater,
        room,
        weigh: &weigh,
        rates,
        calls: calls.clamp(CALLS.0, CALLS.1),
        bound_reasoning: bound == BoundReasoning::Strip,
    };
    steady.rewrite(state.slots, &situation)
}

/// The room for messages: the window without tools and the answer's reserve.
fn messages_room(now: &Now<'_>) -> u64 {
    let window = now.window.unwrap_or(u64::MAX);
    window
        .saturating_sub(now.tools)
        .saturating_sub(now.answer())
}

fn weigh(now: &Now<'_>, measure: &Measure) -> u64 {
    weight((now.tokens)(measure), measure)
}

/// What the outputs of the newest round take that came before.
fn open_round(state: &State<'_>, now: &Now<'_>) -> u64 {
    let outputs = state.slots.iter().rev();
    let newest = outputs.take_while(|slot| slot.message.outputs().next().is_some());
    newest
        .map(|slot| weigh(now, &Measure::of(&slot.message)))
        .sum()
}

fn rates(prices: Option<&Prices>) -> Rates {
    prices.map_or_else(Rates::default, |prices| Rates {
        read: thousandths(prices.read_ratio()),
        write: thousandths(prices.write_ratio()),
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a price in thousandths of another is small and not negative"
)]
fn thousandths(ratio: f64) -> u64 {
    (ratio * 1_000.0).round() as u64
}
