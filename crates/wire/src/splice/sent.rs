//! Computes the changes that turn the messages of a body into those to send.

use std::borrow::Borrow;
use std::ops::Range;
use std::sync::Arc;

use trimtab_model::{Call, Dialect, Message, Output, Part, Role, work};

use super::BodyChange;

/// A message to send, with its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentMessage {
    /// The message to send.
    pub message: Arc<Message>,
    /// The position of the original message; none for our own.
    pub log_position: Option<usize>,
}

/// The changes that turn the messages `came` of a body into `sent`.
///
/// Unchanged messages need no change, so their bytes stay identical.
///
/// ```
/// use std::sync::Arc;
/// use trimtab_model::{Dialect, Message};
/// use trimtab_wire::splice::{BodyChange, SentMessage, changes};
///
/// let came = ["one", "two"].map(Message::user);
/// let last = SentMessage { message: Arc::new(came[1].clone()), log_position: Some(1) };
/// assert_eq!(changes(&came, &[last], Dialect::Chat), [BodyChange::Remove { messages: 0..1 }]);
/// ```
pub fn changes<M: Borrow<Message>>(
    came: &[M],
    sent: &[SentMessage],
    dialect: Dialect,
) -> Vec<BodyChange> {
    changes_within(0..came.len(), came, sent, dialect)
}

/// Like [`changes`], for the messages at `positions` only. The messages before and after them are
/// unchanged, and must not appear in `sent`.
pub fn changes_within<M: Borrow<Message>>(
    positions: Range<usize>,
    came: &[M],
    sent: &[SentMessage],
    dialect: Dialect,
) -> Vec<BodyChange> {
    work::step(sent.len());
    let mut changes = Vec::new();
    let mut removed = Vec::new();
    // From the end, so that an insertion knows the position of the next kept message.
    let mut before = positions.end;
    for batch in batches(sent, dialect).rev() {
        let first = if let [entry] = batch {
            let place = place(entry, before);
            match place {
                Some(at) => changes.extend(rewritten(came, at, &entry.message).into_iter().rev()),
                None => changes.push(put_in(before, &entry.message)),
            }
            place
        } else {
            // Outputs that must be one message are written as one.
            let first = first_place(batch, before);
            changes.push(one_message(batch, first, before));
            first
        };
        if let Some(kept) = first {
            // Everything between two kept messages is removed.
            removed.push(kept + 1..before);
            before = kept;
        }
    }
    removed.push(positions.start..before);
    changes.reverse();
    let removed = removed.into_iter().rev().filter(|gap| !gap.is_empty());
    changes.extend(removed.map(|messages| BodyChange::Remove { messages }));
    changes
}

/// Groups entries that must be one message: the outputs of a round, if the dialect wants them in
/// the message after the calls. Every other entry is a group of its own.
fn batches(
    sent: &[SentMessage],
    dialect: Dialect,
) -> impl DoubleEndedIterator<Item = &[SentMessage]> {
    let tool = |entry: &SentMessage| entry.message.role == Role::Tool;
    sent.chunk_by(move |one, next| dialect == Dialect::Messages && tool(one) && tool(next))
}

/// The position at which the first entry of a batch can stay, if the next batch stays at `before`.
fn first_place(batch: &[SentMessage], before: usize) -> Option<usize> {
    let mut before = before;
    let mut first = None;
    for entry in batch.iter().rev() {
        // A message can stay only before those that stay after it. One that was moved back is
        // removed and inserted anew.
        if let Some(place) = place(entry, before) {
            before = place;
            first = Some(place);
        }
    }
    first
}

fn put_in(before: usize, message: &Arc<Message>) -> BodyChange {
    BodyChange::Insert {
        before,
        message: Arc::clone(message),
    }
}

/// A batch of several messages as one.
fn one_message(batch: &[SentMessage], place: Option<usize>, before: usize) -> BodyChange {
    let parts = batch.iter().flat_map(|entry| entry.message.parts.clone());
    let message = Arc::new(Message::new(Role::Tool, parts.collect()));
    match place {
        Some(at) => BodyChange::Replace {
            message: at,
            with: message,
        },
        None => put_in(before, &message),
    }
}

/// The position at which an entry can stay, if the next one stays at `before`.
fn place(entry: &SentMessage, before: usize) -> Option<usize> {
    entry.log_position.filter(|position| *position < before)
}

/// The changes that turn the message at `position` into `shown`.
fn rewritten<M: Borrow<Message>>(
    log: &[M],
    position: usize,
    shown: &Arc<Message>,
) -> Vec<BodyChange> {
    let Some(came) = log.get(position).map(Borrow::borrow) else {
        return Vec::new();
    };
    // The usual case: an unchanged message keeps its bytes.
    if std::ptr::eq(came, shown.as_ref()) || came.parts == shown.parts {
        return Vec::new();
    }
    let with = || {
        vec![BodyChange::Replace {
            message: position,
            with: Arc::clone(shown),
        }]
    };
    if came.role != shown.role {
        return with();
    }
    part_changes(position, came, shown).unwrap_or_else(with)
}

/// How an original part relates to a part to send.
enum PartDifference {
    /// Identical.
    Same,
    /// Identical after a change.
    Changed(BodyChange),
    /// Different.
    Other,
}

/// The changes of single parts; none if the message must be rewritten.
fn part_changes(message: usize, came: &Message, shown: &Message) -> Option<Vec<BodyChange>> {
    let mut changes = Vec::new();
    let mut left = shown.parts.iter().peekable();
    for (part, was) in came.parts.iter().enumerate() {
        let step = left
            .peek()
            .map_or(PartDifference::Other, |is| step(message, part, was, is));
        if let PartDifference::Other = step {
            changes.push(BodyChange::RemovePart { message, part });
            continue;
        }
        left.next();
        if let PartDifference::Changed(change) = step {
            changes.push(change);
        }
    }
    left.next().is_none().then_some(changes)
}

fn step(message: usize, part: usize, was: &Part, is: &Part) -> PartDifference {
    let changed = |same: bool, change: BodyChange| {
        if same {
            PartDifference::Changed(change)
        } else {
            PartDifference::Other
        }
    };
    match (was, is) {
        (was, is) if was == is => PartDifference::Same,
        (Part::Call(was), Part::Call(is)) => {
            let id = is.id.clone();
            // Equal except for the id: then only the id is rewritten, and the arguments keep their
            // bytes.
            let same = Call {
                id: id.clone(),
                ..was.clone()
            } == *is;
            // Without an id there is nothing to replace, so the message is rewritten.
            let same = same && !was.id.is_empty();
            changed(same, BodyChange::Rename { message, part, id })
        }
        (Part::Output(was), Part::Output(is)) if was.call_id == is.call_id => {
            PartDifference::Changed(BodyChange::Show {
                message,
                part,
                output: is.clone(),
            })
        }
        (Part::Output(was), Part::Output(is)) => {
            let id = is.call_id.clone();
            let same = Output {
                call_id: id.clone(),
                ..was.clone()
            } == *is;
            let same = same && !was.call_id.is_empty();
            changed(same, BodyChange::Rename { message, part, id })
        }
        _ => PartDifference::Other,
    }
}
