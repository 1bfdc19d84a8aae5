//! The plan that follows from the answer of a summariser, or from none.

use std::borrow::Cow;
use std::fmt::Write as _;

use trimtab_model::{Message, MessageKind, Output, Part, Ref};

use super::{CompactionDraft, DraftContent};
use crate::compaction::answer::{SummaryAnswer, SummaryEnding, SummaryRefusal, judge};
use crate::compaction::audit::{self, Coverage};
use crate::compaction::fallback;
use crate::compaction::rebuild::{Replacement, SummaryPlacement, rebuild};
use crate::compaction::recovery::with_note;
use crate::compaction::text_budget::TextBudget;
use crate::normalise::Slot;
use crate::plan::{Edit, Plan};
use crate::planner::output_digest;
use crate::planner::rewrite::{BlockContents, RewriteResult};
use crate::planner::survivors::Survivors;
use crate::view::placeholder::{read_call, way_back_to_messages};

/// The placement of a block that explains itself.
const AS_IT_IS: SummaryPlacement = SummaryPlacement::Message {
    prefix: String::new(),
};

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

impl FinishedCompaction {
    /// True if it may be carried out although a model was asked and wrote no usable summary.
    /// `fallback` is true if the policy wants a summary without a model then.
    pub fn may_replace_failed_summary(&self, fallback: bool) -> bool {
        // A summary larger than what it would replace shows that there is nothing to gain.
        let is_too_large = matches!(self.refusal, Some(SummaryRefusal::TooLarge { .. }));
        fallback && !self.is_silent && !is_too_large
    }
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

impl From<Replacement> for WrittenSummary {
    fn from(replacement: Replacement) -> Self {
        Self {
            replacement,
            ..Self::default()
        }
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
        let written = match (&self.survivors.content, answer) {
            (DraftContent::Summary, Some(answer)) => self.audited_summary(answer),
            (DraftContent::Summary, None) => self.summary_without_model(),
            (DraftContent::Line | DraftContent::LineInPlace, _) => {
                WrittenSummary::from(Replacement {
                    note: self.ref_line().unwrap_or_default(),
                    ..Replacement::default()
                })
            }
            (DraftContent::PreviousSummary, _) => self.previous_summary().into(),
            (DraftContent::Rewrite(rewritten), _) => WrittenSummary::from(Replacement {
                summary: self.block(rewritten),
                ..Replacement::default()
            }),
        };
        let mut plan = self.plan(&written.replacement);
        plan.name_refs(&written.refs);
        FinishedCompaction {
            is_silent: written.is_silent,
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
            return replacement.into();
        }
        let replaced: Vec<&Message> = self.replaced().map(|message| &**message).collect();
        let texts = [replacement.retain.as_str(), replacement.summary.as_str()];
        let audit = audit::audit(&replaced, &texts);
        let room = self.window.map_or(setting.block_tokens, |window| {
            setting.block_tokens.min(window / 20)
        });
        let block = audit.fact_block(&TextBudget::new(room, &|text| self.weigh(text)));
        if !block.text.is_empty() {
            let _ = write!(replacement.summary, "\n\n{}", block.text);
        }
        self.name_ref(&mut replacement.summary);
        WrittenSummary {
            replacement,
            refs: block.refs,
            coverage: Some(block.coverage),
            is_silent: false,
        }
    }

    /// The line that names the ref of the replaced messages, if the model may see it.
    fn ref_line(&self) -> Option<String> {
        let stored = self.stored.as_ref().filter(|_| self.can_retrieve)?;
        let replaced = self.survivors.replaced.len();
        Some(way_back_to_messages(replaced, stored))
    }

    /// The block of a rewrite.
    fn block(&self, rewritten: &RewriteResult) -> String {
        let text = |block: &BlockContents| block.text(self.stored.as_ref());
        rewritten.block.as_ref().map(text).unwrap_or_default()
    }

    /// The summary and the retained text of the last compaction, with a note.
    fn previous_summary(&self) -> Replacement {
        let slots = &self.survivors.slots;
        let prefix = match &self.policy.compaction.placement {
            SummaryPlacement::Message { prefix } | SummaryPlacement::System { prefix } => prefix,
        };
        let summary = newest_of_kind(slots, MessageKind::Summary, prefix);
        let mut summary = with_note(&summary, self.survivors.replaced.len());
        if let Some(line) = self.ref_line() {
            summary.push('\n');
            summary.push_str(&line);
        }
        Replacement {
            retain: newest_of_kind(slots, MessageKind::Retain, ""),
            summary,
            note: String::new(),
        }
    }

    /// The summary that needs no model.
    fn summary_without_model(&self) -> WrittenSummary {
        let replaced = self.replaced().map(|message| self.without_prefix(message));
        let replaced: Vec<Cow<'_, Message>> = replaced.collect();
        let weigh = |text: &str| self.weigh(text);
        let budget = TextBudget::new(self.summary_tokens(), &weigh);
        let mut made = fallback::summarise(&replaced, self.keeps_task(), &budget);
        let is_silent = made.text.trim().is_empty();
        self.name_ref(&mut made.text);
        WrittenSummary {
            is_silent,
            replacement: Replacement {
                // No model reads the earlier retained text, so it is copied.
                retain: newest_of_kind(&self.survivors.slots, MessageKind::Retain, ""),
                summary: made.text,
                note: String::new(),
            },
            refs: made.refs,
            coverage: Some(made.coverage),
        }
    }

    /// An earlier summary without the prefix of its placement, which would be nested in the next one;
    /// any other message unchanged.
    fn without_prefix<'m>(&self, message: &'m Message) -> Cow<'m, Message> {
        let (SummaryPlacement::Message { prefix } | SummaryPlacement::System { prefix }) =
            &self.policy.compaction.placement;
        let text = message.text();
        if prefix.is_empty() || !message.is_summary() || !text.starts_with(prefix) {
            return Cow::Borrowed(message);
        }
        let said = text.trim_start_matches(prefix.as_str());
        Cow::Owned(Message {
            parts: vec![Part::text(said)],
            ..message.clone()
        })
    }

    /// True if a message of the user stays before the replaced ones.
    fn keeps_task(&self) -> bool {
        let first = self.survivors.replaced.first().copied().unwrap_or(0);
        let mut before = self.survivors.slots.iter().take(first);
        before.any(|slot| slot.message.is_real_user())
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

    pub(super) fn plan(&self, replacement: &Replacement) -> Plan {
        let Survivors {
            slots,
            kept,
            replaced,
            content,
        } = &self.survivors;
        let compaction = &self.policy.compaction;
        let rebuilt = |placement| rebuild(slots, kept, replacement, placement);
        let mut digested = Vec::new();
        let mut edits = match content {
            DraftContent::LineInPlace => self.hide_in_place(&replacement.note),
            DraftContent::PreviousSummary => rebuilt(&compaction.placement),
            DraftContent::Summary | DraftContent::Line => {
                let (digest, outputs) = self.digest();
                digested = outputs;
                let mut edits = rebuilt(&compaction.placement);
                edits.extend(digest);
                edits
            }
            // A rewrite that hides nothing only shortens outputs in place.
            DraftContent::Rewrite(_) if replaced.is_empty() => Vec::new(),
            DraftContent::Rewrite(_) => rebuilt(&AS_IT_IS),
        };
        if let DraftContent::Rewrite(rewritten) = content {
            edits.extend(rewritten.edits.iter().cloned());
        }
        let reason = self.request.reason.clone();
        let mut plan = Plan::new(reason, edits);
        let hidden = replaced.iter().filter_map(|at| slots.get(*at));
        let outputs = hidden.flat_map(|slot| slot.message.outputs());
        plan.name_refs(outputs.filter_map(|output| output.stored.as_ref()));
        plan.refs.extend(self.stored.clone());
        plan.name_refs(digested.iter().filter_map(|output| output.stored.as_ref()));
        // The summary can arrive many messages later. The plan must not reach what came since.
        plan.within(self.length)
    }

    /// Hides the replaced messages, and inserts a line before the first of them.
    fn hide_in_place(&self, line: &str) -> Vec<Edit> {
        let survivors = &self.survivors;
        let gone = survivors
            .replaced
            .iter()
            .filter_map(|at| survivors.slots.get(*at));
        let positions: Vec<usize> = gone.filter_map(|slot| slot.source.in_log()).collect();
        // One edit per message. Runs that touch are joined when the edits are applied.
        let hide = |at: &usize| Edit::Hide {
            from: *at,
            to: at + 1,
        };
        let mut edits: Vec<Edit> = positions.iter().map(hide).collect();
        if let Some(first) = positions.first().filter(|_| !line.is_empty()) {
            let line = Message::user(line).with_kind(MessageKind::Note);
            edits.push(Edit::insert(*first, line));
        }
        edits
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

/// The text of the newest message of a kind that we inserted, without `prefix`.
fn newest_of_kind(slots: &[Slot], kind: MessageKind, prefix: &str) -> String {
    let mut said = slots.iter().rev().map(|slot| &slot.message);
    let said = said.find(|message| message.meta.kind == Some(kind));
    let text = said.map(|message| message.text()).unwrap_or_default();
    text.strip_prefix(prefix).unwrap_or(&text).to_owned()
}
