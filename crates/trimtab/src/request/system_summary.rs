//! Joins a summary in the system prompt to the system message before it.
//!
//! In Chat Completions a system prompt is a message. Some models accept only one such message.

use std::borrow::Cow;
use std::sync::Arc;

use trimtab_engine::normalise::{EntryChange, WindowEntry};
use trimtab_model::{Message, MessageKind, Part, Role};

/// The messages of a window in Chat Completions, with a summary among the leading system messages
/// as the end of the one before it.
pub fn with_joined_summary(messages: &[Arc<Message>]) -> Cow<'_, [Arc<Message>]> {
    with_joined(messages, |message| message, |_, joined| Arc::new(joined))
}

/// The same for the entries of a window.
pub(super) fn entries_with_joined_summary(entries: &[WindowEntry]) -> Cow<'_, [WindowEntry]> {
    let entry = |before: &WindowEntry, joined| WindowEntry {
        message: Arc::new(joined),
        source: before.source,
        change: EntryChange::Changed,
    };
    with_joined(entries, |entry| &entry.message, entry)
}

fn with_joined<T: Clone>(
    all: &[T],
    message: impl Fn(&T) -> &Message,
    make: impl Fn(&T, Message) -> T,
) -> Cow<'_, [T]> {
    let joined = joined(all.iter().map(message));
    let found = joined.and_then(|(place, system)| Some((place, make(all.get(place)?, system))));
    let Some((place, entry)) = found else {
        return Cow::Borrowed(all);
    };
    let mut all = all.to_vec();
    all.splice(place..=place + 1, [entry]);
    Cow::Owned(all)
}

/// The position of the system message before a summary, and both as one message; none if there is
/// no such summary.
pub(super) fn joined<'m>(messages: impl Iterator<Item = &'m Message>) -> Option<(usize, Message)> {
    let leading = messages.take_while(|message| message.role == Role::System);
    let leading: Vec<&Message> = leading.collect();
    let pairs = leading.windows(2).enumerate();
    let mut pairs = pairs.filter_map(|(place, pair)| Some((place, pair.first()?, pair.last()?)));
    let is_summary = |message: &Message| message.meta.kind == Some(MessageKind::Summary);
    let (place, system, summary) = pairs.find(|(.., summary)| is_summary(summary))?;
    Some((place, join(system, &summary.text())))
}

fn join(system: &Message, summary: &str) -> Message {
    let mut joined = system.clone();
    match joined.parts.as_mut_slice() {
        [Part::Text(said)] => said.text.push_str(summary),
        _ => joined.parts.push(Part::text(summary)),
    }
    joined
}
