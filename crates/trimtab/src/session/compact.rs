//! Asks for summaries, and executes the compactions that wait for them.

use trimtab_engine::decide::summary::answer::{SummaryEnding, SummaryRefusal};
use trimtab_engine::decide::summary::requests::SummaryRequests;
use trimtab_engine::decide::{
    self, CompactionDraft, CompactionRequest, ConversationState, PlanStep, ReportedUsage,
};
use trimtab_engine::journal::JournalEntry;
use trimtab_engine::plan::{Plan, PlanReason};
use trimtab_engine::policy::Moment;
use trimtab_engine::trigger::TriggerInputs;
use trimtab_engine::view::placeholder::refs_named_in;
use trimtab_model::Usage;
use trimtab_model::estimate::Measure;
use trimtab_wire::catalogue::Money;

use super::pending::{PendingWork, texts};
use super::{
    ManualCompaction, PendingSummary, Session, SessionError, SessionEvent, SessionEventKind, Setup,
    SummariserAnswer,
};

/// What stands in a summary for a ref that is none.
const UNKNOWN_REF: &str = "(unknown ref)";
/// From this share of the reported size on, in percent, an estimate is wrong as a whole.
const WRONG_BY: u64 = 150;

impl Session {
    /// Does what the policy wants at this moment. Steps without a model are executed at once; a
    /// summary is asked for.
    ///
    /// Call it at every moment: the policy decides which of them count.
    pub fn check(&mut self, moment: Moment) -> Result<Option<PendingSummary>, SessionError> {
        if let Some(step) = self.decide(|conversation| decide::age(conversation, moment))? {
            let archived_before = step.archived_before();
            let done = match step {
                // Do not ask a model about outputs that would not be archived.
                PlanStep::ToolSummaries(archived) if !self.would_help(&archived.plan)? => false,
                // After repeated failures, excerpts represent the outputs.
                PlanStep::ToolSummaries(archived)
                    if decide::may_summarise_outputs(self.calls.failed_tool_summaries) =>
                {
                    return Ok(Some(self.pending(PendingWork::ToolSummaries(archived))));
                }
                step => self.take_step(Some(step), &PlanReason::OutputsOverBudget)?,
            };
            // Otherwise each further call would examine the same outputs again.
            if !done {
                self.calls.archive_from = archived_before.unwrap_or(self.calls.archive_from);
            }
        }
        // Only compaction is suspended. Ageing above costs no model call.
        if self.is_suspended() {
            return Ok(None);
        }
        if moment == Moment::BeforeCall {
            let rungs = decide::rungs_before_summary(&self.setup.policy);
            self.climb(&rungs, 1)?;
        }
        let asked = self.decide(|conversation| decide::time_to_compact(conversation, moment))??;
        asked.map_or(Ok(None), |asked| self.draft(&asked))
    }

    /// What the conditions of a compaction are about now.
    pub fn trigger_inputs(&mut self) -> Result<TriggerInputs, SessionError> {
        self.decide(|conversation: &ConversationState<'_>| conversation.trigger_inputs())
    }

    /// Compacts at a user's request; none if there is nothing to replace.
    pub fn compact(
        &mut self,
        request: &ManualCompaction,
    ) -> Result<Option<PendingSummary>, SessionError> {
        let wishes = Some(request.instructions.trim()).filter(|wishes| !wishes.is_empty());
        let asked = CompactionRequest {
            instructions: wishes.into_iter().map(str::to_owned).collect(),
            keep_turns: request.keep_turns,
            already_compacted: request.already_compacted,
            ..CompactionRequest::new(PlanReason::ByHand)
        };
        let pending = self.draft(&asked)?;
        if pending.is_none() {
            let note = "there is nothing to replace".to_owned();
            self.report_no_op(
                SessionEvent::new(SessionEventKind::NoOp, asked.reason).with_note(note),
            )?;
        }
        Ok(pending)
    }

    /// True if no other plan has moved or hidden messages since `pending` was made. Then its summary
    /// can still be used.
    pub fn is_current(&self, pending: &PendingSummary) -> bool {
        pending.journal >= self.rearranged
    }

    /// Executes a plan that waited for its summary. False if it came too late, or would not make
    /// the window smaller; an event says which.
    pub fn finish(&mut self, mut pending: PendingSummary) -> Result<bool, SessionError> {
        let usage = used(&pending.answers);
        let prices = self.setup.prices.as_ref();
        let cost = prices.zip(usage).map(|(prices, usage)| prices.cost(&usage));
        let event = SessionEvent {
            usage,
            own_calls: u32::try_from(pending.answers.len()).unwrap_or(u32::MAX),
            cost: cost.map(Money::dollars),
            ..SessionEvent::new(SessionEventKind::Trimmed, PlanReason::Nothing)
        };
        // Outputs that were shortened meanwhile are still at their places. Other plans moved or hid
        // messages, and the positions of this plan are no longer right.
        if !self.is_current(&pending) {
            let note = "another plan was executed in the meantime".to_owned();
            let kind = SessionEventKind::Stale;
            self.events
                .push(SessionEvent { kind, ..event }.with_note(note));
            return Ok(false);
        }
        for answer in &mut pending.answers {
            if let SummariserAnswer::Text { text, .. } = answer {
                self.remove_unknown_refs(text)?;
            }
        }
        match pending.wants {
            PendingWork::ToolSummaries(archived) => {
                let failed = pending.answers.iter().any(SummariserAnswer::is_failed);
                self.calls.failed_tool_summaries = if failed {
                    self.calls.failed_tool_summaries.saturating_add(1)
                } else {
                    0
                };
                let plan = archived.with_summaries(&texts(&pending.answers));
                // A model's text may be longer than the output. Then the excerpts are used.
                let before = PlanStep::ToolSummaries(archived.clone()).archived_before();
                let helps = self.would_help(&plan)?;
                let plan = if helps { plan } else { archived.plan };
                let reason = plan.reason.clone();
                let done = self.carry_out(plan, event.clone())?;
                if !done {
                    self.report_no_op(SessionEvent { reason, ..event })?;
                    self.calls.archive_from = before.unwrap_or(self.calls.archive_from);
                }
                Ok(done)
            }
            PendingWork::Compaction(draft, requests) => {
                self.finish_compaction(&draft, &requests, &pending.answers, event)
            }
        }
    }

    /// Removes refs from a summary that are not refs of this session: a model may repeat what an
    /// output claims to be one.
    fn remove_unknown_refs(&self, summary: &mut String) -> Result<(), SessionError> {
        let named: Vec<String> = refs_named_in(summary)
            .into_iter()
            .map(str::to_owned)
            .collect();
        for id in named {
            if !self.store.holds_all(&self.id, &[&id])? {
                *summary = summary.replace(&id, UNKNOWN_REF);
            }
        }
        Ok(())
    }

    fn finish_compaction(
        &mut self,
        draft: &CompactionDraft,
        requests: &SummaryRequests,
        answers: &[SummariserAnswer],
        event: SessionEvent,
    ) -> Result<bool, SessionError> {
        let text = requests.result(&texts(answers));
        let answer = text.as_deref().map(|text| (text, ending(answers)));
        let failed = answers.iter().find_map(|answer| match answer {
            SummariserAnswer::Failed(why) => Some(format!("failed to generate summary: {why}")),
            SummariserAnswer::Text { .. } => None,
        });
        // The draft does not judge an answer without any text, so its ending is the reason.
        let is_empty = text.is_none() && !answers.is_empty();
        let failed = failed.or_else(|| is_empty.then(|| without_text(answers).to_string()));
        let finished = draft.finish(answer);
        let fallback = self.setup.policy.compaction.fallback;
        let may_replace = finished.may_replace_failed_summary(fallback);
        let refused = finished.refusal.map(|refusal| refusal.to_string());
        let mut event = SessionEvent {
            kind: SessionEventKind::Compacted,
            reason: finished.plan.reason.clone(),
            by_model: finished.by_model,
            note: refused.or(failed),
            ..event
        };
        let judged = self.last_true_tokens();
        let asked_in_vain = !event.by_model && !answers.is_empty() && !draft.is_forced();
        let may_be_done = !asked_in_vain || may_replace;
        let done = may_be_done && self.carry_out(finished.plan, event.clone())?;
        if !done {
            let why = || "it would save next to nothing".to_owned();
            event.note.get_or_insert_with(why);
            self.report_no_op(event)?;
        }
        // The next attempt waits until there is more to replace: see `failed_before`.
        self.calls.failed_summary_tokens = (!done).then(|| draft.replaced_tokens());
        if done {
            // The next usage shows what this compaction really saved.
            self.calls.tokens_before_compaction = judged;
            self.warn_after_many();
        }
        Ok(done)
    }

    /// True if a plan would be executed.
    fn would_help(&mut self, plan: &Plan) -> Result<bool, SessionError> {
        Ok(self.worthwhile(plan.clone(), Measure::tokens)?.is_some())
    }

    /// The size of the window by the last reported usage, to compare with the next one.
    pub(super) fn last_true_tokens(&self) -> Option<u64> {
        let reported = self.calls.usage.as_ref();
        reported.map(|reported| reported.usage.prompt())
    }

    /// Learns from the usage reported for the last window that `ready` returned. Some servers
    /// report only zeros, which say nothing.
    pub fn record(&mut self, usage: &Usage) -> Result<(), SessionError> {
        if let Some(window) = self.calls.sent_measure
            && !self.setup.counts_as_we_do
            && usage.total() > 0
        {
            self.calibrate(usage.prompt(), window);
        }
        self.record_of_shortened(usage)
    }

    /// The same for a prompt of which the provider may have removed a part: its size does not say
    /// how the model counts.
    pub fn record_of_shortened(&mut self, usage: &Usage) -> Result<(), SessionError> {
        let Some(window) = self.calls.sent_measure else {
            return Ok(());
        };
        self.calls.recoveries = 0;
        self.calls.lowered_reserve = None;
        if usage.total() == 0 {
            return Ok(());
        }
        self.calls.sent_measure = None;
        self.calls.usage = Some(ReportedUsage {
            usage: *usage,
            window,
            answer: Measure::default(),
        });
        if let Some(before) = self.calls.tokens_before_compaction.take() {
            self.judge(before, usage.prompt())?;
        }
        Ok(())
    }

    /// Learns how the model counts from the reported size of a prompt with this window.
    fn calibrate(&mut self, prompt: u64, window: Measure) {
        let calibration = &mut self.setup.calibration;
        let whole = window + self.setup.tools;
        let estimate = calibration.tokens(&whole);
        if estimate > prompt * WRONG_BY / 100 || prompt > estimate * WRONG_BY / 100 {
            // Such an estimate causes an edit of nearly every window. Growth could never correct
            // it, because it is not known across an edit.
            calibration.observe(&whole, prompt);
        } else if let Some(last) = &self.calls.usage {
            // An edit clears `usage`, so both windows differ only by what was added. Only then does
            // the growth of the prompt say how the model counts.
            let grown = prompt.saturating_sub(last.usage.prompt());
            calibration.observe(&(window - last.window), grown);
        }
    }

    /// Records whether the last compaction was worth it, by reported usage.
    fn judge(&mut self, before: u64, after: u64) -> Result<(), SessionError> {
        let enough = decide::gained_enough(before, after);
        let at = self.projection.log().len();
        let entry = JournalEntry::Judged { enough, at };
        self.write(&entry)?;
        self.projection.record(entry);
        self.calls.settings_changed = false;
        if !enough && self.is_suspended() {
            let note = "the last compactions freed next to nothing of the window: automatic \
                        compaction stops until something changes";
            let event = SessionEvent::new(SessionEventKind::Suspended, PlanReason::Nothing);
            self.events.push(event.with_note(note.to_owned()));
        }
        Ok(())
    }

    /// True if compaction failed to help so often that it is no longer tried automatically, until
    /// something changes: the user sends a message, the limits or the policy change, or a user
    /// compacts by hand or undoes a plan.
    fn is_suspended(&self) -> bool {
        let (in_vain, since) = self.projection.journal().compactions_in_vain();
        if self.calls.settings_changed || !decide::is_suspended(in_vain) {
            return false;
        }
        let newest = self.projection.log().newest_real_user();
        newest.is_none_or(|at| at < since)
    }

    fn warn_after_many(&mut self) {
        let compactions = self.projection.journal().compactions();
        let warn_after = self.setup.policy.compaction.warn_after as usize;
        if warn_after == 0 || compactions < warn_after {
            return;
        }
        let times = match compactions {
            1 => "once".to_owned(),
            more => format!("{more} times"),
        };
        let note = format!(
            "this conversation was compacted {times}; details fade with every summary of a \
             summary\nhint: begin a new session for a new task"
        );
        let event = SessionEvent::new(SessionEventKind::Warning, PlanReason::Nothing);
        self.events.push(event.with_note(note));
    }

    fn draft(&mut self, asked: &CompactionRequest) -> Result<Option<PendingSummary>, SessionError> {
        let draft = self.decide(|conversation| decide::draft(conversation, asked))?;
        let Some(draft) = draft else {
            return Ok(None);
        };
        // A user who asks by hand wants to see it tried.
        if asked.reason != PlanReason::ByHand {
            let before = self
                .calls
                .failed_summary_tokens
                .filter(|_| !self.calls.settings_changed);
            let in_vain = before.is_some_and(|before| decide::failed_before(&draft, before));
            // The size of the summary is unknown yet. So the best case decides: no summary at all.
            if in_vain || !self.would_help(&draft.without_summary())? {
                return Ok(None);
            }
        }
        self.ask_for_summary(draft).map(Some)
    }

    /// Stores the messages that a draft replaces, and prepares the requests for its summary.
    pub(super) fn ask_for_summary(
        &self,
        mut draft: CompactionDraft,
    ) -> Result<PendingSummary, SessionError> {
        self.store_replaced(&mut draft)?;
        let Setup {
            dialect,
            calibration,
            tools,
            ..
        } = &self.setup;
        let tokens = |measure: &Measure| calibration.tokens(measure);
        let requests = draft.requests(*dialect, &tokens, tokens(tools));
        Ok(self.pending(PendingWork::Compaction(Box::new(draft), requests)))
    }

    fn pending(&self, wants: PendingWork) -> PendingSummary {
        PendingSummary {
            wants,
            journal: self.journal_position,
            calibration: Box::new(self.setup.calibration.clone()),
            answers: Vec::new(),
        }
    }
}

/// The worst ending of the answers: one that was cut off spoils everything built on it.
fn ending(answers: &[SummariserAnswer]) -> SummaryEnding {
    let bad = answers.iter().find_map(|answer| match answer {
        SummariserAnswer::Text { ending, .. } => {
            Some(*ending).filter(|ending| *ending != SummaryEnding::Whole)
        }
        SummariserAnswer::Failed(_) => None,
    });
    bad.unwrap_or(SummaryEnding::Whole)
}

/// Why answers without any text are refused.
fn without_text(answers: &[SummariserAnswer]) -> SummaryRefusal {
    match ending(answers) {
        SummaryEnding::Whole => SummaryRefusal::Empty,
        SummaryEnding::CutOff => SummaryRefusal::CutOff,
        SummaryEnding::ToolCall => SummaryRefusal::ToolCall,
    }
}

/// The sum of the usage of all summariser calls.
fn used(answers: &[SummariserAnswer]) -> Option<Usage> {
    let usages = answers.iter().filter_map(|answer| match answer {
        SummariserAnswer::Text { usage, .. } => *usage,
        SummariserAnswer::Failed(_) => None,
    });
    usages.reduce(|sum, usage| sum + usage)
}
