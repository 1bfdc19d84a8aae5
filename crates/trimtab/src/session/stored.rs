//! The stored form of a session's log and journal.

use serde::{Deserialize, Serialize};
use trimtab_engine::journal::JournalEntry;
use trimtab_model::{Message, Output, Part};
use trimtab_store::{SessionId, Store};

use super::SessionError;
use crate::admission::contents;

/// The number of entries of a stream that are read at a time.
const BATCH: usize = 256;
/// The number of outputs that are opened at a time, because each may be an open file.
const OPENED: usize = 64;

/// A stored entry of the log. Stored outputs are not written twice.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredEntry {
    pub(super) message: Message,
    /// The views of outputs that were too long at admission.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) shown: Vec<(usize, Output)>,
    /// True if it is hidden from the model, because it repeats an earlier message.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) archived: bool,
}

impl StoredEntry {
    /// Its bytes in the log, without the contents of stored outputs.
    pub(super) fn bytes(&mut self) -> Vec<u8> {
        // Taken out and put back instead of cloned: an output may be megabytes.
        let contents = empty(&mut self.message);
        let bytes = json(self);
        put_back(&mut self.message, contents);
        bytes
    }
}

pub(super) fn json<T: Serialize>(entry: &T) -> Vec<u8> {
    trimtab_model::RawJson::of(entry)
        .as_str()
        .as_bytes()
        .to_vec()
}

/// The entries of the log and the journal from these positions on.
pub(super) fn read_from(
    store: &dyn Store,
    id: &SessionId,
    (log, journal): (u64, u64),
) -> Result<(Vec<StoredEntry>, Vec<JournalEntry>), SessionError> {
    let (mut entries, mut plans) = (Vec::new(), Vec::new());
    loop {
        let from = (log + entries.len() as u64, journal + plans.len() as u64);
        let batch = store.read_streams(id, from, BATCH)?;
        let is_last = batch.log.len() < BATCH && batch.journal.len() < BATCH;
        parse(id, ("log", from.0), &batch.log, &mut entries)?;
        parse(id, ("journal", from.1), &batch.journal, &mut plans)?;
        if is_last {
            return Ok((entries, plans));
        }
    }
}

/// Parses the entries of a stream from a position on.
fn parse<T: for<'de> Deserialize<'de>>(
    id: &SessionId,
    (stream, first): (&'static str, u64),
    batch: &[Vec<u8>],
    entries: &mut Vec<T>,
) -> Result<(), SessionError> {
    for (at, bytes) in batch.iter().enumerate() {
        let entry = serde_json::from_slice(bytes).map_err(|error| SessionError::Entry {
            session: id.to_string(),
            stream,
            position: usize::try_from(first).unwrap_or(usize::MAX) + at,
            why: error.to_string(),
        })?;
        entries.push(entry);
    }
    Ok(())
}

/// Takes the contents of stored outputs out of a message.
fn empty(message: &mut Message) -> Vec<Vec<Part>> {
    let stored = message.parts.iter_mut().filter_map(|part| match part {
        Part::Output(output) if output.stored.is_some() => Some(output),
        _ => None,
    });
    stored
        .map(|output| std::mem::take(&mut output.content))
        .collect()
}

/// Puts the contents back.
fn put_back(message: &mut Message, contents: impl IntoIterator<Item = Vec<Part>>) {
    let mut contents = contents.into_iter();
    for part in &mut message.parts {
        if let Part::Output(output) = part
            && output.stored.is_some()
        {
            output.content = contents.next().unwrap_or_default();
        }
    }
}

/// Reads the contents of stored outputs back from the store.
pub(super) fn fill_in(
    store: &dyn Store,
    id: &SessionId,
    entries: &mut [StoredEntry],
) -> Result<(), SessionError> {
    let messages = entries.iter().map(|entry| &entry.message);
    let stored = messages.flat_map(Message::outputs);
    let stored: Vec<String> = stored
        .filter_map(|output| Some(output.stored.as_ref()?.id().to_owned()))
        .collect();
    let ids: Vec<&str> = stored.iter().map(String::as_str).collect();
    let mut read = Vec::with_capacity(ids.len());
    for ids in ids.chunks(OPENED) {
        for opened in store.open_all(id, ids)? {
            read.push(contents(&opened)?);
        }
    }
    let mut read = read.into_iter();
    for entry in entries {
        put_back(&mut entry.message, &mut read);
    }
    Ok(())
}
