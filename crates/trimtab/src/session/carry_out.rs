//! Executes plans and steps: stores, writes the journal, reports events.

use trimtab_engine::decide::{
    self, CallConditions, CompactionDraft, ConversationState, MediaPlace, PlanStep, PriceCliff,
    TokenRates, step_for_rung,
};
use trimtab_engine::journal::JournalEntry;
use trimtab_engine::plan::{Plan, PlanReason};
use trimtab_engine::policy::Rung;
use trimtab_model::Ref;
use trimtab_model::estimate::Measure;
use trimtab_store::Put;
use trimtab_wire::catalogue::PriceTier;

use super::{Session, SessionError, SessionEvent, SessionEventKind};

impl Session {
    /// Runs a decision on the current conversation.
    pub(super) fn decide<T>(
        &mut self,
        decision: impl FnOnce(&ConversationState<'_>) -> T,
    ) -> Result<T, SessionError> {
        // Builds the window, so that the borrow below can share it with the rest of the projection.
        self.projection.window()?;
        let calibration = &self.setup.calibration;
        let tokens = |measure: &Measure| calibration.tokens(measure);
        let cliffs = self.cliffs();
        let call = CallConditions {
            usage: self.calls.usage,
            coming_answer: self.calls.coming_answer,
            ..self.conditions_by(&tokens, &cliffs)
        };
        let uncalibrated = self.conditions_by(&Measure::tokens, &cliffs);
        Ok(decision(&ConversationState {
            sent: self.sent,
            archive_from: self.calls.archive_from,
            uncalibrated: &uncalibrated,
            ..ConversationState::new(&self.projection, &self.setup.policy, &call)
        }))
    }

    /// Runs a decision on the conditions of the next call, without calibration and usage. Several
    /// processes may serve one session, and each learns something else, but all must decide alike.
    pub(super) fn with_uncalibrated<T>(
        &self,
        decision: impl FnOnce(&CallConditions<'_>) -> T,
    ) -> T {
        decision(&self.conditions_by(&Measure::tokens, &self.cliffs()))
    }

    /// The conditions of the next call by an estimate of tokens, without usage.
    fn conditions_by<'a>(
        &self,
        tokens: &'a dyn Fn(&Measure) -> u64,
        cliffs: &'a [PriceCliff],
    ) -> CallConditions<'a> {
        let weigh = |measure: &Measure| decide::conservative_tokens(tokens(measure), measure);
        let limits = &self.setup.limits;
        let mut rates = TokenRates::default();
        if let Some(prices) = &self.setup.prices {
            rates.read = thousandths(prices.read_ratio());
            rates.write = thousandths(prices.write_ratio());
        }
        CallConditions {
            window: limits.window,
            max_output: self.calls.lowered_reserve.or(limits.max_output),
            bytes: limits.bytes,
            tools: weigh(&self.setup.tools),
            tool_definitions: self.setup.tools,
            first_ref: self.first_ref.as_ref().map_or(0, weigh),
            can_retrieve: self.setup.retrieval.is_some(),
            usage: None,
            coming_answer: None,
            tokens,
            cold: self.calls.cold,
            in_bound_loop: self.setup.bound_reasoning && self.projection.ends_in_signed_loop(),
            rates,
            cliffs,
        }
    }

    /// The prompt lengths at which the price rises.
    fn cliffs(&self) -> Vec<PriceCliff> {
        // Without a base price, a rise cannot be expressed as a factor.
        let Some(base) = self.setup.prices else {
            return Vec::new();
        };
        let cliff = |tier: &PriceTier| PriceCliff {
            above: tier.above,
            rise: thousandths(tier.prices.input.ratio(base.input)),
        };
        self.setup.tiers.iter().map(cliff).collect()
    }

    /// Tries the rungs until the window fits; true if it does. Each is used as long as it helps, at
    /// most `times` times.
    pub(super) fn climb(&mut self, rungs: &[Rung], times: usize) -> Result<bool, SessionError> {
        let reason = PlanReason::Fit;
        // No plan makes a window smaller than its floor.
        if self.decide(|conversation| conversation.removable_excess().is_none())? {
            return self.fits();
        }
        for rung in rungs {
            for _ in 0..times {
                let step = self.decide(|conversation| {
                    let excess = conversation.excess()?;
                    Some(step_for_rung(conversation, *rung, excess, &reason))
                })?;
                let Some(step) = step else {
                    return Ok(true);
                };
                if !self.take_step(step, &reason)? {
                    break;
                }
            }
        }
        self.fits()
    }

    /// Executes a step that needs no model, if there is one; false if the window did not become
    /// smaller.
    pub(super) fn take_step(
        &mut self,
        step: Option<PlanStep>,
        reason: &PlanReason,
    ) -> Result<bool, SessionError> {
        let event = |kind| SessionEvent::new(kind, reason.clone());
        let trimmed = event(SessionEventKind::Trimmed);
        match step {
            None => Ok(false),
            Some(PlanStep::Plan(plan, note)) if plan.compacts() => {
                self.carry_out(plan, event(SessionEventKind::Dropped).with_note(note))
            }
            Some(PlanStep::Plan(plan, note)) => self.carry_out(plan, trimmed.with_note(note)),
            Some(PlanStep::Draft(draft)) => self.take_draft(*draft),
            Some(PlanStep::Media(places)) => {
                let plan = self.show_as_text(places, reason)?;
                self.carry_out(plan, trimmed)
            }
            Some(PlanStep::ToolSummaries(archived)) => self.carry_out(archived.plan, trimmed),
            Some(PlanStep::LowerAnswer(tokens)) => {
                self.calls.lowered_reserve = Some(tokens);
                let note = format!("the answer may have {tokens} tokens");
                self.events
                    .push(event(SessionEventKind::AnswerLowered).with_note(note));
                Ok(true)
            }
        }
    }

    /// Finishes a draft without an answer of a model.
    fn take_draft(&mut self, mut draft: CompactionDraft) -> Result<bool, SessionError> {
        self.store_replaced(&mut draft)?;
        let plan = draft.finish(None).plan;
        let kind = if draft.drops() {
            SessionEventKind::Dropped
        } else if plan.compacts() {
            SessionEventKind::Compacted
        } else {
            SessionEventKind::Trimmed
        };
        // The plan clears the usage, so it is read first.
        let judged = self.last_true_tokens();
        let event = SessionEvent::new(kind, PlanReason::Nothing).with_note(draft.note());
        let done = self.carry_out(plan, event)?;
        // Only compactions are judged.
        if done && !draft.drops() {
            self.calls.tokens_before_compaction = judged;
        }
        Ok(done)
    }

    /// The plan that replaces media by texts that name their refs.
    fn show_as_text(
        &self,
        places: Vec<MediaPlace>,
        reason: &PlanReason,
    ) -> Result<Plan, SessionError> {
        let (mut edits, mut refs) = (Vec::new(), Vec::new());
        for (at, place) in places.into_iter().enumerate() {
            let stored = match place.to_store() {
                Some(raw) => {
                    // The journal grows with every plan, so the label is unique within the session.
                    let call = format!("media-{}-{at}", self.journal_position);
                    let put = Put::new(&call, raw).media_type("application/json");
                    Some(self.store.put(&self.id, put)?)
                }
                None => None,
            };
            edits.push(place.edit(stored.as_ref().map(Ref::id)));
            refs.extend(stored);
        }
        let mut plan = Plan::new(reason.clone(), edits);
        plan.refs.extend(refs);
        Ok(plan)
    }

    /// Reports that nothing was done.
    pub(super) fn report_no_op(&mut self, event: SessionEvent) -> Result<(), SessionError> {
        let (tokens, messages) = self.window_tokens()?;
        self.events.push(SessionEvent {
            kind: SessionEventKind::NoOp,
            tokens_before: tokens,
            tokens_after: tokens,
            messages_before: messages,
            messages_after: messages,
            ..event
        });
        Ok(())
    }

    /// Executes a plan and reports it; a plan that would not help is not reported.
    pub(super) fn carry_out(
        &mut self,
        plan: Plan,
        event: SessionEvent,
    ) -> Result<bool, SessionError> {
        let mut plan = self.projection.log().spare_provider_parts(plan);
        if plan.edits.is_empty() {
            return Ok(false);
        }
        // After that, so that no reasoning is removed for an edit that is not made.
        if self.setup.bound_reasoning {
            plan = decide::without_bound_reasoning(plan, self.projection.slots());
        }
        let before = self.projection.window()?.messages().len();
        // Without calibration: later rewrites depend on the figures of this plan.
        let Some(plan) = self.shrink(plan, Measure::tokens)? else {
            return Ok(false);
        };
        // An answer that is in flight was made for the window before.
        self.calls.answer_in_flight.mark_stale();
        let after = self.projection.window()?.messages().len();
        self.events.push(event.with_plan(&plan, (before, after)));
        Ok(true)
    }

    /// Executes a plan if that makes the window smaller by an estimate. None if it would not, or if
    /// it would save less than its first ref costs.
    pub fn shrink(
        &mut self,
        plan: Plan,
        tokens: impl Fn(&Measure) -> u64,
    ) -> Result<Option<Plan>, SessionError> {
        let plan = self.projection.log().spare_provider_parts(plan);
        let Some(mut plan) = self.worthwhile(plan, tokens)? else {
            return Ok(None);
        };
        self.first_ref = self.first_ref.filter(|_| !plan.shows_a_ref());
        plan.since = self.sent;
        // Write before copying, because a plan of many edits and its JSON take much memory.
        let entry = JournalEntry::Plan(plan);
        self.write(&entry)?;
        let JournalEntry::Plan(plan) = entry else {
            return Ok(None);
        };
        self.projection.carry_out(plan.clone());
        // It described the window before the plan.
        self.calls.usage = None;
        Ok(Some(plan))
    }

    /// The plan with its figures, if it makes the window smaller by an estimate, and is worth it.
    pub(super) fn worthwhile(
        &mut self,
        plan: Plan,
        tokens: impl Fn(&Measure) -> u64,
    ) -> Result<Option<Plan>, SessionError> {
        let first_ref = self.first_ref.as_ref().map_or(0, &tokens);
        let shrinks = self.projection.would_shrink(plan, tokens)?;
        Ok(shrinks.filter(|plan| decide::pays(&self.setup.policy, plan, first_ref)))
    }

    /// The estimated tokens of the window, and its number of messages.
    pub fn window_tokens(&mut self) -> Result<(u64, usize), SessionError> {
        let window = self.projection.window()?;
        let tokens = self.setup.calibration.tokens(&window.measures().total());
        Ok((tokens, window.messages().len()))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a price in thousandths of another is small and not negative"
)]
fn thousandths(ratio: f64) -> u64 {
    (ratio * 1_000.0).round() as u64
}
