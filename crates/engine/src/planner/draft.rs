//! A compaction that is decided on: what it asks a summariser, and the plan that follows from the
//! answer.

use std::fmt::Write as _;
use std::sync::Arc;

use trimtab_model::estimate::Measure;
use trimtab_model::{Dialect, Message, MessageKind, Output, Ref};

use super::dropping::newest_of_kind;
use super::rewrite::{BlockContents, RewriteResult};
use super::survivors::{Survivors, survivors};
use super::{CallConditions, ConversationState, output_digest, plan_without};
use crate::compaction::answer::{SummaryAnswer, SummaryEnding, SummaryRefusal, judge};
use crate::compaction::audit::{self, Coverage};
use crate::compaction::fallback;
use crate::compaction::rebuild::{Replacement, SummaryPlacement, rebuild};
use crate::compaction::request::OUTPUT_LIMIT;
use crate::compaction::summary_requests::{self, SummaryModel, SummaryRequest, SummaryRequests};
use crate::compaction::text_budget::TextBudget;
use crate::normalise::Slot;
use crate::plan::{Edit, Plan, PlanReason};
use crate::policy::{EstimateBy, Policy, SummaryRequestForm};
use crate::view::placeholder::{read_call, way_back_to_messages};

/// The placement of a block that explains itself.
const AS_IT_IS: SummaryPlacement = SummaryPlacement::Message {
    prefix: String::new(),
};

/// The background of a summary may take this fraction of the summariser's window.
const BACKGROUND_SHARE: u64 = 4;

/// Our estimate of a measure, in tokens.
pub type EstimateTokens<'t> = &'t dyn Fn(&Measure) -> u64;

/// The parameters of a compaction.
#[derive(Clone, Debug)]
pub struct CompactionRequest {
    /// The reason.
    pub reason: PlanReason,
    /// Additional instructions for the summary.
    pub instructions: Vec<String>,
    /// The number of turns to keep, if the user set it.
    pub keep_turns: Option<usize>,
    /// The minimum of tokens to remove; 0 if there is none.
    pub excess: u64,
}

impl Default for CompactionRequest {
    fn default() -> Self {
        Self {
            reason: PlanReason::ByHand,
            instructions: Vec::new(),
            keep_turns: None,
            excess: 0,
        }
    }
}

/// A compaction that is decided on. It asks for a summary, and works without one.
#[derive(Clone, Debug)]
pub struct CompactionDraft {
    pub(super) policy: Policy,
    request: CompactionRequest,
    pub(super) survivors: Survivors,
    /// The length of the log then.
    length: usize,
    window: Option<u64>,
    stored: Option<Ref>,
    /// True if the window should name the ref of the replaced messages.
    can_retrieve: bool,
    /// The further changes of a rewrite. A rewrite asks for no summary.
    rewritten: Option<RewriteResult>,
}

/// The result of a compaction.
#[derive(Clone, Debug)]
pub struct FinishedCompaction {
    /// The plan.
    pub plan: Plan,
    /// Why the summariser's answer was rejected, if there was one.
    pub refusal: Option<SummaryRefusal>,
    /// True if a model wrote the summary.
    pub by_model: bool,
    /// True if the summary is empty, so that only a ref represents the replaced messages.
    pub is_silent: bool,
    /// How much of the replaced messages the summary covers; none if that was not checked.
    pub coverage: Option<Coverage>,
}

/// The texts that take the place of the replaced messages.
#[derive(Default)]
struct WrittenSummary {
    replacement: Replacement,
    refs: Vec<Ref>,
    coverage: Option<Coverage>,
    /// True if no summary could be written.
    is_silent: bool,
}

/// Drafts the compaction of this window under its policy; none if there is nothing to replace, or
/// if nothing is new since the last one.
pub fn draft(
    conversation: &ConversationState<'_>,
    conditions: &CallConditions<'_>,
    asked: &CompactionRequest,
) -> Option<CompactionDraft> {
    let policy = conversation.policy;
    let length = conversation.log.len();
    // A log that did not grow would give the same summary again. A window that is too large must
    // still shrink.
    let again = conversation.compacted_at == Some(length) && asked.excess == 0;
    if !policy.compaction.enabled || again {
        return None;
    }
    Some(CompactionDraft {
        policy: policy.clone(),
        request: asked.clone(),
        survivors: survivors(conversation, conditions, asked)?,
        length,
        window: conditions.window,
        stored: None,
        can_retrieve: conditions.can_retrieve || policy.compaction.show_ref,
        rewritten: None,
    })
}

/// The limit of a summary under `policy`, in tokens.
pub(super) fn summary_tokens(policy: &Policy, window: Option<u64>) -> u64 {
    let most = policy.compaction.summary_tokens;
    // In a small window, a summary of the full length would take the room that the compaction
    // makes.
    window.map_or(most, |window| most.min(window / 10))
}

impl CompactionDraft {
    /// The draft of a rewrite.
    pub(super) fn of_rewrite(
        conversation: &ConversationState<'_>,
        reason: PlanReason,
        survivors: Survivors,
        rewritten: RewriteResult,
    ) -> Self {
        let policy = conversation.policy;
        Self {
            policy: policy.clone(),
            request: CompactionRequest {
                reason,
                ..CompactionRequest::default()
            },
            survivors,
            length: conversation.log.len(),
            // The window only limits summaries, and a rewrite has none.
            window: None,
            stored: None,
            can_retrieve: policy.compaction.show_ref,
            rewritten: Some(rewritten),
        }
    }

    /// Its cost and savings as text, if they were calculated.
    pub fn note(&self) -> Option<String> {
        self.rewritten
            .as_ref()
            .map(|rewritten| rewritten.account.to_string())
    }

    /// The messages that the summary replaces.
    pub fn replaced(&self) -> impl Iterator<Item = &Arc<Message>> {
        let slots = &self.survivors.slots;
        let replaced = self.survivors.replaced.iter();
        replaced
            .filter_map(|at| slots.get(*at))
            .map(|slot| &slot.message)
    }

    /// True if tokens must be removed, however few.
    pub fn is_forced(&self) -> bool {
        self.request.excess > 0
    }

    /// The plan without any text in place of the replaced messages. No summary makes the window
    /// smaller than this.
    pub fn without_summary(&self) -> Plan {
        self.plan(&Replacement::default())
    }

    /// The length of the log when it was made.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The requests to a summariser of `dialect`, within its own window. `tokens` is our estimate;
    /// `tools` are the tokens of the tool definitions, which must accompany messages with calls.
    pub fn requests(
        &self,
        dialect: Dialect,
        tokens: EstimateTokens<'_>,
        tools: u64,
    ) -> SummaryRequests {
        let compaction = &self.policy.compaction;
        let mut prompt = compaction.prompt.clone();
        prompt
            .summary_directives
            .extend(self.request.instructions.iter().cloned());
        // 0 means that the summariser has the window of the agent's model.
        let own = Some(compaction.model_window).filter(|window| *window > 0);
        let tools = match compaction.form {
            SummaryRequestForm::Messages => tools,
            SummaryRequestForm::Text | SummaryRequestForm::Turns => 0,
        };
        let weigh = |message: &Message| self.tokens_in_request(message, tokens);
        let window = own.or(self.window);
        // Only the design `archive` limits outputs; the others do not say how long they may be.
        let is_archive = self.policy.estimate == EstimateBy::Archive;
        let room = window.map_or(u64::MAX, |window| window / BACKGROUND_SHARE);
        let background = self.background(|text| weigh(&Message::user(text)) <= room);
        // Both stand beside the messages in the request, so they reduce the room for the messages.
        let around = tools.saturating_add(weigh(&Message::user(background.as_str())));
        let summariser = SummaryModel {
            window: window.map(|window| window.saturating_sub(around)),
            max_output: self.summary_tokens(),
            dialect,
            output_chars: is_archive.then_some(OUTPUT_LIMIT),
        };
        // A deletion writes no summary, so nobody needs to read anything.
        let read = if self.survivors.summary {
            self.summariser_messages()
        } else {
            Vec::new()
        };
        let requests =
            summary_requests::requests(&read, compaction.form, &prompt, summariser, &weigh);
        requests.with_background(background)
    }

    /// The request of `requests` that follows the `answers` so far.
    pub fn next_request(
        &self,
        requests: &SummaryRequests,
        answers: &[Option<&str>],
        tokens: EstimateTokens<'_>,
    ) -> Option<SummaryRequest> {
        requests.next(answers, &|message| self.tokens_in_request(message, tokens))
    }

    /// The tokens of a message in a request: the larger of our estimate and the design's. A design
    /// that counts less than the provider would build requests that do not fit.
    fn tokens_in_request(&self, message: &Message, tokens: EstimateTokens<'_>) -> u64 {
        let ours = tokens(&Measure::of(message));
        ours.max(self.policy.estimate.message(message))
    }

    /// Sets the ref of the replaced messages, so that the window can name it.
    pub fn stored_at(&mut self, stored: Ref) {
        self.stored = Some(stored);
    }
}

impl CompactionDraft {
    /// The plan with the summariser's answer, or with a summary that needs no model if there is no
    /// usable answer.
    pub fn finish(&self, answer: Option<(&str, SummaryEnding)>) -> FinishedCompaction {
        let judged = answer.map(|(text, ending)| self.checked_answer(text, ending));
        let (answer, refusal) = match judged {
            Some(Ok(answer)) => (Some(answer), None),
            Some(Err(refusal)) => (None, Some(refusal)),
            None => (None, None),
        };
        let by_model = answer.is_some();
        let written = if let Some(rewritten) = &self.rewritten {
            self.block(rewritten)
        } else if self.survivors.summary {
            answer.map_or_else(
                || self.summary_without_model(),
                |answer| self.audited_summary(answer),
            )
        } else {
            self.ref_only()
        };
        let is_silent = self.survivors.summary && written.is_silent;
        let mut plan = self.plan(&written.replacement);
        plan.name_refs(&written.refs);
        FinishedCompaction {
            is_silent: is_silent && self.rewritten.is_none(),
            plan,
            refusal,
            by_model,
            coverage: written.coverage,
        }
    }

    fn checked_answer(
        &self,
        text: &str,
        ending: SummaryEnding,
    ) -> Result<SummaryAnswer, SummaryRefusal> {
        let answer = SummaryAnswer::parse(text, self.policy.compaction.prompt.retain.is_some());
        // By the policy's estimate, like `replaced_tokens`, so that both can be compared.
        let tokens = self.weigh(&answer.retain) + self.weigh(&answer.effective_summary);
        judge(&answer, ending, tokens, self.replaced_tokens())?;
        Ok(answer)
    }

    /// The tokens of the replaced messages, by the policy's estimate.
    pub fn replaced_tokens(&self) -> u64 {
        self.replaced()
            .map(|message| self.policy.estimate.message(message))
            .sum()
    }

    /// The summary of a model, checked against the replaced messages.
    fn audited_summary(&self, answer: SummaryAnswer) -> WrittenSummary {
        let setting = &self.policy.compaction.audit;
        let mut replacement = Replacement {
            retain: answer.retain,
            summary: answer.effective_summary,
            note: String::new(),
        };
        if !setting.enabled {
            self.name_ref(&mut replacement.summary);
            return WrittenSummary {
                replacement,
                ..WrittenSummary::default()
            };
        }
        let replaced: Vec<&Message> = self.replaced().map(|message| &**message).collect();
        let texts = [replacement.retain.as_str(), replacement.summary.as_str()];
        let audit = audit::audit(&replaced, &texts);
        let room = self.window.map_or(setting.block_tokens, |window| {
            setting.block_tokens.min(window / 20)
        });
        let mut written = WrittenSummary {
            coverage: Some(audit.coverage()),
            ..WrittenSummary::default()
        };
        if room > 0 {
            let block = audit.fact_block(&TextBudget::new(room, &|text| self.weigh(text)));
            if !block.text.is_empty() {
                let _ = write!(replacement.summary, "\n\n{}", block.text);
            }
            written.coverage = Some(block.coverage);
            written.refs = block.refs;
        }
        self.name_ref(&mut replacement.summary);
        written.replacement = replacement;
        written
    }

    /// Only a line that names the ref of the replaced messages.
    fn ref_only(&self) -> WrittenSummary {
        let stored = self.stored.as_ref().filter(|_| self.can_retrieve);
        let line = |stored: &Ref| way_back_to_messages(self.survivors.replaced.len(), stored);
        WrittenSummary {
            replacement: Replacement {
                note: stored.map(line).unwrap_or_default(),
                ..Replacement::default()
            },
            ..WrittenSummary::default()
        }
    }

    /// The block of a rewrite.
    fn block(&self, rewritten: &RewriteResult) -> WrittenSummary {
        let text = |block: &BlockContents| block.text(self.stored.as_ref());
        let summary = rewritten.block.as_ref().map(text).unwrap_or_default();
        WrittenSummary {
            replacement: Replacement {
                summary,
                ..Replacement::default()
            },
            ..WrittenSummary::default()
        }
    }

    /// The summary that needs no model.
    fn summary_without_model(&self) -> WrittenSummary {
        let replaced: Vec<&Message> = self.replaced().map(|message| &**message).collect();
        let weigh = |text: &str| self.weigh(text);
        let budget = TextBudget::new(self.summary_tokens(), &weigh);
        let mut made = fallback::summarise(&replaced, &budget);
        let is_silent = made.summary.trim().is_empty();
        self.name_ref(&mut made.summary);
        WrittenSummary {
            is_silent,
            replacement: Replacement {
                // No model reads the earlier retained text, so it is copied.
                retain: newest_of_kind(&self.survivors.slots, MessageKind::Retain, ""),
                summary: made.summary,
                note: String::new(),
            },
            refs: made.refs,
            coverage: Some(made.coverage),
        }
    }

    fn weigh(&self, text: &str) -> u64 {
        self.policy.estimate.text(text)
    }

    /// Appends a line that says how to read the replaced messages.
    fn name_ref(&self, summary: &mut String) {
        if let Some(stored) = self.stored.as_ref().filter(|_| self.can_retrieve) {
            let replaced = self.survivors.replaced.len();
            let call = read_call(stored, 0);
            let _ = write!(summary, "\n[{replaced} messages in full: {call}]");
        }
    }

    /// The limit of a summary, in tokens.
    pub fn summary_tokens(&self) -> u64 {
        summary_tokens(&self.policy, self.window)
    }

    fn plan(&self, replacement: &Replacement) -> Plan {
        let Survivors {
            slots,
            kept,
            replaced,
            ..
        } = &self.survivors;
        let compaction = &self.policy.compaction;
        let mut edits = match &self.rewritten {
            None => rebuild(slots, kept, replacement, &compaction.placement),
            // A rewrite that hides nothing only shortens outputs in place.
            Some(_) if replaced.is_empty() => Vec::new(),
            Some(_) => rebuild(slots, kept, replacement, &AS_IT_IS),
        };
        let mut digested = Vec::new();
        match &self.rewritten {
            None => {
                let (digest, outputs) = self.digest();
                edits.extend(digest);
                digested = outputs;
            }
            Some(rewritten) => edits.extend(rewritten.edits.iter().cloned()),
        }
        let reason = self.request.reason.clone();
        let bound = compaction.bound_reasoning;
        let mut plan = plan_without(reason, edits, slots, replaced, bound);
        plan.refs.extend(self.stored.clone());
        plan.name_refs(digested.iter().filter_map(|output| output.stored.as_ref()));
        // The summary can arrive many messages later. The plan must not reach what came since.
        plan.within(self.length)
    }

    /// The digest of outputs among the kept messages after the summary: edits, and the outputs.
    fn digest(&self) -> (Vec<Edit>, Vec<Output>) {
        let Survivors { slots, kept, .. } = &self.survivors;
        let recent: Vec<&Slot> = kept
            .after_summary
            .iter()
            .filter_map(|at| slots.get(*at))
            .collect();
        let digest = &self.policy.compaction.digest;
        output_digest::edits(digest, &recent, self.can_retrieve, self.length)
    }
}
