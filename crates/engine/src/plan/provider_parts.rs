//! Removes from a plan what it would do to messages that belong to the provider.

use std::ops::Range;

use super::{Edit, Plan};
use crate::log::Log;

impl Log {
    /// The plan without what it would do to messages that belong to the provider, or to a program
    /// that it runs.
    #[must_use]
    pub fn spare_provider_parts(&self, mut plan: Plan) -> Plan {
        let mut staying = self.staying();
        for run in staying.iter_mut().filter(|run| run.len() == 1) {
            // A message that loads a tool keeps its whole round.
            *run = round_around(self, run.start);
        }
        staying.sort_by_key(|run| run.start);
        // A text of ours between the output for a program and its result would be rejected.
        let open = self.open_program().unwrap_or(usize::MAX);
        let edits = plan.edits.into_iter().flat_map(|edit| match edit {
            Edit::Hide { from, to } => hides_around(from..to, &staying),
            Edit::Insert { before, message } => vec![Edit::Insert {
                before: open.min(before),
                message,
            }],
            edit if self.changes_whole(&edit) => Vec::new(),
            edit => vec![edit],
        });
        plan.edits = edits.collect();
        plan
    }

    /// True if an edit shows a part differently that must be whole.
    fn changes_whole(&self, edit: &Edit) -> bool {
        match edit {
            Edit::Show { message, part, .. } | Edit::ShowAsText { message, part, .. } => {
                self.is_whole(*message, *part)
            }
            Edit::Archive { message } => {
                let parts = self.get(*message).map_or(0, |message| message.parts.len());
                (0..parts).any(|part| self.is_whole(*message, part))
            }
            _ => false,
        }
    }
}

/// Hides what is between the kept rounds, which are in rising order.
fn hides_around(hidden: Range<usize>, kept: &[Range<usize>]) -> Vec<Edit> {
    let mut hides = Vec::new();
    let mut from = hidden.start;
    let end = hidden.end..hidden.end;
    for round in kept.iter().chain([&end]) {
        let to = round.start.min(hidden.end);
        if from < to {
            hides.push(Edit::Hide { from, to });
        }
        from = from.max(round.end);
    }
    hides
}

/// The messages that must stay with the one at `at`: calls and all their outputs.
fn round_around(log: &Log, at: usize) -> Range<usize> {
    let is_output = |at: usize| log.get(at).is_some_and(|message| message.has_outputs());
    let before = (0..at).rev().take_while(|_| is_output(at));
    // An output without its call is invalid, so an output keeps its whole round.
    let first = before.into_iter().find(|at| !is_output(*at));
    let start = first
        .filter(|at| log.get(*at).is_some_and(|message| message.has_calls()))
        .unwrap_or(at);
    let opens = log.get(start).is_some_and(|message| message.has_calls());
    let outputs = (start + 1..).take_while(|at| opens && is_output(*at));
    // A message without a round keeps only itself.
    let end = outputs.last().map_or(start + 1, |last| last + 1);
    start..end.max(at + 1)
}
