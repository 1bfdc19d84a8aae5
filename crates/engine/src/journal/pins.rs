//! Pinned messages and those of the provider: removes from a plan what it would do to them.

use std::ops::Range;

use super::Journal;
use crate::log::Log;
use crate::plan::{Edit, Plan};

impl Journal {
    /// The plan without its edits of pinned messages; none if it has no such edits.
    pub fn spare_pins(&self, plan: &Plan, log: &Log) -> Option<Plan> {
        let rounds: Vec<Range<usize>> = self
            .pins()
            .iter()
            .filter_map(|at| round_around(log, *at))
            .collect();
        let is_pinned = |at: usize| rounds.iter().any(|round| round.contains(&at));
        let shows = |edit: &Edit| edit.shown_message().is_some_and(is_pinned);
        spare(plan, &rounds, shows)
    }
}

impl Log {
    /// The plan without what it would do to messages that belong to the provider, or to a program
    /// that it runs; none if it does nothing to them.
    pub fn spare_provider_parts(&self, plan: &Plan) -> Option<Plan> {
        let mut staying = self.staying();
        for run in staying.iter_mut().filter(|run| run.len() == 1) {
            // A message that loads a tool keeps its whole round.
            if let Some(round) = round_around(self, run.start) {
                *run = round;
            }
        }
        staying.sort_by_key(|run| run.start);
        let spared = spare(plan, &staying, |edit| self.changes_whole(edit));
        // A text of ours between the output for a program and its result would be rejected.
        let Some(open) = self.open_program() else {
            return spared;
        };
        let mut spared = spared.unwrap_or_else(|| plan.clone());
        for edit in &mut spared.edits {
            if let Edit::Insert { before, .. } = edit {
                *before = open.min(*before);
            }
        }
        Some(spared)
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

/// The plan without what it hides of the `kept` messages, and without the edits that `is_refused`;
/// none if there is no such thing in it.
fn spare(plan: &Plan, kept: &[Range<usize>], is_refused: impl Fn(&Edit) -> bool) -> Option<Plan> {
    let meets = |from: usize, to: usize| {
        kept.iter()
            .any(|round| round.start < to && from < round.end)
    };
    // Most plans touch none. The caller then keeps the plan that it has, without a copy.
    let touches = plan.edits.iter().any(|edit| match edit {
        Edit::Hide { from, to } => meets(*from, *to),
        edit => is_refused(edit),
    });
    if !touches {
        return None;
    }
    let mut spared = plan.clone();
    spared.edits.clear();
    for edit in &plan.edits {
        match edit {
            Edit::Hide { from, to } => spared.edits.extend(hides_around(*from..*to, kept)),
            edit if is_refused(edit) => {}
            other => spared.edits.push(other.clone()),
        }
    }
    Some(spared)
}

/// Hides what is between the kept rounds, which are in rising order.
fn hides_around(hidden: Range<usize>, kept: &[Range<usize>]) -> Vec<Edit> {
    let mut hides = Vec::new();
    let mut from = hidden.start;
    for round in kept {
        let to = round.start.min(hidden.end);
        if from < to {
            hides.push(Edit::Hide { from, to });
        }
        from = from.max(round.end);
    }
    if from < hidden.end {
        hides.push(Edit::Hide {
            from,
            to: hidden.end,
        });
    }
    hides
}

/// The messages that must stay with the one at `at`: calls and all their outputs.
fn round_around(log: &Log, at: usize) -> Option<Range<usize>> {
    let is_output = |at: usize| log.get(at).is_some_and(|message| message.has_outputs());
    let message = log.get(at)?;
    let before = (0..at).rev().take_while(|_| message.has_outputs());
    // An output without its call is invalid, so a pinned output keeps its whole round.
    let first = before.into_iter().find(|at| !is_output(*at));
    let start = first
        .filter(|at| log.get(*at).is_some_and(|message| message.has_calls()))
        .unwrap_or(at);
    let opens = log.get(start).is_some_and(|message| message.has_calls());
    let outputs = (start + 1..).take_while(|at| opens && is_output(*at));
    // A pinned message without a round keeps only itself.
    let end = outputs.last().map_or(start + 1, |last| last + 1);
    Some(start..end.max(at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::JournalEntry;
    use crate::plan::PlanReason;
    use trimtab_model::{Call, Message};

    fn log() -> Log {
        let mut log = Log::new();
        log.append(Message::user("question"));
        for round in 0..3 {
            let id = format!("c{round}");
            log.append(Message::assistant("").with_call(Call::new(&id, "read", "{}")));
            log.append(Message::output(&id, "text"));
        }
        log.append(Message::user("more"));
        log
    }

    fn pinned(at: usize) -> Journal {
        let entry = JournalEntry::Pin {
            message: at,
            pinned: true,
        };
        Journal::from(vec![entry])
    }

    fn hide(from: usize, to: usize) -> Plan {
        Plan::new(PlanReason::ByHand, vec![Edit::Hide { from, to }])
    }

    #[test]
    fn pinned_output_keeps_its_whole_round() {
        let spared = pinned(4).spare_pins(&hide(0, 7), &log()).unwrap();
        let expected = [Edit::Hide { from: 0, to: 3 }, Edit::Hide { from: 5, to: 7 }];
        assert_eq!(spared.edits, expected);
    }

    #[test]
    fn pinned_call_keeps_its_outputs() {
        let spared = pinned(1).spare_pins(&hide(0, 7), &log()).unwrap();
        let expected = [Edit::Hide { from: 0, to: 1 }, Edit::Hide { from: 3, to: 7 }];
        assert_eq!(spared.edits, expected);
    }

    #[test]
    fn plan_elsewhere_is_not_changed() {
        assert_eq!(pinned(7).spare_pins(&hide(0, 7), &log()), None);
        assert_eq!(Journal::new().spare_pins(&hide(0, 7), &log()), None);
    }

    #[test]
    fn pin_can_be_taken_back() {
        let mut journal = pinned(4);
        journal.append(JournalEntry::Pin {
            message: 4,
            pinned: false,
        });
        assert!(journal.pins().is_empty());
    }
}
