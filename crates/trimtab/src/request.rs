//! A request body with the window of a session carried out on it, by splicing its bytes.

use std::sync::Arc;

use trimtab_engine::log::Log;
use trimtab_engine::normalise::{Entry, Source, Touch};
use trimtab_engine::window::Window;
use trimtab_model::{Call, Dialect, Message, Output, Part, Role};
use trimtab_wire::splice::Change;

/// The changes that turn the messages of `log`, as a body was scanned into it, into `window`.
///
/// What the window shows as it came is not among them, so its bytes stay as they are; a
/// window without edits and repairs gives none.
///
/// ```
/// use trimtab::engine::{log::Log, normalise::Options, window::Projection};
/// use trimtab::model::Dialect;
/// use trimtab::request::changes;
/// use trimtab::wire::{scan::Scan, splice::splice};
///
/// let body = br#"{"messages": [{"role": "user", "content": "q"},
///     {"role": "assistant", "tool_calls": [
///         {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
///     {"role": "user", "content": "never mind"}]}"#;
/// let scan = Scan::new(body, Dialect::Chat).unwrap();
/// let log: Log = (0..scan.len()).filter_map(|at| scan.message(at)).collect();
/// let mut projection = Projection::restore(Options::default(), log.clone(), Default::default());
/// let spliced = splice(&scan, &changes(&log, projection.window().unwrap(), Dialect::Chat)).unwrap();
/// assert!(String::from_utf8_lossy(&spliced.body).contains("aborted"));
/// ```
pub fn changes(log: &Log, window: &Window, dialect: Dialect) -> Vec<Change> {
    changes_to(log, window.entries(), dialect)
}

/// The same for the entries of a window, where their positions were brought in line with a
/// body that holds only some of the log's messages.
pub fn changes_to(log: &Log, entries: &[Entry], dialect: Dialect) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut kept = vec![false; log.len()];
    // From the end, so that what is put in knows the position it stands before.
    let mut before = log.len();
    for batch in batches(entries, dialect).into_iter().rev() {
        let places = places(batch, before);
        let first = places.iter().flatten().next().copied();
        if places.len() > 1 {
            changes.push(one_message(batch, first, before));
            mark(&mut kept, first);
        } else {
            for (entry, place) in batch.iter().zip(&places).rev() {
                match place {
                    Some(at) => {
                        changes.extend(rewritten(log, *at, &entry.message).into_iter().rev());
                    }
                    None => changes.push(put_in(before, &entry.message)),
                }
                mark(&mut kept, *place);
            }
        }
        before = first.unwrap_or(before);
    }
    changes.reverse();
    let gone = kept.iter().enumerate().filter(|(_, kept)| !**kept);
    changes.extend(gone.map(|(message, _)| Change::Remove { message }));
    changes
}

/// The entries in runs that must be one message: the outputs of a round, where the dialect
/// wants all of them in the message behind the calls. Every other entry is by itself.
fn batches(entries: &[Entry], dialect: Dialect) -> Vec<&[Entry]> {
    let together = |one: &Entry, next: &Entry| {
        let tool = |entry: &Entry| entry.message.role == Role::Tool;
        dialect == Dialect::Messages && tool(one) && tool(next)
    };
    entries.chunk_by(together).collect()
}

/// Where each entry of a batch can stay, if what follows stays at `before`.
fn places(batch: &[Entry], before: usize) -> Vec<Option<usize>> {
    let mut before = before;
    let mut places: Vec<Option<usize>> = Vec::with_capacity(batch.len());
    for entry in batch.iter().rev() {
        let place = place(entry, before);
        before = place.unwrap_or(before);
        places.push(place);
    }
    places.reverse();
    places
}

fn mark(kept: &mut [bool], place: Option<usize>) {
    if let Some(kept) = place.and_then(|at| kept.get_mut(at)) {
        *kept = true;
    }
}

fn put_in(before: usize, message: &Arc<Message>) -> Change {
    Change::Insert {
        before,
        message: Arc::clone(message),
    }
}

/// A batch of several messages as one.
fn one_message(batch: &[Entry], place: Option<usize>, before: usize) -> Change {
    let parts = batch.iter().flat_map(|entry| entry.message.parts.clone());
    let message = Arc::new(Message::new(Role::Tool, parts.collect()));
    match place {
        Some(at) => Change::Replace {
            message: at,
            with: message,
        },
        None => put_in(before, &message),
    }
}

/// The position at which an entry can stay, if what follows it stays at `before`.
fn place(entry: &Entry, before: usize) -> Option<usize> {
    match entry.source {
        Source::Log(position) if position < before && entry.touch != Touch::Made => Some(position),
        _ => None,
    }
}

/// What makes the message at `position` the one that is shown.
fn rewritten(log: &Log, position: usize, shown: &Arc<Message>) -> Vec<Change> {
    let Some(came) = log.get(position) else {
        return Vec::new();
    };
    if Arc::ptr_eq(came, shown) || came.parts == shown.parts {
        return Vec::new();
    }
    let with = || {
        vec![Change::Replace {
            message: position,
            with: Arc::clone(shown),
        }]
    };
    if came.role != shown.role {
        return with();
    }
    part_changes(position, came, shown).unwrap_or_else(with)
}

/// How a part that came relates to one that is shown.
enum Step {
    /// It is the same.
    Same,
    /// It is the same after a change.
    Changed(Change),
    /// It is another one.
    Other,
}

/// The changes of single parts that do it; none if the message must be written anew.
fn part_changes(message: usize, came: &Message, shown: &Message) -> Option<Vec<Change>> {
    let mut changes = Vec::new();
    let mut left = shown.parts.iter().peekable();
    for (part, was) in came.parts.iter().enumerate() {
        let step = left
            .peek()
            .map_or(Step::Other, |is| step(message, part, was, is));
        if let Step::Other = step {
            changes.push(Change::RemovePart { message, part });
            continue;
        }
        left.next();
        if let Step::Changed(change) = step {
            changes.push(change);
        }
    }
    left.next().is_none().then_some(changes)
}

fn step(message: usize, part: usize, was: &Part, is: &Part) -> Step {
    let changed = |same: bool, change: Change| {
        if same {
            Step::Changed(change)
        } else {
            Step::Other
        }
    };
    match (was, is) {
        (was, is) if was == is => Step::Same,
        (Part::Call(was), Part::Call(is)) => {
            let id = is.id.clone();
            let same = Call {
                id: id.clone(),
                ..was.clone()
            } == *is;
            changed(same, Change::Rename { message, part, id })
        }
        (Part::Output(was), Part::Output(is)) if was.call_id == is.call_id => {
            Step::Changed(Change::Show {
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
            changed(same, Change::Rename { message, part, id })
        }
        _ => Step::Other,
    }
}
