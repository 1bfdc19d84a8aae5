//! A compaction that is decided on, and what it asks a summariser.

use std::sync::Arc;

use trimtab_model::estimate::Measure;
use trimtab_model::{Dialect, Message, Ref};

use crate::decide::ConversationState;
use crate::decide::compact::rebuild::Replacement;
use crate::decide::compact::survivors::{Survivors, survivors};
use crate::decide::must_stay::MustStay;
use crate::decide::steady::RewriteAccount;
use crate::decide::summary::conversation::OUTPUT_LIMIT;
use crate::decide::summary::requests::{self, SummaryModel, SummaryRequest, SummaryRequests};
use crate::digest::HiddenMessages;
use crate::plan::{Plan, PlanReason};
use crate::policy::{EstimateBy, Policy, SummaryRequestForm};

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
    /// The number of messages of the log that an earlier compaction left, if it is not in the
    /// journal: a transcript may say so.
    pub already_compacted: usize,
}

impl CompactionRequest {
    /// A compaction for this reason, without further wishes.
    pub fn new(reason: PlanReason) -> Self {
        Self {
            reason,
            instructions: Vec::new(),
            keep_turns: None,
            excess: 0,
            already_compacted: 0,
        }
    }
}

/// What takes the place of the replaced messages.
#[derive(Clone, Debug)]
pub(in crate::decide) enum DraftContent {
    /// A summary, by a model if one answers.
    Summary,
    /// A line that names their ref.
    Line,
    /// The same, where the first of them was. All other messages stay in place.
    LineInPlace,
    /// The previous summary, with a note about the dropped turns.
    PreviousSummary,
    /// A digest, which a rewrite leaves.
    Digest {
        /// What the rewrite costs and saves.
        account: RewriteAccount,
        /// The limit of the digest in tokens.
        tokens: u64,
    },
}

/// A removal of messages that is decided on. It may ask for a summary, and works without one.
#[derive(Clone, Debug)]
pub struct CompactionDraft {
    pub(in crate::decide) policy: Policy,
    pub(super) request: CompactionRequest,
    pub(in crate::decide) survivors: Survivors,
    /// What a digest is about: the replaced messages, and those that earlier plans have hidden.
    pub(super) hidden: HiddenMessages,
    /// The length of the log then.
    pub(super) length: usize,
    window: Option<u64>,
    /// The ref of the replaced messages, once they are stored, so that the window can name it.
    pub stored: Option<Ref>,
    /// True if the window should name the ref of the replaced messages.
    pub(super) can_retrieve: bool,
}

/// Drafts the compaction of this window under its policy; none if there is nothing to replace, or
/// if nothing is new since the last one.
pub fn draft(
    conversation: &ConversationState<'_>,
    asked: &CompactionRequest,
) -> Option<CompactionDraft> {
    let compaction = &conversation.policy.compaction;
    // A log that did not grow would give the same summary again. A window that is too large must
    // still shrink.
    let again = conversation.compacted_at == Some(conversation.log.len()) && asked.excess == 0;
    if !compaction.enabled || again {
        return None;
    }
    let survivors = survivors(conversation, asked)?;
    let draft = CompactionDraft {
        can_retrieve: conversation.call.can_retrieve || compaction.show_ref,
        ..CompactionDraft::new(conversation, asked.clone(), survivors)
    };
    // All of it may belong to the provider.
    (!draft.survivors.replaced.is_empty()).then_some(draft)
}

/// The limit of a summary under `policy`, in tokens.
pub(in crate::decide) fn summary_tokens(policy: &Policy, window: Option<u64>) -> u64 {
    let most = policy.compaction.summary_tokens;
    // In a small window, a summary of the full length would take the room that the compaction
    // makes.
    window.map_or(most, |window| most.min(window / 10))
}

impl CompactionDraft {
    pub(in crate::decide) fn new(
        conversation: &ConversationState<'_>,
        request: CompactionRequest,
        mut survivors: Survivors,
    ) -> Self {
        let stays = MustStay::of(conversation, &survivors.slots).of_provider;
        survivors.replaced.retain(|at| !stays.contains(at));
        let kept = &mut survivors.kept;
        kept.shortened.retain(|at, _| !stays.contains(at));
        let behind = kept.after_summary.iter().copied().collect();
        kept.before_summary.extend(stays.difference(&behind));
        let hidden = match survivors.content {
            DraftContent::Summary | DraftContent::Digest { .. } => {
                let prefix = conversation.policy.compaction.placement.prefix();
                HiddenMessages::of(
                    conversation.log,
                    &survivors.slots,
                    &survivors.replaced,
                    prefix,
                )
            }
            _ => HiddenMessages::default(),
        };
        Self {
            policy: conversation.policy.clone(),
            request,
            survivors,
            hidden,
            length: conversation.log.len(),
            window: conversation.call.window,
            stored: None,
            can_retrieve: conversation.call.can_retrieve,
        }
    }

    /// Its cost and savings as text, if they were calculated.
    pub fn note(&self) -> Option<String> {
        match &self.survivors.content {
            DraftContent::Digest { account, .. } => Some(account.to_string()),
            _ => None,
        }
    }

    /// True if it drops messages without representing them.
    pub fn drops(&self) -> bool {
        let content = &self.survivors.content;
        matches!(
            content,
            DraftContent::LineInPlace | DraftContent::PreviousSummary
        )
    }

    /// The messages that it replaces.
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
        let summariser = SummaryModel {
            // The tools stand beside the messages in the request.
            window: window.map(|window| window.saturating_sub(tools)),
            max_output: self.summary_tokens(),
            dialect,
            output_chars: is_archive.then_some(OUTPUT_LIMIT),
        };
        // Without a summary, nobody needs to read anything.
        let read = match self.survivors.content {
            DraftContent::Summary => self.summariser_messages(),
            _ => Vec::new(),
        };
        let form = compaction.form;
        requests::requests(&read, form, &prompt, &background, summariser, &weigh)
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

    /// The limit of a summary, in tokens.
    pub fn summary_tokens(&self) -> u64 {
        summary_tokens(&self.policy, self.window)
    }
}
