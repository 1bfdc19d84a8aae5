//! Writes a summary without a model.
//!
//! A compaction must work if the summariser fails, or if there is none. What can be said without
//! understanding is written in a fixed form: what the user asked for, what the model said, what was
//! run, which files were used, what failed, what is open, and facts with the refs of their outputs.
//! An earlier summary of this form is read back and continued, so that a chain of them keeps the
//! first request and never grows.

mod calls;
mod open_work;
mod outcome;
mod paths;
mod replaced;
mod said;
mod section;

use std::borrow::Borrow;

use trimtab_model::{Message, Part};

use super::audit::{TextWithRefs, audit};
use super::text_budget::TextBudget;
use replaced::ReplacedMessages;
use section::{SectionTitle, SummarySection};

/// The beginning of such a summary.
pub(crate) const OPENING: &str = "[Summary made without a model]";

/// The percentage of each section, in addition to what earlier sections left; the rest is for the
/// facts. The second figure is for messages that contain a summary by a model: it may represent
/// hundreds of rounds, and nothing else does.
const SHARES: [(SectionTitle, u64, u64); 8] = [
    (SectionTitle::FirstRequest, 10, 6),
    (SectionTitle::Earlier, 0, 40),
    (SectionTitle::UserMessages, 15, 12),
    (SectionTitle::Words, 25, 16),
    (SectionTitle::OpenWork, 5, 4),
    (SectionTitle::Errors, 5, 4),
    (SectionTitle::Files, 6, 3),
    (SectionTitle::Runs, 11, 5),
];

/// Summarises the `replaced` messages, within `budget` and smaller than they are. If the task is
/// kept, no first request is among them.
///
/// ```
/// use trimtab_engine::compaction::{fallback, text_budget::TextBudget};
/// use trimtab_model::{Call, Message};
///
/// let replaced = [
///     Message::user("Make the tests pass. Never edit the fixtures."),
///     Message::assistant("").with_call(Call::new("c", "bash", r#"{"command":"make"}"#)),
///     Message::output("c", "error: missing header\n".repeat(50)),
/// ];
/// let bytes = |text: &str| text.len() as u64;
/// let made = fallback::summarise(&replaced, false, &TextBudget::new(800, &bytes));
/// assert!(made.text.contains("Never edit the fixtures."));
/// assert!(made.text.contains("bash(make)") && made.text.len() <= 800);
/// ```
pub fn summarise<M: Borrow<Message>>(
    replaced: &[M],
    task_is_kept: bool,
    budget: &TextBudget<'_>,
) -> TextWithRefs {
    let replaced = ReplacedMessages::new(replaced, task_is_kept);
    // A summary must be smaller than what it replaces.
    let room = budget.with(budget.tokens.min(weight_below(&replaced.messages, budget)));
    let mut tokens = room.tokens;
    // Token estimates are not additive: the summary can weigh more than its sections.
    while tokens > 0 {
        let made = summary_within(&replaced, &room.with(tokens));
        if room.holds(&made.text) {
            return made;
        }
        tokens /= 2;
    }
    summary_within(&replaced, &room.with(0))
}

fn summary_within(replaced: &ReplacedMessages<'_>, budget: &TextBudget<'_>) -> TextWithRefs {
    let mut left = budget.tokens.saturating_sub(budget.weight(OPENING) + 1);
    let mut unused = 0;
    let mut sections = Vec::new();
    let continues = !replaced.model_summaries().is_empty();
    for (title, alone, continued) in SHARES {
        let percent = if continues { continued } else { alone };
        let share = budget
            .share(percent)
            .tokens
            .saturating_add(unused)
            .min(left);
        let section = write_section(title, replaced, &budget.with(share));
        let used = section.weight(budget).min(share);
        // What a section does not use goes to the next one.
        unused = share - used;
        left -= used;
        sections.push(section);
    }
    let said = text_of(sections);
    // Audited after the sections are written, so that the block lists only what they lack.
    let audit = audit(&replaced.messages, &[&said]);
    let block = audit.fact_block(&budget.with(left.saturating_sub(2)));
    let texts = [OPENING, &said, &block.text];
    let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    // An opening without sections would say nothing.
    let text = if texts.len() > 1 {
        texts.join("\n")
    } else {
        String::new()
    };
    TextWithRefs { text, ..block }
}

fn write_section(
    title: SectionTitle,
    replaced: &ReplacedMessages<'_>,
    budget: &TextBudget<'_>,
) -> SummarySection {
    match title {
        SectionTitle::FirstRequest => replaced.first_request(budget),
        SectionTitle::UserMessages => replaced.user_messages_section(budget),
        SectionTitle::Words => replaced.assistant_texts(budget),
        SectionTitle::OpenWork => replaced.open_work(budget),
        SectionTitle::Errors => replaced.errors(budget),
        SectionTitle::Files => replaced.files(budget),
        SectionTitle::Runs => replaced.runs(budget),
        SectionTitle::Earlier => replaced.earlier(budget),
    }
}

/// The sections that are not empty, in the best order for reading. They were filled in the order of
/// their importance.
fn text_of(mut sections: Vec<SummarySection>) -> String {
    sections.retain(|section| !section.items.is_empty());
    sections.sort_by_key(|section| section.title);
    let texts: Vec<String> = sections.iter().map(SummarySection::text).collect();
    texts.join("\n")
}

/// One less than the weight of the messages, at most the budget. Stops at the budget, because the
/// messages may be huge.
fn weight_below(messages: &[&Message], budget: &TextBudget<'_>) -> u64 {
    let mut weight = 0u64;
    for part in messages.iter().flat_map(|message| &message.parts) {
        let more = match part {
            Part::Text(text) => budget.weight(&text.text),
            Part::Call(call) => budget.weight(&call.name) + budget.weight(&call.arguments),
            Part::Output(output) => budget.weight(&output.text()),
            Part::Reasoning(thought) => budget.weight(&thought.text),
            Part::Media(_) | Part::Opaque(_) => 0,
        };
        weight = weight.saturating_add(more);
        if weight > budget.tokens {
            return budget.tokens;
        }
    }
    weight.saturating_sub(1)
}

#[cfg(test)]
mod tests;
