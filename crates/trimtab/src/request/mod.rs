//! Turns a window into a request: splices the bytes of a body, or writes new fields.

mod fields;
mod system_summary;

use std::borrow::Cow;
use std::sync::Arc;

use trimtab_engine::log::Log;
use trimtab_engine::normalise::{EntryChange, MessageSource, WindowEntry};
use trimtab_engine::window::{Projection, Window};
use trimtab_model::{Dialect, Message, MessageKind, Part, Role, work};
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
    let sent = sent_entries(changed.unwrap_or_default());
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

/// True if plans removed signed reasoning from the open tool loop.
///
/// In Messages, a provider requires the reasoning of a whole tool loop while thinking is enabled,
/// and rejects reasoning after a change. So the rest of that loop must continue without thinking.
/// The next turn of the user can use it again.
pub fn loop_lost_reasoning(projection: &Projection) -> bool {
    let stripped = projection.journal().reasoning_stripped_before();
    // Only Messages has this rule, and usually nothing was removed. Then the log need not be walked
    // on every call.
    if stripped == 0 || projection.dialect() != Dialect::Messages {
        return false;
    }
    let log = projection.log().messages();
    let start = open_loop_start(log);
    let in_loop = log.get(start..stripped).unwrap_or_default();
    in_loop.iter().any(|message| is_sealed(message))
}

/// The start of the newest turn of the user. A user message that comes with outputs is merged into
/// one message with them, so it does not end a tool loop.
fn open_loop_start(log: &[Arc<Message>]) -> usize {
    let begins_turn = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| log.get(before));
        // Calls that have no outputs when the user goes on get them in the window.
        let follows_output =
            before.is_some_and(|before| before.role == Role::Tool || before.has_calls());
        let begins = |message: &Arc<Message>| {
            message.is_real_user() || message.meta.kind == Some(MessageKind::Observation)
        };
        log.get(at).is_some_and(begins) && !follows_output
    };
    (0..log.len())
        .rev()
        .find(|at| begins_turn(*at))
        .unwrap_or(0)
}

fn is_sealed(message: &Message) -> bool {
    let mut parts = message.parts.iter();
    parts.any(|part| matches!(part, Part::Reasoning(thought) if thought.is_sealed()))
}
