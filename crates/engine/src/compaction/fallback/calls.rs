//! Writes the sections about calls and their outcomes, and about the files that they named.

use std::collections::HashMap;

use trimtab_model::{Call, Ref};

use super::outcome::CallOutcome;
use super::paths::{FileAccess, named_by};
use super::replaced::ReplacedMessages;
use super::section::{SectionTitle, SummarySection};
use crate::compaction::text::{clip_line, short_arguments};
use crate::compaction::text_budget::TextBudget;

/// The characters of a call's arguments.
const ARGUMENTS: usize = 80;
/// The characters of an item from an earlier summary.
const CARRIED: usize = 140;
/// Only the newest calls are examined.
const MOST: usize = 400;

/// What was done with a file, as far as it is known.
#[derive(Default)]
struct FileHistory<'m> {
    read: bool,
    written: bool,
    stored: Option<&'m Ref>,
}

impl ReplacedMessages<'_> {
    /// The calls with their outcomes; equal ones in a row are one item.
    pub(super) fn runs(&self, budget: &TextBudget<'_>) -> SummarySection {
        let ended = self.calls.iter().rev();
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
        let before = self.earlier_items(SectionTitle::Runs);
        let before = before.map(|item| clip_line(&item, CARRIED));
        SummarySection::newest(SectionTitle::Runs, before.chain(shown), budget)
    }

    /// The files, with the one used last at the end.
    pub(super) fn files(&self, budget: &TextBudget<'_>) -> SummarySection {
        // Newest first.
        let mut order: Vec<String> = Vec::new();
        let mut files: HashMap<String, FileHistory<'_>> = HashMap::new();
        for (call, output) in self.calls.iter().rev().take(MOST) {
            let outcome = CallOutcome::of(call, *output);
            // A call that failed has not read or written anything for certain.
            let done = matches!(outcome, CallOutcome::Answered | CallOutcome::Succeeded);
            for (path, how) in named_by(call) {
                let file = files.entry(path.clone()).or_insert_with(|| {
                    order.push(path);
                    FileHistory::default()
                });
                file.read |= done && how == FileAccess::Read;
                file.written |= done && how == FileAccess::Written;
                let stored = output.and_then(|output| output.stored.as_ref());
                file.stored = file.stored.or(stored);
            }
        }
        let before = self.earlier_items(SectionTitle::Files).filter(|item| {
            let path = item.split(": ").next().unwrap_or_default();
            !files.contains_key(path)
        });
        let lines = order.iter().rev();
        let lines = lines.filter_map(|path| Some(line(path, files.get(path)?)));
        SummarySection::newest(SectionTitle::Files, before.chain(lines), budget)
    }
}

fn line(path: &str, file: &FileHistory<'_>) -> String {
    let how = match (file.read, file.written) {
        (true, true) => "read, written",
        (false, true) => "written",
        (true, false) => "read",
        // Named in a command, which may do anything, or in a call that failed.
        (false, false) => "named in a call",
    };
    match file.stored {
        Some(stored) => format!("{path}: {how} ({stored})"),
        None => format!("{path}: {how}"),
    }
}
