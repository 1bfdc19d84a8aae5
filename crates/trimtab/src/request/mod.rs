//! A request body with the window of a session carried out on it, by splicing its bytes.

use std::sync::Arc;

use trimtab_engine::log::Log;
use trimtab_engine::normalise::{Entry, Source, Touch};
use trimtab_engine::window::Window;
use trimtab_model::Dialect;
use trimtab_wire::splice::{self, Change, Sent};

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
