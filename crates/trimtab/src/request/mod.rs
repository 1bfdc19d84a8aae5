//! Turns a window into a request: splices the bytes of a body, or writes new fields.

mod fields;
mod system_summary;

use std::borrow::Cow;
use std::sync::Arc;

use memchr::memmem;
use trimtab_engine::log::Log;
use trimtab_engine::normalise::{EntryChange, MessageSource, WindowEntry};
use trimtab_engine::window::Window;
use trimtab_model::{Dialect, Message, Role, work};
use trimtab_wire::json::pick;
use trimtab_wire::scan::BodyScan;
use trimtab_wire::splice::{self, BodyChange, SentMessage};

use self::system_summary::entries_with_joined_summary;

pub use fields::{RequestField, fields, without_metadata};
pub use system_summary::with_joined_summary;

/// The changes that turn the messages of `log`, as scanned from a body, into `window`.
///
/// Unchanged messages are not among them, so their bytes stay the same; a window without edits and
/// repairs needs no changes.
///
/// ```
/// use trimtab::engine::{log::Log, normalise::NormaliseOptions, window::Projection};
/// use trimtab::model::Dialect;
/// use trimtab::request::changes;
/// use trimtab::wire::{scan::BodyScan, splice::splice};
///
/// let body = br#"{"messages": [{"role": "user", "content": "q"},
///     {"role": "assistant", "tool_calls": [
///         {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
///     {"role": "user", "content": "never mind"}]}"#;
/// let scan = BodyScan::new(body, Dialect::Chat).unwrap();
/// let log: Log = (0..scan.len()).filter_map(|at| scan.message(at)).collect();
/// let mut projection = Projection::restore(NormaliseOptions::default(), log.clone(), Default::default());
/// let spliced = splice(&scan, &changes(&log, projection.window().unwrap(), Dialect::Chat)).unwrap();
/// assert!(String::from_utf8_lossy(&spliced.body).contains("aborted"));
/// ```
pub fn changes(log: &Log, window: &Window, dialect: Dialect) -> Vec<BodyChange> {
    changes_to(log, window.entries(), dialect)
}

/// The same for the entries of a window, with positions that were adapted to a body that contains
/// only some messages of the log.
pub fn changes_to(log: &Log, entries: &[WindowEntry], dialect: Dialect) -> Vec<BodyChange> {
    let entries = match dialect {
        Dialect::Chat => entries_with_joined_summary(entries),
        // Others have a field for the system prompt.
        Dialect::Messages | Dialect::Responses => Cow::Borrowed(entries),
    };
    let (front, back) = unchanged_around(log, &entries);
    let changed = entries.get(front..entries.len() - back);
    let mut sent = sent_entries(changed.unwrap_or_default());
    for one in &mut sent {
        let came = one.log_position.and_then(|at| log.get(at));
        // An output that moved out of a system message is written anew: its entry of the body would
        // keep the role.
        if one.message.role == Role::Tool && came.is_some_and(|came| came.role == Role::System) {
            one.log_position = None;
        }
    }
    splice::changes_within(front..log.len() - back, log.messages(), &sent, dialect)
}

/// The numbers of unchanged messages at the beginning and at the end. They need no comparison: most
/// plans change old messages only, and there may be thousands of later ones.
fn unchanged_around(log: &Log, entries: &[WindowEntry]) -> (usize, usize) {
    work::step(entries.len());
    // Comparing pointers is enough: unedited entries share their message with the log.
    let is_same = |(entry, (at, came)): (&WindowEntry, (usize, &Arc<Message>))| {
        entry.source == MessageSource::Log(at) && Arc::ptr_eq(&entry.message, came)
    };
    let came = || log.messages().iter().enumerate();
    let same = entries.iter().zip(came()).take_while(|both| is_same(*both));
    let mut front = same.count();
    let (behind, came_behind) = (entries.iter().skip(front), came().skip(front));
    let same = behind.rev().zip(came_behind.rev());
    let mut back = same.take_while(|both| is_same(*both)).count();
    // An entry that comes from before them changes them after all.
    let changed = entries.get(front..entries.len() - back).unwrap_or_default();
    let mut sources = changed.iter().map(|entry| entry.source.position());
    if sources.any(|position| position < front) {
        front = 0;
    }
    let is_output = |at: usize| {
        let entry = entries.get(at);
        entry.is_some_and(|entry| entry.message.role == Role::Tool)
    };
    let is_among_outputs = |at: usize| at > 0 && is_output(at) && is_output(at - 1);
    // In Messages, outputs in a row are one entry of the body, and must change together.
    while front > 0 && is_among_outputs(front) {
        front -= 1;
    }
    while back > 0 && is_among_outputs(entries.len() - back) {
        back -= 1;
    }
    (front, back)
}

/// The messages of a window, each with its position in the log.
pub fn sent_messages(window: &Window) -> Vec<SentMessage> {
    sent_entries(window.entries())
}

fn sent_entries(entries: &[WindowEntry]) -> Vec<SentMessage> {
    let sent = entries.iter().map(|entry| SentMessage {
        message: Arc::clone(&entry.message),
        log_position: entry
            .source
            .in_log()
            .filter(|_| entry.change != EntryChange::Made),
    });
    sent.collect()
}

/// True if the text of a provider's error says that reasoning is bound to other messages or tools
/// than those that were sent.
pub fn is_stale_reasoning(error: &[u8]) -> bool {
    memmem::find(error, b"bound to a different conversation").is_some()
}

/// Whether a model may bind its reasoning to everything before it, where only `known` is known of
/// it. An unknown model may do so in Messages; no other API has models that do.
pub fn may_bind_reasoning(known: Option<bool>, dialect: Dialect) -> bool {
    known.unwrap_or(dialect == Dialect::Messages)
}

/// True if an edit of this request must also remove the signed reasoning behind it. `known` says
/// whether its model binds reasoning to everything before it.
pub fn binds_reasoning(scan: &BodyScan<'_>, known: Option<bool>) -> bool {
    let thinking = scan.json(scan.request().thinking);
    let mode = pick(thinking, ["type"]).and_then(|[mode]| mode);
    // No model that binds its reasoning has this mode, and the models that have it reject a tool
    // loop without its reasoning.
    mode != Some("\"enabled\"") && may_bind_reasoning(known, scan.dialect())
}
