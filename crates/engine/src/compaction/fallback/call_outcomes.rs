//! What was run.

use trimtab_model::Call;

use super::outcome::CallOutcome;
use super::replaced::ReplacedMessages;
use super::section::{SectionTitle, SummarySection};
use crate::compaction::text::{clip_line, short_arguments};
use crate::compaction::text_budget::TextBudget;

/// Characters of the arguments of a call.
const ARGUMENTS: usize = 80;
/// Characters of an item that an earlier summary had.
const CARRIED: usize = 140;
/// More runs than this are not looked at.
const MOST: usize = 400;

/// The calls with how they ended, equal ones in a row as one.
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
