//! Executes plans and steps: stores, writes the journal, reports events.

use std::collections::HashSet;
use std::sync::Arc;

use trimtab_engine::journal::JournalEntry;
use trimtab_engine::plan::{Plan, PlanReason};
use trimtab_engine::planner::{
    self, CallConditions, CompactionDraft, ConversationState, Ladder, MediaPlace, Misfit, NextStep,
    PlanStep, PriceCliff, TokenRates,
};
use trimtab_engine::view::tools::ToolNames;
use trimtab_model::estimate::Measure;
use trimtab_model::{Message, RawJson, Ref};
use trimtab_store::{LineRange, OutputForm, Put};
use trimtab_wire::catalogue::Prices;

use super::readable::{EarlierRefs, earlier_messages, read_calls, readable, stands_for_messages};
use super::{PendingSummary, Session, SessionError, SessionEvent, SessionEventKind};

/// Media type of messages that a compaction replaced.
const ROUNDS: &str = "application/vnd.trimtab.messages+json";

/// The maximum of lines at the end of stored messages that are searched for refs.
const LISTED_LINES: u64 = 400;

/// How a ladder ended.
pub(super) enum LadderOutcome {
    /// The goal was reached.
    Done,
    /// A summary must be asked for.
    Summarise(PendingSummary),
    /// No rung is left. Contains the reason why the window does not fit.
    Stuck(Misfit),
}

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
        let weigh = |measure: &Measure| planner::conservative_tokens(tokens(measure), measure);
        let limits = &self.setup.limits;
        CallConditions {
            window: limits.window,
            max_output: self.calls.lowered_reserve.or(limits.max_output),
            bytes: limits.bytes,
            tools: weigh(&self.setup.tools),
            first_ref: self.first_ref.as_ref().map_or(0, weigh),
            can_retrieve: self.setup.retrieval.is_some(),
            usage: None,
            tokens,
            cold: self.calls.cold,
            rates: self
                .setup
                .prices
                .as_ref()
                .map_or_else(TokenRates::default, rates),
            cliffs,
        }
    }

    /// The prompt lengths at which the price rises.
    fn cliffs(&self) -> Vec<PriceCliff> {
        let tiers = self.setup.tiers.iter();
        // Without a base price, a rise cannot be expressed as a factor.
        let priced = tiers.filter_map(|tier| Some((tier, self.setup.prices?.input)));
        let cliff = priced.map(|(tier, input)| PriceCliff {
            above: tier.above,
            rise: thousandths(tier.prices.input.ratio(input)),
        });
        cliff.collect()
    }

    /// Executes the steps of a ladder, one after the other.
    pub(super) fn run_ladder(&mut self, mut ladder: Ladder) -> Result<LadderOutcome, SessionError> {
        let mut helped = None;
        loop {
            let next = self.decide(|conversation| ladder.next(helped, conversation))?;
            match next {
                NextStep::Step(step) => helped = Some(self.take_step(step, ladder.reason())?),
                NextStep::Summarise(PlanStep::Draft(draft)) => {
                    return Ok(LadderOutcome::Summarise(self.ask_for_summary(*draft)?));
                }
                NextStep::Summarise(_) | NextStep::Done => return Ok(LadderOutcome::Done),
                NextStep::Stuck(misfit) => return Ok(LadderOutcome::Stuck(misfit)),
            }
        }
    }

    /// Executes a step that needs no model; false if it did not make the window smaller.
    pub(super) fn take_step(
        &mut self,
        step: PlanStep,
        reason: &PlanReason,
    ) -> Result<bool, SessionError> {
        match step {
            PlanStep::Plan(plan, note) => {
                let kind = if plan.compacts() {
                    SessionEventKind::Dropped
                } else {
                    SessionEventKind::Trimmed
                };
                self.carry_out_silently(
                    plan,
                    SessionEvent::new(kind, reason.clone()).with_note(note),
                )
            }
            PlanStep::Draft(draft) => self.take_draft(*draft),
            PlanStep::Media(places) => self.show_as_text(places, reason),
            PlanStep::ToolSummaries(archived) => {
                let event = SessionEvent::new(SessionEventKind::Trimmed, reason.clone());
                self.carry_out_silently(archived.plan, event)
            }
            PlanStep::LowerAnswer(tokens) => {
                self.calls.lowered_reserve = Some(tokens);
                let note = format!("the answer may have {tokens} tokens");
                let event = SessionEvent::new(SessionEventKind::AnswerLowered, reason.clone());
                self.events.push(event.with_note(note));
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
        let done = self.carry_out_silently(plan, event)?;
        // Only compactions are judged.
        if done && !draft.drops() {
            self.calls.tokens_before_compaction = judged;
        }
        Ok(done)
    }

    /// Replaces media by texts that name their refs.
    fn show_as_text(
        &mut self,
        places: Vec<MediaPlace>,
        reason: &PlanReason,
    ) -> Result<bool, SessionError> {
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
        self.carry_out_silently(
            plan,
            SessionEvent::new(SessionEventKind::Trimmed, reason.clone()),
        )
    }

    /// Stores the messages that a draft replaces, so that a ref can retrieve them.
    pub(super) fn store_replaced(&self, draft: &mut CompactionDraft) -> Result<(), SessionError> {
        let replaced: Vec<_> = draft.replaced().collect();
        if let Some(stored) = self.store_messages(&replaced)? {
            draft.stored_at(stored);
        }
        Ok(())
    }

    /// Stores removed messages; none if there are none. Their text ends with the refs of what was
    /// cut in them, and of all messages removed earlier. So everything can be found from the newest
    /// ref in the window by reading one list, and that of the messages that the text was in.
    fn store_messages(&self, gone: &[&Arc<Message>]) -> Result<Option<Ref>, SessionError> {
        if gone.is_empty() {
            return Ok(None);
        }
        let messages = RawJson::of(&gone);
        let mut text = readable(gone);
        text.push_str(&self.refs_of_earlier(gone)?.lines());
        let call = format!("compaction-{}", self.projection.log().len());
        let put = Put::new(&call, messages.as_str()).media_type(ROUNDS);
        let stored = self.store.put(&self.id, put.text(&text))?;
        Ok(Some(self.as_shown_ref(stored)))
    }

    /// The refs of what was removed before `gone`, each once: those in its outputs and in our own
    /// messages, and the messages listed behind these. Outputs listed there are not repeated, or
    /// the lists would grow with every output of the session.
    fn refs_of_earlier(&self, gone: &[&Arc<Message>]) -> Result<EarlierRefs, SessionError> {
        let (mut earlier, mut known) = (EarlierRefs::default(), HashSet::new());
        for message in gone {
            // Only cut outputs: the others are in the stored messages in full.
            let trimmed = message.outputs().filter(|output| output.trimmed);
            let stored = trimmed.filter_map(|output| output.stored.as_ref());
            earlier
                .outputs
                .extend(stored.map(|stored| stored.id().to_owned()));
        }
        // The newest first: its list contains those of all before it, which need not be read.
        let ours = gone.iter().rev().filter(|gone| stands_for_messages(gone));
        for id in ours.flat_map(|message| read_calls(&message.text()).into_iter().rev()) {
            if !known.insert(id.clone()) {
                continue;
            }
            let Some(behind) = self.messages_before(&id)? else {
                earlier.outputs.push(id);
                continue;
            };
            earlier.messages.push(id);
            let new = behind.into_iter().filter(|id| known.insert(id.clone()));
            earlier.messages.extend(new);
        }
        let mut listed = HashSet::new();
        earlier.outputs.retain(|id| listed.insert(id.clone()));
        Ok(earlier)
    }

    /// The refs of earlier messages at the end of stored messages; none if something else is stored
    /// under `id`.
    fn messages_before(&self, id: &str) -> Result<Option<Vec<String>>, SessionError> {
        let metadata = match self.store.metadata(&self.id, id) {
            // The id comes from a text, so it can be one that the store never had.
            Err(error) if error.is_not_found() => return Ok(None),
            metadata => metadata?,
        };
        if metadata.labels.media_type != ROUNDS {
            return Ok(None);
        }
        let stored = self.store.open(&self.id, id, OutputForm::Text)?;
        // The list is at the end, and the messages before it can be long.
        let offset = stored.line_count().saturating_sub(LISTED_LINES);
        let read = stored.lines(LineRange::new(offset, LISTED_LINES))?;
        let lines = read.lines.iter();
        let listed = lines.flat_map(|line| earlier_messages(&String::from_utf8_lossy(&line.bytes)));
        Ok(Some(listed.collect()))
    }

    /// A ref as it is shown to the model.
    pub(super) fn as_shown_ref(&self, stored: Ref) -> Ref {
        match self.setup.retrieval {
            Some(names) if names != ToolNames::default() => stored.read_with(names.read),
            _ => stored,
        }
    }

    /// Executes a plan and reports it; a plan that would not help is reported too.
    pub(super) fn carry_out(
        &mut self,
        plan: Plan,
        event: SessionEvent,
    ) -> Result<bool, SessionError> {
        let reason = plan.reason.clone();
        let done = self.carry_out_silently(plan, event.clone())?;
        if !done {
            self.report_no_op(SessionEvent { reason, ..event })?;
        }
        Ok(done)
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
    pub(super) fn carry_out_silently(
        &mut self,
        plan: Plan,
        event: SessionEvent,
    ) -> Result<bool, SessionError> {
        let bound = self.setup.policy.compaction.bound_reasoning;
        // A plan that waited for a summary does not know the reasoning that came since.
        let plan = planner::update_plan(plan, self.projection.slots(), bound);
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
        let first_ref = self.first_ref.as_ref().map_or(0, &tokens);
        let Some(mut plan) = self.would_shrink_beside_pins(plan, tokens)? else {
            return Ok(None);
        };
        let shows_a_ref = plan.shows_a_ref();
        if shows_a_ref && !planner::is_worth_first_ref(&self.setup.policy, &plan, first_ref) {
            return Ok(None);
        }
        self.first_ref = self.first_ref.filter(|_| !shows_a_ref);
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

    /// The plan without its edits of pinned messages, if that makes the window smaller. A window
    /// that must fit has priority over pins.
    fn would_shrink_beside_pins(
        &mut self,
        plan: Plan,
        tokens: impl Fn(&Measure) -> u64,
    ) -> Result<Option<Plan>, SessionError> {
        let projection = &mut self.projection;
        let spared = projection.journal().spare_pins(&plan, projection.log());
        let Some(spared) = spared else {
            return Ok(projection.would_shrink(plan, tokens)?);
        };
        match projection.would_shrink(spared, &tokens)? {
            None if plan.reason.must_fit() => Ok(projection.would_shrink(plan, tokens)?),
            shrunk => Ok(shrunk),
        }
    }

    /// The estimated tokens of the window, and its number of messages.
    pub fn window_tokens(&mut self) -> Result<(u64, usize), SessionError> {
        let window = self.projection.window()?;
        let tokens = self.setup.calibration.tokens(&window.measures().total());
        Ok((tokens, window.messages().len()))
    }
}

fn rates(prices: &Prices) -> TokenRates {
    TokenRates {
        read: thousandths(prices.read_ratio()),
        write: thousandths(prices.write_ratio()),
        ..TokenRates::default()
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
