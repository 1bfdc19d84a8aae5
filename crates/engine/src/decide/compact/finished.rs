//! The plan that follows from the answer of a summariser, or from none.

use std::fmt::Write as _;

use trimtab_model::{Message, MessageKind, Output, Ref};

use super::draft::{CompactionDraft, DraftContent};
use super::survivors::Survivors;
use crate::decide::age::archive;
use crate::decide::compact::rebuild::{Replacement, rebuild};
use crate::decide::fit::with_note;
use crate::decide::summary::answer::{SummaryAnswer, SummaryEnding, SummaryRefusal, judge};
use crate::digest::{Digest, digest};
use crate::normalise::Slot;
use crate::plan::{Edit, Plan};
use crate::policy::SummaryPlacement;
use crate::view::WindowOutputs;
use crate::view::placeholder::{read_call, way_back_to_messages};

/// The approximate tokens of the lines at the end of a digest that say how to read the messages.
const WAY_BACK_TOKENS: u64 = 80;
/// The placement of a digest, which says itself what it is.
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

impl CompactionDraft {
    /// The plan with the summariser's answer, or with a summary that needs no model if there is no
    /// usable answer.
    pub fn finish(&self, answer: Option<(&str, SummaryEnding)>) -> FinishedCompaction {
        let judged = answer.map(|(text, ending)| self.checked_answer(text, ending));
        let (answer, refusal) = match judged.transpose() {
            Ok(answer) => (answer, None),
            Err(refusal) => (None, Some(refusal)),
        };
        let by_model = answer.is_some();
        let mut is_silent = false;
        let replacement = match (&self.survivors.content, answer) {
            (DraftContent::Summary, Some(answer)) => self.summary_of_model(answer),
            (DraftContent::Summary, None) => {
                // A summary must be much smaller than what it replaces.
                let most = self.replaced_tokens() / 2;
                let archived = self.shown_ref();
                let digest = self.digest_within(self.summary_tokens().min(most), archived);
                is_silent = digest.is_empty;
                let says_something = !digest.is_empty || archived.is_some();
                Replacement {
                    // No model reads the earlier retained text, so it is copied.
                    retain: newest_of_kind(&self.survivors.slots, MessageKind::Retain, ""),
                    summary: if says_something {
                        digest.text
                    } else {
                        String::new()
                    },
                    note: String::new(),
                }
            }
            (DraftContent::Digest { tokens, .. }, _) => {
                let tokens = tokens.saturating_sub(WAY_BACK_TOKENS);
                // Also for a model that cannot read it: its user can.
                let digest = self.digest_within(tokens, self.stored.as_ref());
                Replacement {
                    summary: digest.text,
                    ..Replacement::default()
                }
            }
            (DraftContent::Line | DraftContent::LineInPlace, _) => Replacement {
                note: self.ref_line().unwrap_or_default(),
                ..Replacement::default()
            },
            (DraftContent::PreviousSummary, _) => self.previous_summary(),
        };
        FinishedCompaction {
            is_silent,
            plan: self.plan(&replacement),
            refusal,
            by_model,
        }
    }

    fn checked_answer(
        &self,
        text: &str,
        ending: SummaryEnding,
    ) -> Result<SummaryAnswer, SummaryRefusal> {
        let answer = SummaryAnswer::parse(text, !self.policy.compaction.prompt.retain.is_empty());
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

    /// The summary of a model, with a line that says how to read the replaced messages.
    fn summary_of_model(&self, answer: SummaryAnswer) -> Replacement {
        let mut summary = answer.effective_summary;
        if let Some(stored) = self.shown_ref() {
            let replaced = self.survivors.replaced.len();
            let call = read_call(stored, 0);
            // Writing into a String cannot fail.
            let _ = write!(summary, "\n[{replaced} messages in full: {call}]");
        }
        Replacement {
            retain: answer.retain,
            summary,
            note: String::new(),
        }
    }

    /// The digest of everything that is hidden.
    fn digest_within(&self, tokens: u64, archived: Option<&Ref>) -> Digest {
        digest(&self.hidden, archived, tokens, |text| self.weigh(text))
    }

    /// The ref of the replaced messages, if the model may see it.
    fn shown_ref(&self) -> Option<&Ref> {
        self.stored.as_ref().filter(|_| self.can_retrieve)
    }

    /// The line that names the ref of the replaced messages, if the model may see it.
    fn ref_line(&self) -> Option<String> {
        let stored = self.shown_ref()?;
        let replaced = self.survivors.replaced.len();
        Some(way_back_to_messages(replaced, stored))
    }

    /// The summary and the retained text of the last compaction, with a note.
    fn previous_summary(&self) -> Replacement {
        let slots = &self.survivors.slots;
        let prefix = self.policy.compaction.placement.prefix();
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

    fn weigh(&self, text: &str) -> u64 {
        self.policy.estimate.text(text)
    }

    pub(in crate::decide) fn plan(&self, replacement: &Replacement) -> Plan {
        let Survivors {
            slots,
            kept,
            replaced,
            content,
        } = &self.survivors;
        let compaction = &self.policy.compaction;
        let rebuilt = |placement| rebuild(slots, kept, replacement, placement);
        let mut digested = Vec::new();
        let edits = match content {
            DraftContent::LineInPlace => self.hide_in_place(&replacement.note),
            DraftContent::PreviousSummary => rebuilt(&compaction.placement),
            DraftContent::Summary | DraftContent::Line => {
                let (digest, outputs) = self.digest();
                digested = outputs;
                let mut edits = rebuilt(&compaction.placement);
                edits.extend(digest);
                edits
            }
            DraftContent::Digest { .. } => rebuilt(&AS_IT_IS),
        };
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
        let settings = &self.policy.compaction.digest;
        if !settings.enabled {
            return Default::default();
        }
        let Survivors { slots, kept, .. } = &self.survivors;
        let recent = kept.after_summary.iter().filter_map(|at| slots.get(*at));
        let recent: Vec<Slot> = recent.cloned().collect();
        let outputs = WindowOutputs::of(&recent);
        let over = archive::excess(&outputs, settings.cutoff, 0);
        let (mut edits, outputs) = archive::archived(&outputs, &recent, &over);
        if !edits.is_empty() {
            let text = archive::digest(outputs.iter(), self.can_retrieve);
            edits.push(Edit::insert(self.length, text));
        }
        (edits, outputs)
    }
}

/// The text of the newest message of a kind that we inserted, without `prefix`.
fn newest_of_kind(slots: &[Slot], kind: MessageKind, prefix: &str) -> String {
    let mut said = slots.iter().rev().map(|slot| &slot.message);
    let said = said.find(|message| message.meta.kind == Some(kind));
    let text = said.map(|message| message.text()).unwrap_or_default();
    text.strip_prefix(prefix).unwrap_or(&text).to_owned()
}
