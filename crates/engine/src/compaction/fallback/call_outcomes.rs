//! Writes the section about calls and their outcomes.

use trimtab_model::Call;

use super::outcome::CallOutcome;
use super::replaced::ReplacedMessages;
use super::section::{SectionTitle, SummarySection};
use crate::compaction::text::{clip_line, short_arguments};
use crate::compaction::text_budget::TextBudget;

/// The characters of a call's arguments.
const ARGUMENTS: usize = 80;
/// The characters of an item from an earlier summary.
const CARRIED: usize = 140;
/// Only the newest runs are examined.
const MOST: usize = 400;

/// The calls with their outcomes; equal ones in a row are one item.
pub(super) fn calls_section(
    replaced: &ReplacedMessages<'_>,
    budget: &TextBudget<'_>,
) -> SummarySection {
    let ended = replaced.calls.iter().rev();
    let ended = ended.map(|(call, output)| (*call, CallOutcome::of(call, *output)));
    let mut runs: Vec<(&Call, CallOutcome, usize)> = Vec::new();
    for (call, outcome) in ended {
        let is_full = runs.len() == MOST;
        match runs.last_mut() {
            Some((last, how, times))
                if last.name == call.name
                    && last.arguments == call.arguments
                    && *how == outcome =>
            {
                *times += 1;
            }
            _ if is_full => break,
            _ => runs.push((call, outcome, 1)),
        }
    }
    let shown = runs.iter().rev().map(|(call, outcome, times)| {
        let (call, outcome) = (short_arguments(call, ARGUMENTS), outcome.text());
        match times {
            1 => format!("{call}: {outcome}"),
            times => format!("{call} x{times}: {outcome}"),
        }
    });
    let before = replaced.earlier_items(SectionTitle::Runs);
    let before = before.map(|item| clip_line(&item, CARRIED));
    SummarySection::newest(SectionTitle::Runs, before.chain(shown), budget)
}
