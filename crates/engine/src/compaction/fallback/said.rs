//! Writes the sections about what the user and the model said.
//!
//! The texts of the model are short compared to the outputs, and contain the decisions.

use std::collections::HashSet;

use trimtab_model::{Message, Role};

use super::replaced::ReplacedMessages;
use super::section::{SectionTitle, SummarySection, head_of};
use crate::compaction::text::clip_line;
use crate::compaction::text_budget::TextBudget;

/// The maximum of characters of an older message's first sentence.
const SENTENCE: usize = 200;
/// The percentage of the budget for verbatim messages.
const WORD_FOR_WORD: u64 = 70;
/// Only the newest messages are examined.
const MOST: usize = 200;
/// The characters of one message: the first length with which all messages fit.
const LENGTHS: [usize; 5] = [4_000, 1_000, 400, 200, 120];
/// The length if not all of them fit.
const SHORTEST: usize = 60;

impl ReplacedMessages<'_> {
    fn user_messages(&self) -> impl DoubleEndedIterator<Item = &Message> {
        let messages = self.messages.iter().copied();
        messages.filter(|message| message.is_real_user() && !message.is_empty())
    }

    /// The first request of the user.
    pub(super) fn first_request(&self, budget: &TextBudget<'_>) -> SummarySection {
        let title = SectionTitle::FirstRequest;
        let first = self.earlier_items(title).next().or_else(|| {
            // After an earlier summary or a kept task, the first message here is not the first
            // request.
            let is_first = !self.has_summary() && !self.task_is_kept;
            let mut said = self.user_messages().filter(|_| is_first);
            said.next().map(|message| message.text().into_owned())
        });
        let head = first.map(|first| head_of(&first, title, budget));
        SummarySection::newest(title, head, budget)
    }

    /// The newest messages verbatim, and the first sentence of older ones.
    pub(super) fn user_messages_section(&self, budget: &TextBudget<'_>) -> SummarySection {
        let title = SectionTitle::UserMessages;
        let mut items = Vec::new();
        let mut left = budget.share(WORD_FOR_WORD).tokens;
        let mut whole = true;
        for message in self.user_messages().rev().take(MOST) {
            let text = message.text();
            let weight = budget.weight(&text);
            // The newest message is always quoted, cut if it must be. After the first that does not
            // fit, all older ones are shortened.
            whole = whole && (weight <= left || items.is_empty());
            items.push(if whole {
                left = left.saturating_sub(weight);
                head_of(&text, title, budget)
            } else {
                first_sentence(&text)
            });
        }
        let before = self.earlier_items(title).rev();
        items.extend(before.map(|item| first_sentence(&item)));
        SummarySection::newest(title, items.into_iter().rev(), budget)
    }

    /// All texts, without repetitions. Long texts are cut before old ones are dropped.
    pub(super) fn assistant_texts(&self, budget: &TextBudget<'_>) -> SummarySection {
        let said = self.messages.iter();
        let said = said.filter(|message| message.role == Role::Assistant);
        let said = said.map(|message| message.text().trim().to_owned());
        let said = said.filter(|text| !text.is_empty());
        let mut known = HashSet::new();
        let all = self.earlier_items(SectionTitle::Words).chain(said);
        // Agents repeat short announcements. One of each is enough.
        let all: Vec<String> = all.filter(|text| known.insert(text.clone())).collect();
        let within = |length: usize| {
            let items = all.iter().map(|text| match text.chars().count() {
                count if count <= length => text.clone(),
                _ => clip_line(text, length),
            });
            SummarySection::newest(SectionTitle::Words, items, budget)
        };
        let mut sections = LENGTHS.into_iter().map(within);
        let whole = sections.find(|section| section.items.len() == all.len());
        whole.unwrap_or_else(|| within(SHORTEST))
    }
}

/// The first sentence of `text`, on one line.
fn first_sentence(text: &str) -> String {
    let text = text.trim();
    let ends = text.char_indices().find(|(at, found)| {
        let behind = text.get(at + found.len_utf8()..).unwrap_or_default();
        *found == '\n'
            || (".!?。！？".contains(*found) && !behind.starts_with(char::is_alphanumeric))
    });
    let end = ends.map_or(text.len(), |(at, found)| at + found.len_utf8());
    clip_line(text.get(..end).unwrap_or(text), SENTENCE)
}
