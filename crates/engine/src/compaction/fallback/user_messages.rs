//! Writes the sections about user messages.

use trimtab_model::Message;

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

fn user_messages<'r>(
    replaced: &'r ReplacedMessages<'_>,
) -> impl DoubleEndedIterator<Item = &'r Message> {
    let messages = replaced.messages.iter().copied();
    messages.filter(|message| message.is_real_user() && !message.is_empty())
}

/// The first request of the user.
pub(super) fn first_request_section(
    replaced: &ReplacedMessages<'_>,
    budget: &TextBudget<'_>,
) -> SummarySection {
    let title = SectionTitle::FirstRequest;
    let first = replaced.earlier_items(title).next().or_else(|| {
        // After an earlier summary, the first message here is not the first request.
        let mut said = user_messages(replaced).filter(|_| !replaced.has_summary());
        said.next().map(|message| message.text().into_owned())
    });
    let head = first.map(|first| head_of(&first, title, budget));
    SummarySection::newest(title, head, budget)
}

/// The newest messages verbatim, and the first sentence of older ones.
pub(super) fn user_messages_section(
    replaced: &ReplacedMessages<'_>,
    budget: &TextBudget<'_>,
) -> SummarySection {
    let title = SectionTitle::UserMessages;
    let mut items = Vec::new();
    let mut left = budget.share(WORD_FOR_WORD).tokens;
    let mut whole = true;
    for message in user_messages(replaced).rev().take(MOST) {
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
    let before = replaced.earlier_items(title).rev();
    items.extend(before.map(|item| first_sentence(&item)));
    SummarySection::newest(title, items.into_iter().rev(), budget)
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
