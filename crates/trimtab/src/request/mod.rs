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
    splice::changes(log.messages(), &sent_entries(entries), dialect)
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
