//! Writes the section about the model's texts. They are short compared to the outputs, and contain
//! the decisions.

use std::collections::HashSet;

use trimtab_model::Role;

use super::replaced::ReplacedMessages;
use super::section::{SectionTitle, SummarySection};
use crate::compaction::text::clip_line;
use crate::compaction::text_budget::TextBudget;

/// The characters of one message: the first length with which all messages fit.
const LENGTHS: [usize; 5] = [4_000, 1_000, 400, 200, 120];
/// The length if not all of them fit.
const SHORTEST: usize = 60;

/// All texts, without repetitions. Long texts are cut before old ones are dropped.
pub(super) fn assistant_text_section(
    replaced: &ReplacedMessages<'_>,
    budget: &TextBudget<'_>,
) -> SummarySection {
    let said = replaced.messages.iter();
    let said = said.filter(|message| message.role == Role::Assistant);
    let said = said.map(|message| message.text().trim().to_owned());
    let said = said.filter(|text| !text.is_empty());
    let mut known = HashSet::new();
    let all = replaced.earlier_items(SectionTitle::Words).chain(said);
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
