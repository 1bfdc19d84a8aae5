//! A conversation that parts from another one takes its beginning along: what was sent stays
//! as it was sent.

use trimtab::engine::journal::JournalEntry;
use trimtab_store::{Result, SessionId, Store, Stream};

/// How many entries of a log or journal are copied at a time.
const BATCH: usize = 256;

/// Begins session `to` with the first `length` messages of `from`, and with the plans that were
/// made for them. It may redeem the refs of the other.
pub(crate) fn copy(
    store: &dyn Store,
    from: &SessionId,
    length: usize,
    to: &SessionId,
) -> Result<()> {
    store.link(to, from)?;
    let holds = |entry: &[u8]| match serde_json::from_slice(entry) {
        Ok(JournalEntry::Plan(plan)) => plan.at <= length,
        Ok(_) => true,
        Err(_) => false,
    };
    // The journal first: a log without its plans would be taken for whole.
    copy_stream(store, (from, to), Stream::Journal, usize::MAX, holds)?;
    copy_stream(store, (from, to), Stream::Log, length, |_| true)
}

/// Copies entries until there are enough, or one does not hold any more.
fn copy_stream(
    store: &dyn Store,
    (from, to): (&SessionId, &SessionId),
    stream: Stream,
    most: usize,
    holds: impl Fn(&[u8]) -> bool,
) -> Result<()> {
    let mut position = 0;
    while position < most {
        let batch = store.read(from, stream, position as u64, BATCH.min(most - position))?;
        let good: Vec<&[u8]> = batch
            .iter()
            .map(Vec::as_slice)
            .take_while(|entry| holds(entry))
            .collect();
        if !good.is_empty() {
            store.append(to, stream, position as u64, &good)?;
        }
        position += good.len();
        if good.len() < BATCH {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab::engine::plan::{Plan, Reason};
    use trimtab_model::RawJson;
    use trimtab_store::MemoryStore;

    #[test]
    fn a_fork_has_the_beginning_and_its_plans() {
        let store = MemoryStore::new();
        let (from, to) = (SessionId::new("a").unwrap(), SessionId::new("b").unwrap());
        let log: Vec<Vec<u8>> = (0..600).map(|at: u32| at.to_le_bytes().to_vec()).collect();
        let log: Vec<&[u8]> = log.iter().map(Vec::as_slice).collect();
        store.append(&from, Stream::Log, 0, &log).unwrap();
        for at in [10, 300, 500] {
            let plan = Plan {
                at,
                ..Plan::new(Reason::ByHand, Vec::new())
            };
            let entry = RawJson::of(&JournalEntry::Plan(plan));
            let position = store.position(&from, Stream::Journal).unwrap();
            let entry = entry.as_str().as_bytes();
            store
                .append(&from, Stream::Journal, position, &[entry])
                .unwrap();
        }
        copy(&store, &from, 400, &to).unwrap();
        assert_eq!(store.position(&to, Stream::Log).unwrap(), 400);
        assert_eq!(store.position(&to, Stream::Journal).unwrap(), 2);
        assert_eq!(store.parent(&to).unwrap(), Some(from));
    }
}
