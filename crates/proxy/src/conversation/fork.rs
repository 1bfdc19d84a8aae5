//! Copies the beginning of a session into another one, for a conversation that forks. The copy
//! includes the plans that applied to that beginning, so the bytes that were sent stay the same.

use trimtab::engine::journal::JournalEntry;
use trimtab_store::{Result, SessionId, Store, Stream};

/// How many entries of a log or journal are read at a time.
const BATCH: usize = 256;
/// About how many bytes of entries are written at a time.
const WRITTEN_BYTES: usize = 4 << 20;

/// The part of a conversation that another one begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SharedBeginning {
    /// How many messages of the log.
    pub(crate) messages: usize,
    /// True if the other conversation continues with its own messages. Then plans that were made
    /// after all of these messages were sent apply to it as well.
    pub(crate) goes_on: bool,
}

impl SharedBeginning {
    /// True if a journal entry existed when a conversation of this length was sent.
    pub(crate) fn includes(self, entry: &JournalEntry) -> bool {
        let was_before = |sent: usize| sent < self.messages + usize::from(self.goes_on);
        match entry {
            // A plan counts if it was made from these messages alone, and applied when they were
            // sent.
            JournalEntry::Plan(plan) => plan.at <= self.messages && was_before(plan.since),
            JournalEntry::Judged { at, .. } => was_before(*at),
            JournalEntry::Pin { message, .. } => *message < self.messages,
            JournalEntry::Undo => true,
        }
    }

    /// The same for the bytes of an entry.
    fn includes_bytes(self, entry: &[u8]) -> bool {
        // An entry that cannot be read ends the copy: later plans may depend on it.
        serde_json::from_slice(entry).is_ok_and(|entry| self.includes(&entry))
    }
}

/// Extends session `to`, which has only the first entries of `from`, to the `beginning` of `from`,
/// with the plans for it. `has` is the number of log and journal entries that `to` has. It may read
/// the outputs of `from`.
pub(crate) fn copy(
    store: &dyn Store,
    from: &SessionId,
    beginning: SharedBeginning,
    to: &SessionId,
    has: (u64, u64),
) -> Result<()> {
    store.link(to, from)?;
    // The journal comes first. If we are killed in between, a journal without a log is an
    // unfinished branch; a log without its plans would be taken for a complete one.
    let holds = |entry: &[u8]| beginning.includes_bytes(entry);
    copy_stream(store, (from, to), (Stream::Journal, has.1), u64::MAX, holds)?;
    let messages = beginning.messages as u64;
    copy_stream(store, (from, to), (Stream::Log, has.0), messages, |_| true)
}

/// Copies entries from a position on, until there are enough or one does not apply.
fn copy_stream(
    store: &dyn Store,
    (from, to): (&SessionId, &SessionId),
    (stream, mut position): (Stream, u64),
    most: u64,
    holds: impl Fn(&[u8]) -> bool,
) -> Result<()> {
    let mut copied: Vec<Vec<u8>> = Vec::new();
    let mut bytes = 0;
    loop {
        let next = position + copied.len() as u64;
        let left = usize::try_from(most.saturating_sub(next));
        let wanted = left.map_or(BATCH, |left| left.min(BATCH));
        let before = copied.len();
        for entry in store.read(from, stream, next, wanted)? {
            if !holds(&entry) {
                break;
            }
            bytes += entry.len();
            copied.push(entry);
        }
        // Either the source is at its end, or an entry does not apply to the copy. Journals are
        // applied in order, so nothing after such an entry may be taken either.
        let is_last = copied.len() - before < BATCH;
        // Each write is synced, so there are as few as the memory allows.
        if (is_last || bytes > WRITTEN_BYTES) && !copied.is_empty() {
            let entries: Vec<&[u8]> = copied.iter().map(Vec::as_slice).collect();
            position = store.append(to, stream, position, &entries)?;
            copied.clear();
            bytes = 0;
        }
        if is_last {
            return Ok(());
        }
    }
}

/// The name of a client session's branch.
pub(crate) fn branch_name(client_session: &str, number: usize) -> String {
    if number == 0 {
        client_session.to_owned()
    } else {
        format!("{client_session}.{number}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab::engine::plan::{Plan, PlanReason};
    use trimtab_model::RawJson;
    use trimtab_store::MemoryStore;

    #[test]
    fn a_fork_has_the_beginning_and_its_plans() {
        let store = MemoryStore::new();
        let (from, to) = (SessionId::new("a").unwrap(), SessionId::new("b").unwrap());
        let log: Vec<Vec<u8>> = (0..600).map(|at: u32| at.to_le_bytes().to_vec()).collect();
        let log: Vec<&[u8]> = log.iter().map(Vec::as_slice).collect();
        store.append(&from, Stream::Log, 0, &log).unwrap();
        for (at, since) in [(10, 8), (300, 298), (400, 400), (500, 498)] {
            let plan = Plan {
                at,
                since,
                ..Plan::new(PlanReason::ByHand, Vec::new())
            };
            let entry = RawJson::of(&JournalEntry::Plan(plan));
            let position = store.position(&from, Stream::Journal).unwrap();
            let entry = entry.as_str().as_bytes();
            store
                .append(&from, Stream::Journal, position, &[entry])
                .unwrap();
        }
        let positions = || {
            let of = |stream| store.position(&to, stream).unwrap();
            (of(Stream::Log), of(Stream::Journal))
        };
        let beginning = |messages, goes_on| SharedBeginning { messages, goes_on };
        copy(&store, &from, beginning(399, false), &to, (0, 0)).unwrap();
        assert_eq!(positions(), (399, 2));
        // The plan at 400 was made after 400 messages had been sent.
        copy(&store, &from, beginning(400, false), &to, (399, 2)).unwrap();
        assert_eq!(positions(), (400, 2));
        copy(&store, &from, beginning(400, true), &to, (400, 2)).unwrap();
        assert_eq!(positions(), (400, 3));
        assert_eq!(store.parent(&to).unwrap(), Some(from));
    }
}
