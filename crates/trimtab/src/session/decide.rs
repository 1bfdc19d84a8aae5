//! When to do something about the window, and what became of it.

use std::sync::Arc;

use trimtab_engine::compaction::answer::Ending;
use trimtab_engine::compaction::chunks::Requests;
use trimtab_engine::journal::JournalEntry;
use trimtab_engine::log::Log;
use trimtab_engine::plan::{Plan, Reason};
use trimtab_engine::planner::{self, Asked, Draft, Now, State};
use trimtab_engine::policy::Moment;
use trimtab_model::estimate::Measure;
use trimtab_model::{Message, RawJson, Role, Usage};
use trimtab_store::Put;

use super::pending::{Wants, texts};
use super::readable::readable;
use super::{Answered, ByHand, Event, EventKind, Pending, Session, SessionError, Setup};

/// The task is told in so many messages at most: some clients put their instructions and what
/// they know of the workspace before it.
const TASK_MESSAGES: usize = 4;
/// A compaction that nothing forces has to save so much of the window, in percent.
const LEAST_GAIN_PERCENT: u64 = 2;
/// Media type of messages that a compaction replaced.
const ROUNDS: &str = "application/vnd.trimtab.messages+json";

impl Session {
    /// Does what the policy wants done at this moment. What needs no model is carried out at
    /// once; a summary is asked for.
    ///
    /// Pass every moment you come through: the policy says which of them count.
    pub fn check(&mut self, moment: Moment) -> Result<Option<Pending>, SessionError> {
        self.steady_rewrite(moment)?;
        if let Some(pending) = self.age(moment)? {
            return Ok(Some(pending));
        }
        let Some(reason) = self.time_to_compact(moment)? else {
            return Ok(None);
        };
        let excess = match reason {
            Reason::Fit => self.excess()?.unwrap_or(0),
            _ => 0,
        };
        let asked = Asked {
            reason,
            excess,
            ..Asked::default()
        };
        self.draft(&asked)
    }

    /// Compacts because somebody asked for it; none if there is nothing that it could replace.
    pub fn compact(&mut self, by_hand: &ByHand) -> Result<Option<Pending>, SessionError> {
        let wishes = by_hand.instructions.trim();
        let asked = Asked {
            reason: Reason::ByHand,
            instructions: (!wishes.is_empty())
                .then(|| wishes.to_owned())
                .into_iter()
                .collect(),
            keep_turns: by_hand.keep_turns,
            excess: 0,
        };
        let pending = self.draft(&asked)?;
        if pending.is_none() {
            let note = Some("there is nothing to replace".to_owned());
            self.tell_of_nothing(Reason::ByHand, |event| Event {
                note: note.clone(),
                ..event
            })?;
        }
        Ok(pending)
    }

    /// Carries out a plan that waited for its summary. False if it came too late, or would not
    /// have made the window smaller; an event tells which.
    pub fn finish(&mut self, pending: Pending) -> Result<bool, SessionError> {
        // Outputs that are shown shorter since stand where they stood.
        if pending.journal < self.rearranged {
            let mut event = Event::new(EventKind::Stale, Reason::Nothing);
            event.note = Some("another plan was carried out meanwhile".to_owned());
            self.events.push(event);
            return Ok(false);
        }
        let usage = used(&pending.answers);
        let cost = usage.and_then(|usage| {
            let prices = self.setup.prices.as_ref()?;
            Some(prices.cost(&usage).dollars())
        });
        let about = |mut event: Event| {
            event.usage = usage;
            event.cost = cost;
            event
        };
        match pending.wants {
            Wants::ToolSummaries(aged) => {
                let written: Vec<Option<String>> = pending.answers.iter().map(written).collect();
                let excerpts = aged.plan.clone();
                let plan = aged.with_summaries(&written).plan;
                // What a model wrote may be longer than what it is about.
                let plan = self.gain(plan.clone())?.map_or(excerpts, |_| plan);
                self.carry_out(plan, EventKind::Trimmed, about)
            }
            Wants::Compaction(draft, requests) => {
                self.finish_compaction(&draft, &requests, &pending.answers, about)
            }
        }
    }

    fn finish_compaction(
        &mut self,
        draft: &Draft,
        requests: &Requests,
        answers: &[Answered],
        about: impl Fn(Event) -> Event,
    ) -> Result<bool, SessionError> {
        let text = requests.result(&texts(answers));
        let answer = text.as_deref().map(|text| (text, ending(answers)));
        let failed = answers.iter().find_map(|answer| match answer {
            Answered::Failed(why) => Some(format!("the summariser failed: {why}")),
            Answered::Text { .. } => None,
        });
        let finished = draft.finish(answer);
        let refused = finished.refusal.map(|refusal| refusal.to_string());
        let (by_model, coverage) = (finished.by_model, finished.coverage);
        let about = |event: Event| Event {
            by_model,
            coverage,
            note: refused.clone().or(failed.clone()),
            ..about(event)
        };
        let judged = self.judged_by();
        let done = if draft.is_forced() || self.is_worth_it(&finished.plan)? {
            self.carry_out(finished.plan, EventKind::Compacted, about)?
        } else {
            let why = || Some("it would save next to nothing".to_owned());
            self.tell_of_nothing(finished.plan.reason, |event| {
                let event = about(event);
                let note = event.note.clone().or_else(why);
                Event { note, ..event }
            })?;
            false
        };
        self.in_vain = (!done).then(|| draft.replaced_tokens());
        if done {
            self.judging = judged;
            self.warn_after_many();
        }
        Ok(done)
    }

    /// What a plan would save, in tokens, of how many; none if nothing.
    fn gain(&mut self, plan: Plan) -> Result<Option<(u64, u64)>, SessionError> {
        let calibration = self.setup.calibration.clone();
        let tokens = |measure: &Measure| calibration.tokens(measure);
        let plan = self.projection.would_shrink(plan, tokens)?;
        Ok(plan.map(|plan| (plan.tokens_before - plan.tokens_after, plan.tokens_before)))
    }

    fn is_worth_it(&mut self, plan: &Plan) -> Result<bool, SessionError> {
        let gain = self.gain(plan.clone())?;
        let enough = |(saved, of): (u64, u64)| saved * 100 >= of * LEAST_GAIN_PERCENT;
        Ok(gain.is_some_and(enough))
    }

    /// True if a plan is worth it as far as can be told before its summary is written: with none
    /// at all.
    fn may_be_worth_it(&mut self, draft: &Draft) -> Result<bool, SessionError> {
        self.is_worth_it(&draft.without_summary())
    }

    /// True if a summary of this was asked for in vain, and nothing has changed since that could
    /// make another one worth it: there would have to be twice as much to replace.
    fn was_in_vain(&self, draft: &Draft) -> bool {
        let before = self.in_vain.filter(|_| !self.changed);
        before.is_some_and(|before| draft.replaced_tokens() < before.saturating_mul(2))
    }

    /// What the window measured by the last true usage: the next one is held against it.
    pub(super) fn judged_by(&self) -> Option<u64> {
        self.usage.as_ref().map(|(usage, _)| usage.prompt())
    }

    /// Learns from what the provider reported for the window that was handed out last.
    pub fn record(&mut self, usage: &Usage) -> Result<(), SessionError> {
        let Some(window) = self.handed_out.take() else {
            return Ok(());
        };
        if let Some((last, then)) = &self.usage
            && !self.setup.counts_as_we_do
        {
            let grown = usage.prompt().saturating_sub(last.prompt());
            self.setup.calibration.observe(&(window - *then), grown);
        }
        self.usage = Some((*usage, window));
        self.recovered = 0;
        self.lowered = None;
        if let Some(before) = self.judging.take() {
            self.judge(before, usage.prompt())?;
        }
        Ok(())
    }

    /// Was the last compaction worth it, by true figures?
    fn judge(&mut self, before: u64, after: u64) -> Result<(), SessionError> {
        let thrash = self.setup.policy.compaction.thrash;
        let gained = before.saturating_sub(after);
        let enough = gained.saturating_mul(100) >= before.saturating_mul(thrash.gain_percent);
        let at = self.projection.log().len();
        self.write(&JournalEntry::Judged { enough, at })?;
        self.projection.judge(enough);
        self.changed = false;
        if !enough && self.is_suspended() {
            let mut event = Event::new(EventKind::Suspended, Reason::Nothing);
            event.note = Some(format!(
                "{} compactions in a row freed less than {} % of the window: none is made \
                 by itself until something changes",
                thrash.passes, thrash.gain_percent
            ));
            self.events.push(event);
        }
        Ok(())
    }

    /// True if compaction did not help so often that it is not tried again by itself, until
    /// something changes: the user says something, the limits or the policy are others, or
    /// somebody compacts by hand or takes a plan back.
    fn is_suspended(&self) -> bool {
        let passes = self.setup.policy.compaction.thrash.passes;
        let (in_vain, since) = self.projection.journal().compactions_in_vain();
        if passes == 0 || in_vain < passes || self.changed {
            return false;
        }
        let log = self.projection.log().messages();
        let later = log.get(since..).unwrap_or_default();
        !later.iter().any(|message| message.is_real_user())
    }

    fn warn_after_many(&mut self) {
        let after = self.setup.policy.compaction.thrash.warn_after;
        let compactions = self.projection.journal().compactions();
        if after == 0 || compactions <= after as usize {
            return;
        }
        let mut event = Event::new(EventKind::Warning, Reason::Nothing);
        event.note = Some(format!(
            "this conversation was compacted {compactions} times; details fade with every \
             summary of a summary\nhint: begin a new session for a new task"
        ));
        self.events.push(event);
    }

    fn age(&mut self, moment: Moment) -> Result<Option<Pending>, SessionError> {
        let policy = self.setup.policy.clone();
        let aged = self.decide(|state, now| planner::age(state, &policy, now, moment))?;
        let Some(aged) = aged else {
            return Ok(None);
        };
        if !aged.to_summarise.is_empty() {
            // No model is asked about outputs that would not be archived then.
            if self.gain(aged.plan.clone())?.is_none() {
                return Ok(None);
            }
            return Ok(Some(self.pending(Wants::ToolSummaries(Box::new(aged)))));
        }
        let note = aged.note.clone();
        let about = |event: Event| Event {
            note: note.clone(),
            ..event
        };
        self.carry_out_quietly(aged.plan, EventKind::Trimmed, about)?;
        Ok(None)
    }

    fn time_to_compact(&mut self, moment: Moment) -> Result<Option<Reason>, SessionError> {
        let policy = self.setup.policy.clone();
        let compaction = &policy.compaction;
        if !compaction.enabled || !compaction.auto || self.is_suspended() {
            return Ok(None);
        }
        if moment == Moment::BeforeCall && self.needs_compaction()? {
            return Ok(Some(Reason::Fit));
        }
        if compaction.moments.contains(&moment) {
            let fired = self.decide(|state, now| planner::time_to_compact(state, &policy, now))?;
            if let Some(trigger) = fired? {
                return Ok(Some(Reason::Triggered {
                    trigger: trigger.to_string(),
                }));
            }
        }
        Ok(None)
    }

    pub(super) fn draft(&mut self, asked: &Asked) -> Result<Option<Pending>, SessionError> {
        let policy = self.setup.policy.clone();
        let draft = self.decide(|state, now| planner::draft(state, &policy, now, asked))?;
        let Some(mut draft) = draft else {
            return Ok(None);
        };
        // Who asks by hand wants to see it tried, and after an overflow everything is.
        let by_itself = !matches!(asked.reason, Reason::ByHand | Reason::Overflow);
        if by_itself && (self.was_in_vain(&draft) || !self.may_be_worth_it(&draft)?) {
            return Ok(None);
        }
        self.keep_replaced(&mut draft)?;
        let Setup {
            dialect,
            calibration,
            tools,
            ..
        } = &self.setup;
        let tokens = |measure: &Measure| calibration.tokens(measure);
        let requests = draft.requests(*dialect, &tokens, tokens(tools));
        Ok(Some(
            self.pending(Wants::Compaction(Box::new(draft), requests)),
        ))
    }

    /// Stores what a compaction replaces, so that it can be had back by a ref.
    pub(super) fn keep_replaced(&self, draft: &mut Draft) -> Result<(), SessionError> {
        let replaced: Vec<_> = draft.replaced().collect();
        let messages = RawJson::of(&replaced);
        let text = readable(&replaced);
        let call = format!("compaction-{}", draft.length());
        let put = Put::new(&call, messages.as_str()).media_type(ROUNDS);
        let stored = self.store.put(&self.id, put.text(&text))?;
        draft.stored_at(stored);
        Ok(())
    }

    fn pending(&self, wants: Wants) -> Pending {
        Pending {
            wants,
            journal: self.journal_position,
            calibration: Box::new(self.setup.calibration.clone()),
            answers: Vec::new(),
        }
    }

    /// A decision about the conversation as it stands.
    pub(super) fn decide<T>(
        &mut self,
        decision: impl FnOnce(&State<'_>, &Now<'_>) -> T,
    ) -> Result<T, SessionError> {
        self.projection.window()?;
        let compacted = self.projection.journal().newest_compaction();
        let state = State {
            log: self.projection.log(),
            slots: self.projection.slots(),
            window: self.projection.built(),
            sent: self.sent,
            compacted_at: compacted.map(|plan| plan.at),
            dialect: self.setup.dialect,
        };
        Ok(self.now(|now| decision(&state, now)))
    }

    /// What a decision depends on beside the conversation.
    pub(super) fn now<T>(&self, decision: impl FnOnce(&Now<'_>) -> T) -> T {
        let calibration = &self.setup.calibration;
        let tokens = |measure: &Measure| calibration.tokens(measure);
        let limits = &self.setup.limits;
        decision(&Now {
            window: limits.window,
            max_output: self.lowered.or(limits.max_output),
            bytes: limits.bytes,
            tools: planner::enough(tokens(&self.setup.tools), &self.setup.tools),
            opening: opening(self.projection.log()),
            usage: self.usage,
            tokens: &tokens,
        })
    }

    /// Carries out a plan and tells of it; a plan that would not help is told of as well.
    pub(super) fn carry_out(
        &mut self,
        plan: Plan,
        kind: EventKind,
        about: impl Fn(Event) -> Event,
    ) -> Result<bool, SessionError> {
        let reason = plan.reason.clone();
        let done = self.carry_out_quietly(plan, kind, &about)?;
        if !done {
            self.tell_of_nothing(reason, about)?;
        }
        Ok(done)
    }

    /// Tells that nothing was done.
    fn tell_of_nothing(
        &mut self,
        reason: Reason,
        about: impl Fn(Event) -> Event,
    ) -> Result<(), SessionError> {
        let (tokens, messages) = self.window_tokens()?;
        let mut event = Event::new(EventKind::NoOp, reason);
        (event.tokens_before, event.tokens_after) = (tokens, tokens);
        (event.messages_before, event.messages_after) = (messages, messages);
        self.events.push(about(event));
        Ok(())
    }

    /// The same, but nothing is said of a plan that would not help.
    pub(super) fn carry_out_quietly(
        &mut self,
        plan: Plan,
        kind: EventKind,
        about: impl Fn(Event) -> Event,
    ) -> Result<bool, SessionError> {
        let calibration = self.setup.calibration.clone();
        let bound = self.setup.policy.compaction.bound_reasoning;
        let plan = planner::brought_up_to_date(plan, self.projection.slots(), bound);
        let before = self.projection.window()?.messages().len();
        let Some(plan) = self.shrink(plan, |measure| calibration.tokens(measure))? else {
            return Ok(false);
        };
        self.under_way.window_changed();
        let after = self.projection.window()?.messages().len();
        let event = Event::of(kind, &plan, (before, after));
        self.events.push(about(event));
        Ok(true)
    }
}

/// How many messages of a log stand before the first answer and hold the task.
fn opening(log: &Log) -> usize {
    let mut users = 0;
    let ends = |message: &Arc<Message>| {
        users += usize::from(message.role == Role::User);
        message.role == Role::Assistant || users > TASK_MESSAGES
    };
    let messages = log.messages();
    messages.iter().position(ends).unwrap_or(messages.len())
}

fn written(answer: &Answered) -> Option<String> {
    match answer {
        Answered::Text { text, .. } => Some(text.clone()),
        Answered::Failed(_) => None,
    }
}

/// How the answers ended: one that was cut off spoils what was built on it.
fn ending(answers: &[Answered]) -> Ending {
    let endings = answers.iter().filter_map(|answer| match answer {
        Answered::Text { ending, .. } => Some(*ending),
        Answered::Failed(_) => None,
    });
    let bad = endings.into_iter().find(|ending| *ending != Ending::Whole);
    bad.unwrap_or(Ending::Whole)
}

/// What all calls of the summariser used together.
fn used(answers: &[Answered]) -> Option<Usage> {
    let usages = answers.iter().filter_map(|answer| match answer {
        Answered::Text { usage, .. } => *usage,
        Answered::Failed(_) => None,
    });
    usages.reduce(|sum, usage| sum + usage)
}
