//! A window as a request: carried out on a body by splicing its bytes, or written anew.

mod written;

use std::sync::Arc;

use trimtab_engine::log::Log;
use trimtab_engine::normalise::{Entry, Source, Touch};
use trimtab_engine::window::Window;
use trimtab_model::{Dialect, Message, Part, Role};
use trimtab_wire::splice::{self, Change, Sent};

pub use written::{Field, bare, fields};

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
    let settled = settled(log, entries);
    let sent = sent_entries(entries.get(settled..).unwrap_or_default());
    splice::changes_behind(settled, log.messages(), &sent, dialect)
}

/// The same for what stands behind the first `messages` of the log: `entries` are those of the
/// window that come from there, and what became of the messages before is not said.
pub fn tail_changes(
    messages: usize,
    log: &Log,
    entries: &[Entry],
    dialect: Dialect,
) -> Vec<Change> {
    splice::changes_behind(messages, log.messages(), &sent_entries(entries), dialect)
}

/// How many messages at the beginning are sent as they came, and need not be looked at.
fn settled(log: &Log, entries: &[Entry]) -> usize {
    let both = entries.iter().zip(log.messages()).enumerate();
    let same = both.take_while(|(at, (entry, came))| {
        entry.source == Source::Log(*at) && Arc::ptr_eq(&entry.message, came)
    });
    let mut settled = same.count();
    // What comes from before them, or goes into one message with them, puts them in question.
    let later = entries.get(settled..).unwrap_or_default();
    if later.iter().any(|entry| entry.source.position() < settled) {
        return 0;
    }
    let is_output = |at: usize| {
        let entry = entries.get(at);
        entry.is_some_and(|entry| entry.message.role == Role::Tool)
    };
    while settled > 0 && is_output(settled) && is_output(settled - 1) {
        settled -= 1;
    }
    settled
}

/// The messages of a window, each with the position in the log of the one that it was.
pub fn sent(window: &Window) -> Vec<Sent> {
    sent_entries(window.entries())
}

fn sent_entries(entries: &[Entry]) -> Vec<Sent> {
    let sent = entries.iter().map(|entry| Sent {
        message: Arc::clone(&entry.message),
        from: match entry.source {
            Source::Log(position) if entry.touch != Touch::Made => Some(position),
            Source::Log(_) | Source::Inserted(_) => None,
        },
    });
    sent.collect()
}

/// True if a window ends with an open round whose sealed thought a plan took out.
///
/// In Messages the provider insists on that thought while the model thinks, and refuses it
/// behind what has changed. So the call has to be made without thinking: the next one can
/// think again.
pub fn lost_thought(log: &Log, entries: &[Entry]) -> bool {
    let is_output = |entry: &&Entry| entry.message.role == Role::Tool;
    let newest = entries.iter().rev();
    let Some(asks) = newest.clone().find(|entry| !is_output(entry)) else {
        return false;
    };
    let is_open = newest.take(1).all(|entry| is_output(&entry));
    let Source::Log(at) = asks.source else {
        return false;
    };
    let came = log.messages().get(at);
    is_open && came.is_some_and(|came| is_sealed(came)) && !is_sealed(&asks.message)
}

fn is_sealed(message: &Message) -> bool {
    let mut parts = message.parts.iter();
    parts.any(|part| matches!(part, Part::Reasoning(thought) if thought.is_sealed()))
}
