//! Reuses the JSON of the previous request of a conversation.
//!
//! A window only grows at its end until a plan changes it. The common prefix is reused, and
//! everything from the first different message on is written again, so nothing that a compaction
//! replaced is ever sent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use trimtab_model::{Message, RawJson};

/// The maximum number of remembered conversations: an agent, its sub-agents, and some spare.
const MOST: usize = 32;

/// The written messages of the last request, per conversation.
#[derive(Debug, Default)]
pub(super) struct SentCache(Mutex<HashMap<String, Vec<WrittenMessage>>>);

/// A message with its JSON.
#[derive(Clone, Debug)]
struct WrittenMessage {
    message: Arc<Message>,
    entries: Vec<RawJson>,
}

impl SentCache {
    /// The JSON of `messages`; reuses the common prefix with the last request of `conversation`.
    pub(super) fn entries(
        &self,
        conversation: Option<&str>,
        messages: &[Arc<Message>],
        write: impl Fn(&Message) -> Vec<RawJson>,
    ) -> Vec<RawJson> {
        let mut written = conversation.map_or_else(Vec::new, |name| self.take(name));
        let same = written
            .iter()
            .zip(messages)
            // Most messages are the same allocation, which is compared at once. After a reload
            // equal messages are new allocations.
            .take_while(|(old, new)| Arc::ptr_eq(&old.message, new) || old.message == **new)
            .count();
        written.truncate(same);
        let rest = messages.iter().skip(same).map(|message| WrittenMessage {
            message: Arc::clone(message),
            entries: write(message),
        });
        written.extend(rest);
        let entries = written.iter().flat_map(|one| one.entries.clone()).collect();
        if let Some(name) = conversation {
            self.put(name, written);
        }
        entries
    }

    fn take(&self, name: &str) -> Vec<WrittenMessage> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(name).unwrap_or_default()
    }

    fn put(&self, name: &str, written: Vec<WrittenMessage>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Dropping everything is rare and only costs one full write per conversation.
        if all.len() >= MOST {
            all.clear();
        }
        all.insert(name.to_owned(), written);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn message(text: &str) -> Arc<Message> {
        Arc::new(Message::user(text))
    }

    fn texts(entries: &[RawJson]) -> Vec<&str> {
        entries.iter().map(RawJson::as_str).collect()
    }

    #[test]
    fn only_new_messages_are_serialised() {
        let sent = SentCache::default();
        let written = Cell::new(0);
        let write = |message: &Message| {
            written.set(written.get() + 1);
            vec![RawJson::of(&*message.text())]
        };
        let mut window = vec![message("a"), message("b")];
        sent.entries(Some("s"), &window, write);
        window.push(message("c"));
        let entries = sent.entries(Some("s"), &window, write);
        assert_eq!(
            (texts(&entries), written.get()),
            (vec!["\"a\"", "\"b\"", "\"c\""], 3)
        );

        let compacted = vec![message("a"), message("summary"), message("c")];
        let entries = sent.entries(Some("s"), &compacted, write);
        assert_eq!(
            (texts(&entries), written.get()),
            (vec!["\"a\"", "\"summary\"", "\"c\""], 5)
        );

        sent.entries(None, &compacted, write);
        sent.entries(Some("other"), &compacted, write);
        assert_eq!(written.get(), 11);
    }
}
