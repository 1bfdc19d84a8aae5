//! Maps the messages of the client to messages of the log.
//!
//! The log of a session holds what the provider is sent: the client's messages, and the rounds
//! in between that the client never saw. Marks on the messages tell them apart; they are kept
//! with the log and never sent.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};
use trimtab_engine::log::Log;
use trimtab_engine::normalise::{MessageSource, WindowEntry};
use trimtab_model::{Message, Output, Part, RawJson, work};

use crate::prefix_cache::fingerprint::{Fingerprint, FingerprintChain};

/// The mark with the fingerprint of a client's message.
const FINGERPRINT: &str = "trimtab:print";
/// The mark of a client's message that differs in the log from what the client sent.
const ALTERED: &str = "trimtab:altered";
/// The fields of cache markers, which move from call to call.
const MARKERS: [&str; 2] = ["cache_control", "prompt_cache_breakpoint"];

/// Maps the client's messages to messages of the log.
#[derive(Clone, Debug, Default)]
pub(crate) struct MessageMap {
    /// The fingerprints of the client's messages.
    pub(crate) fingerprints: FingerprintChain,
    /// For each message of the client its position in the log.
    log_positions: Vec<usize>,
    /// The client's positions of altered messages.
    altered: BTreeSet<usize>,
    /// The client's messages as it wrote them, as far as they were needed so far.
    client_log: Log,
}

impl MessageMap {
    /// Reads the marks of a log. None if the proxy did not write it.
    pub(crate) fn read(log: &Log) -> Option<Self> {
        let mut message_map = Self::default();
        message_map.read_from(log, 0);
        // A log with messages but without a fingerprint was not written by the proxy.
        (message_map.fingerprints.len() > 0 || log.is_empty()).then_some(message_map)
    }

    /// The same for a log that begins like the one of this map, without reading the marks again.
    pub(crate) fn beginning(&self, log: &Log) -> Self {
        let mut beginning = Self::default();
        for (client, place) in self.log_positions.iter().enumerate() {
            let fingerprint = self.fingerprints.get(client);
            let Some((message, fingerprint)) = log.get(*place).zip(fingerprint) else {
                break;
            };
            beginning.add_client_message(fingerprint, message, *place);
        }
        beginning
    }

    /// Reads the marks of the messages from a position of the log on.
    pub(crate) fn read_from(&mut self, log: &Log, first: usize) {
        for (place, message) in log.messages().iter().enumerate().skip(first) {
            if let Some(fingerprint) = fingerprint_on(message) {
                self.add_client_message(fingerprint, message, place);
            }
        }
    }

    /// Records that the client's next message is at position `place` of the log.
    pub(crate) fn add_client_message(
        &mut self,
        fingerprint: Fingerprint,
        message: &Message,
        place: usize,
    ) {
        self.fingerprints.restore(fingerprint, message.role);
        self.add(place, has(message, ALTERED));
    }

    fn add(&mut self, place: usize, altered: bool) {
        if altered {
            self.altered.insert(self.log_positions.len());
        }
        self.log_positions.push(place);
    }

    /// True if the log consists of the client's unaltered messages only.
    fn is_plain(&self, logged: usize) -> bool {
        self.altered.is_empty() && self.log_positions.len() == logged
    }

    /// For each message of the client its place in the log.
    pub(crate) fn log_positions(&self) -> &[usize] {
        &self.log_positions
    }

    /// The log length that corresponds to the client's first messages.
    pub(crate) fn log_length(&self, messages: usize) -> usize {
        let last = messages
            .checked_sub(1)
            .and_then(|at| self.log_positions.get(at));
        last.map_or(0, |place| place + 1)
    }

    /// The log position of the client's last message.
    pub(crate) fn last_log_position(&self) -> Option<usize> {
        self.log_positions.last().copied()
    }

    /// The log and the window in the client's positions. `came` reads the original of a client's
    /// message. None if both positions are the same.
    pub(crate) fn in_client_positions(
        &mut self,
        log: &Log,
        entries: &[WindowEntry],
        came: impl Fn(usize) -> Option<Message>,
    ) -> Option<(&Log, Vec<WindowEntry>)> {
        // The usual case: nothing was hidden, so both count the same way and nothing is copied.
        if self.is_plain(log.len()) {
            return None;
        }
        let known = self.client_log.len();
        work::step(self.log_positions.len() - known + entries.len());
        for (client, place) in self.log_positions.iter().enumerate().skip(known) {
            let is_altered = self.altered.contains(&client);
            // The log has the message as the provider sent it. Changes are applied to the body, so
            // here it must be as the client wrote it.
            let message = match is_altered.then(|| came(client)).flatten() {
                Some(mut message) => {
                    strip_markers(&mut message);
                    message.into()
                }
                None => Arc::clone(log.get(*place)?),
            };
            self.client_log.append(message);
        }
        let source = |source: MessageSource| {
            match (source, self.log_positions.binary_search(&source.position())) {
                (MessageSource::Log(_), Ok(client)) => MessageSource::Log(client),
                // A message of a hidden round is not in the body. For the body it is inserted
                // before the client's next message.
                (_, Ok(next) | Err(next)) => MessageSource::Inserted(next),
            }
        };
        let entries = entries.iter().map(|entry| WindowEntry {
            source: source(entry.source),
            ..entry.clone()
        });
        let entries = entries.collect();
        Some((&self.client_log, entries))
    }
}

/// Marks a client's message before it is admitted.
pub(crate) fn mark(message: &mut Message, fingerprint: Fingerprint) {
    // Markers move with every request. In the log they would make equal messages differ.
    strip_markers(message);
    set(
        message,
        FINGERPRINT,
        RawJson::of(&format!("{fingerprint:032x}")),
    );
}

/// Marks a message as altered.
pub(crate) fn mark_altered(message: &mut Message) {
    set(message, ALTERED, RawJson::of(&true));
}

fn set(message: &mut Message, name: &str, value: RawJson) {
    message.meta.extra.push((name.to_owned(), value));
}

fn has(message: &Message, name: &str) -> bool {
    message.meta.extra.iter().any(|(key, _)| key == name)
}

/// The fingerprint on a message of the client's.
fn fingerprint_on(message: &Message) -> Option<Fingerprint> {
    let extra = message.meta.extra.iter();
    let (_, fingerprint) = extra.into_iter().find(|(key, _)| key == FINGERPRINT)?;
    Fingerprint::from_str_radix(fingerprint.as_str().trim_matches('"'), 16).ok()
}

/// Removes cache markers. Their positions belong to a request and not to a message.
fn strip_markers(message: &mut Message) {
    message.meta.extra.retain(|(name, _)| !is_marker(name));
    for part in &mut message.parts {
        match part {
            Part::Text(text) => text.extra.retain(|(name, _)| !is_marker(name)),
            Part::Call(call) => call.extra.retain(|(name, _)| !is_marker(name)),
            Part::Output(output) => strip_output(output),
            Part::Media(media) => strip_raw(&mut media.raw),
            Part::Opaque(opaque) => strip_raw(&mut opaque.raw),
            Part::Reasoning(_) => {}
        }
    }
}

/// True for the name of a cache marker.
pub(crate) fn is_marker(name: &str) -> bool {
    MARKERS.contains(&name)
}

fn strip_raw(raw: &mut RawJson) {
    // Most parts have no marker, and media can be megabytes: they are not parsed for nothing.
    if !MARKERS.iter().any(|name| raw.as_str().contains(name)) {
        return;
    }
    if let Ok(mut object) = serde_json::from_str::<Map<String, Value>>(raw.as_str()) {
        object.retain(|name, _| !is_marker(name));
        *raw = RawJson::of(&object);
    }
}

fn strip_output(output: &mut Output) {
    output.extra.retain(|(name, _)| !is_marker(name));
    for part in &mut output.content {
        match part {
            Part::Text(text) => text.extra.retain(|(name, _)| !is_marker(name)),
            Part::Media(media) => strip_raw(&mut media.raw),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_engine::normalise::EntryChange;

    fn marked(mut message: Message, fingerprint: Fingerprint) -> Message {
        mark(&mut message, fingerprint);
        message
    }

    fn entry(log: &Log, at: usize) -> WindowEntry {
        WindowEntry {
            message: Arc::clone(log.get(at).unwrap()),
            source: MessageSource::Log(at),
            change: EntryChange::Untouched,
        }
    }

    #[test]
    fn a_log_tells_whose_messages_it_holds() {
        let mut split = marked(Message::assistant("two"), 2);
        mark_altered(&mut split);
        let log: Log = [
            marked(Message::user("q"), 1),
            Message::assistant("one"),
            Message::output("h", "found"),
            split,
            marked(Message::user("r"), 3),
        ]
        .into_iter()
        .collect();
        let mut message_map = MessageMap::read(&log).unwrap();
        assert_eq!(
            (
                message_map.fingerprints.len(),
                message_map.fingerprints.get(2)
            ),
            (3, Some(3))
        );
        assert_eq!(message_map.last_log_position(), Some(4));

        let entries: Vec<WindowEntry> = (0..5).map(|at| entry(&log, at)).collect();
        let came = |at: usize| (at == 1).then(|| Message::assistant("onetwo"));
        let (client, seen) = message_map
            .in_client_positions(&log, &entries, came)
            .unwrap();
        assert_eq!(
            (client.len(), client.get(1).unwrap().text().as_ref()),
            (3, "onetwo")
        );
        let sources: Vec<MessageSource> = seen.iter().map(|entry| entry.source).collect();
        assert_eq!(
            sources,
            [
                MessageSource::Log(0),
                MessageSource::Inserted(1),
                MessageSource::Inserted(1),
                MessageSource::Log(1),
                MessageSource::Log(2)
            ]
        );

        // A longer log is read from its first new message on.
        let mut longer = log.clone();
        longer.append(marked(Message::assistant("three"), 4));
        message_map.read_from(&longer, log.len());
        let unread = |at: usize| panic!("message {at} is read again");
        let (client, _) = message_map
            .in_client_positions(&longer, &entries, unread)
            .unwrap();
        let texts = client.messages().iter().map(|message| message.text());
        assert_eq!(texts.collect::<Vec<_>>(), ["q", "onetwo", "r", "three"]);
        let beginning = message_map.beginning(&log);
        assert_eq!(beginning.log_positions(), [0, 3, 4]);
        assert_eq!(
            beginning.fingerprints,
            MessageMap::read(&log).unwrap().fingerprints
        );
    }

    #[test]
    fn a_plain_log_needs_no_translation() {
        let log: Log = [marked(Message::user("q"), 1)].into_iter().collect();
        let mut message_map = MessageMap::read(&log).unwrap();
        assert!(
            message_map
                .in_client_positions(&log, &[], |_| None)
                .is_none()
        );
        assert!(MessageMap::read(&[Message::user("q")].into_iter().collect()).is_none());
    }

    #[test]
    fn cache_markers_do_not_enter_the_log() {
        let body = br#"{"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c",
            "cache_control": {"type": "ephemeral"}, "content": [{"type": "text", "text": "x",
            "cache_control": {"type": "ephemeral"}}, {"type": "image", "source": {},
            "cache_control": {"type": "ephemeral"}}]}, {"type": "later", "a": 1,
            "cache_control": {"type": "ephemeral"}}]}]}"#;
        let scan =
            trimtab_wire::scan::BodyScan::new(body, trimtab_model::Dialect::Messages).unwrap();
        for at in 0..scan.len() {
            let kept = marked(scan.message(at).unwrap(), 1);
            let kept = serde_json::to_string(&kept).unwrap();
            assert!(!kept.contains("cache_control"), "{kept}");
        }
    }
}
