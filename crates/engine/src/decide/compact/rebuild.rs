//! Turns survivors and summary into edits.

use std::collections::BTreeSet;
use std::sync::Arc;

use trimtab_model::{Message, MessageKind, Role};

use super::keep_rules::KeptMessages;
use crate::normalise::Slot;
use crate::plan::Edit;
use crate::policy::SummaryPlacement;
use crate::quote::has_quotations;

/// What takes the place of the compacted messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replacement {
    /// The retained text; empty for none.
    pub retain: String,
    /// The summary; empty for none.
    pub summary: String,
    /// Our line about what was left out, after both; empty for none.
    pub note: String,
}

/// The edits that leave system messages, the messages in `kept` and the replacement of everything
/// else.
///
/// `slots` is the current window before normalisation: messages hidden by earlier plans are not in
/// it, inserted ones are.
pub fn rebuild(
    slots: &[Slot],
    kept: &KeptMessages,
    replacement: &Replacement,
    placement: &SummaryPlacement,
) -> Vec<Edit> {
    // Messages that are kept at the end of the window stay in place. Everything before `anchor` is
    // hidden, and what survives of it is inserted there again.
    let tail = tail_start(slots, kept);
    // The summary goes before the first message that stays in place, or to the end.
    let anchor = slots.get(tail);
    let anchor = anchor.map_or_else(|| end_of(slots.iter()), |slot| slot.source.position());
    // The window must begin with the system messages. What stands between them is moved behind
    // them.
    let last_system = slots.iter().take(tail).rposition(is_system_of_log);
    let last_system = last_system.filter(|_| !kept.system_stays);
    let front = last_system.map_or(0, |at| at + 1);
    // Messages that are moved or shortened are not among these: they are hidden and inserted again.
    let stays: BTreeSet<usize> = kept
        .before_summary
        .iter()
        .filter(|at| **at >= front)
        .chain(kept.after_summary.iter().filter(|at| **at >= tail))
        .filter_map(|at| slots.get(*at)?.source.in_log())
        .collect();
    let mut edits = hide_all_but(&stays, anchor);
    edits.extend(moved_or_shortened(slots, kept, front, tail));
    edits.extend(replacement_edits(slots, replacement, placement, anchor));
    let moved = kept.after_summary.iter().filter(|at| **at < tail);
    // A system message that stays is not moved, because hiding spares it.
    let moved = moved
        .filter_map(|at| slots.get(*at))
        .filter(|slot| !(kept.system_stays && is_system_of_log(slot)));
    edits.extend(moved.map(|slot| Edit::Insert {
        before: anchor,
        message: Arc::clone(&slot.message),
    }));
    edits
}

/// The first position of the log behind all of these slots.
fn end_of<'s>(slots: impl Iterator<Item = &'s Slot>) -> usize {
    slots.map(|slot| slot.source.end()).max().unwrap_or(0)
}

/// True for a system message of the client.
fn is_system_of_log(slot: &Slot) -> bool {
    slot.message.role == Role::System && slot.source.in_log().is_some()
}

/// Inserts messages that are kept before the summary but cannot stay in place: those before a
/// system message, those that an earlier plan inserted, and shortened ones.
fn moved_or_shortened(slots: &[Slot], kept: &KeptMessages, front: usize, tail: usize) -> Vec<Edit> {
    // Behind the last system message, even if the message stood before it.
    let earliest = front
        .checked_sub(1)
        .and_then(|last| slots.get(last))
        .map_or(0, |slot| slot.source.end());
    let mut edits = Vec::new();
    for (at, slot) in slots.iter().enumerate().take(tail) {
        let moves = at < front || slot.source.in_log().is_none();
        let message = match kept.shortened.get(&at) {
            Some(shorter) => Arc::new(shorter.clone()),
            None if moves && kept.before_summary.contains(&at) => Arc::clone(&slot.message),
            None => continue,
        };
        let before = slot.source.position().max(earliest);
        edits.push(Edit::Insert { before, message });
    }
    edits
}

/// The start of the run at the end of the window whose messages are all kept after the summary.
/// They stay in place, with system messages among them if those stay. It begins with a message of
/// the log.
fn tail_start(slots: &[Slot], kept: &KeptMessages) -> usize {
    let mut behind = kept.after_summary.iter().rev().peekable();
    let mut tail = slots.len();
    for (at, slot) in slots.iter().enumerate().rev() {
        // The kept messages are in the order in which they are sent. The first one that is not at
        // its place ends the run.
        let is_kept = behind.next_if_eq(&&at).is_some();
        let stays = is_kept || (is_system_of_log(slot) && kept.system_stays);
        if !stays {
            break;
        }
        if is_kept && slot.source.in_log().is_some() {
            tail = at;
        }
    }
    tail
}

/// Withdraws what earlier plans inserted before `anchor`, and hides every earlier position of the
/// log that does not stay, in runs.
fn hide_all_but(stays: &BTreeSet<usize>, anchor: usize) -> Vec<Edit> {
    // What is kept of these insertions is inserted again by `moved_or_shortened`.
    let mut edits = vec![Edit::Withdraw { to: anchor }];
    let mut from = 0;
    for at in stays.range(..anchor).copied().chain([anchor]) {
        if from < at {
            edits.push(Edit::Hide { from, to: at });
        }
        from = at + 1;
    }
    edits
}

fn replacement_edits(
    slots: &[Slot],
    replacement: &Replacement,
    placement: &SummaryPlacement,
    anchor: usize,
) -> impl Iterator<Item = Edit> {
    let insert = |text: &str, kind: MessageKind| {
        let message = Message::user(text).with_kind(kind);
        (!text.is_empty()).then(|| Edit::insert(anchor, message))
    };
    let text = Some(&replacement.summary).filter(|text| !text.is_empty());
    let summary = text.map(|text| {
        let said = behind_prefix(placement.prefix(), text);
        let (before, message) = match placement {
            // Text of outputs never stands in a system message.
            SummaryPlacement::System { .. } if !has_quotations(text) => {
                let is_system = |slot: &&Slot| slot.message.role == Role::System;
                let before = end_of(slots.iter().take_while(is_system));
                (before, Message::system(said))
            }
            _ => (anchor, Message::user(said)),
        };
        Edit::insert(before, message.with_kind(MessageKind::Summary))
    });
    let retain = insert(&replacement.retain, MessageKind::Retain);
    let note = insert(&replacement.note, MessageKind::Note);
    [retain, summary, note].into_iter().flatten()
}

/// A summary after its prefix, on a line of its own if the prefix does not end with white space.
fn behind_prefix(prefix: &str, summary: &str) -> String {
    let is_open = prefix.ends_with(|last: char| !last.is_whitespace());
    let end = if is_open { "\n" } else { "" };
    format!("{prefix}{end}{summary}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::compact::keep_rules::kept_messages;
    use crate::journal::Journal;
    use crate::log::Log;
    use crate::plan::{Plan, PlanReason};
    use crate::policy::KeepRule;
    use crate::window::Projection;

    /// The texts of the window after each of several compactions under `rule`.
    fn compacted(log: Vec<Message>, rule: &KeepRule, times: usize) -> Vec<String> {
        let log: Log = log.into_iter().collect();
        let mut projection = Projection::restore(
            crate::normalise::NormaliseOptions::default(),
            log,
            Journal::default(),
        );
        for time in 0..times {
            let replacement = Replacement {
                summary: format!("S{time}"),
                ..Replacement::default()
            };
            let placement = SummaryPlacement::Message {
                prefix: String::new(),
            };
            let weigh = |message: &Message| message.text().len().div_ceil(4) as u64;
            let kept = kept_messages(projection.slots(), std::slice::from_ref(rule), weigh);
            let edits = rebuild(projection.slots(), &kept, &replacement, &placement);
            projection.carry_out(Plan::new(PlanReason::ByHand, edits));
        }
        let slots = projection.slots().iter();
        slots.map(|slot| slot.message.text().into_owned()).collect()
    }

    fn log() -> Vec<Message> {
        vec![
            Message::user("one"),
            Message::system("rules"),
            Message::user("two"),
            Message::assistant("answer"),
        ]
    }

    #[test]
    fn system_messages_come_first_wherever_they_stood() {
        let users = KeepRule::UserMessages { tokens: 99 };
        assert_eq!(compacted(log(), &users, 1), ["rules", "one", "two", "S0"]);
        let mut late = log();
        late.push(Message::system("late"));
        let turns = KeepRule::LastTurns { turns: 1 };
        let expected = ["rules", "late", "S0", "two", "answer"];
        assert_eq!(compacted(late, &turns, 1), expected);
    }

    #[test]
    fn kept_user_messages_survive_the_next_compaction() {
        let users = KeepRule::UserMessages { tokens: 99 };
        assert_eq!(compacted(log(), &users, 3), ["rules", "one", "two", "S2"]);
        let long = vec![
            Message::user("0123456789abcdef"),
            Message::user("new!"),
            Message::assistant("answer"),
        ];
        let cut = KeepRule::UserMessagesCut { tokens: 3 };
        let once = compacted(long.clone(), &cut, 1);
        assert_eq!(once, ["0123…2 tokens truncated…cdef", "new!", "S0"]);
        let twice = compacted(long, &cut, 2);
        assert_eq!(twice.len(), 3);
        assert!(twice[0].starts_with("0123"), "{twice:?}");
    }
}
