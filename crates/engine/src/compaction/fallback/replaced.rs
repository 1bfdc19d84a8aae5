//! The messages that a summary replaces, prepared for its sections.

use std::borrow::{Borrow, Cow};

use trimtab_model::rounds::{self, PartPosition};
use trimtab_model::{Call, Message, Output, Part};

use super::OPENING;
use super::section::{SectionTitle, SummarySection, head_and_tail_of, items};
use crate::compaction::audit::without_block;
use crate::compaction::text_budget::TextBudget;
use crate::view::placeholder::is_about_refs;

pub(super) struct ReplacedMessages<'m> {
    pub(super) messages: Vec<&'m Message>,
    /// Their calls, each with its output.
    pub(super) calls: Vec<(&'m Call, Option<&'m Output>)>,
    /// The earlier summaries and retained texts among them.
    earlier_summaries: Vec<Cow<'m, str>>,
    /// True if the task stays in the window, before them.
    pub(super) task_is_kept: bool,
}

impl<'m> ReplacedMessages<'m> {
    pub(super) fn new<M: Borrow<Message>>(replaced: &'m [M], task_is_kept: bool) -> Self {
        let messages: Vec<&Message> = replaced.iter().map(Borrow::borrow).collect();
        let part =
            |position: PartPosition| messages.get(position.message)?.parts.get(position.part);
        let rounds = rounds::pair(&messages).rounds.into_iter();
        let calls = rounds.flat_map(|round| round.calls).filter_map(|pair| {
            let output = pair.output.and_then(part).and_then(Part::as_output);
            Some((part(pair.call)?.as_call()?, output))
        });
        let calls = calls.collect();
        let carried = messages.iter().filter(|message| message.is_summary());
        Self {
            calls,
            earlier_summaries: carried.map(|message| message.text()).collect(),
            messages,
            task_is_kept,
        }
    }

    /// True if there is an earlier summary of any form.
    pub(super) fn has_summary(&self) -> bool {
        !self.earlier_summaries.is_empty()
    }

    /// The items under `title` of earlier summaries of our own form.
    pub(super) fn earlier_items(
        &self,
        title: SectionTitle,
    ) -> impl DoubleEndedIterator<Item = String> {
        let ours = self.earlier_summaries.iter().filter(|text| is_ours(text));
        let items: Vec<String> = ours.flat_map(|text| items(text, title)).collect();
        items.into_iter()
    }

    /// The text of earlier summaries of another form, and what ours kept of such. The refs that they
    /// name are at the end of the stored messages.
    pub(super) fn model_summaries(&self) -> String {
        let others = self.earlier_summaries.iter().filter(|text| !is_ours(text));
        let others = others.map(|text| without_block(text));
        let said = self.earlier_items(SectionTitle::Earlier).chain(others);
        let said: Vec<String> = said.collect();
        let lines = said.iter().flat_map(|text| text.trim().lines());
        let lines: Vec<&str> = lines.filter(|line| !is_about_refs(line)).collect();
        lines.join("\n")
    }

    pub(super) fn earlier(&self, budget: &TextBudget<'_>) -> SummarySection {
        let title = SectionTitle::Earlier;
        let kept = head_and_tail_of(&self.model_summaries(), title, budget);
        SummarySection::newest(title, [kept], budget)
    }
}

fn is_ours(text: &str) -> bool {
    text.lines().any(|line| line == OPENING)
}
