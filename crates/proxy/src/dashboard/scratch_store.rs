//! A store on which work leaves no trace: it reads from another one, and keeps what is written in
//! memory.

use std::sync::Arc;

use trimtab_model::Ref;
use trimtab_store::{
    CollectOptions, CollectReport, Error, MemoryStore, OpenOutput, OutputForm, OutputMetadata, Put,
    Result, SessionId, SessionInfo, SpilledFile, Store, StoreStatus, Stream,
};

/// A store for one session, on which work leaves no trace.
pub(super) struct ScratchStore {
    inner: Arc<dyn Store>,
    written: MemoryStore,
    /// How many entries the log and the journal have in the other store.
    log: u64,
    journal: u64,
}

impl ScratchStore {
    /// A scratch copy of `session`.
    pub(super) fn of(inner: Arc<dyn Store>, session: &SessionId) -> Result<Self> {
        Ok(Self {
            log: inner.position(session, Stream::Log)?,
            journal: inner.position(session, Stream::Journal)?,
            inner,
            written: MemoryStore::new(),
        })
    }

    fn entries_before(&self, stream: Stream) -> u64 {
        match stream {
            Stream::Log => self.log,
            Stream::Journal => self.journal,
        }
    }
}

impl Store for ScratchStore {
    fn put(&self, session: &SessionId, put: Put<'_>) -> Result<Ref> {
        self.written.put(session, put)
    }

    fn open(&self, session: &SessionId, id: &str, form: OutputForm) -> Result<OpenOutput> {
        match self.written.open(session, id, form) {
            Err(error) if error.is_not_found() => self.inner.open(session, id, form),
            opened => opened,
        }
    }

    fn metadata(&self, session: &SessionId, id: &str) -> Result<OutputMetadata> {
        match self.written.metadata(session, id) {
            Err(error) if error.is_not_found() => self.inner.metadata(session, id),
            found => found,
        }
    }

    fn list(&self, session: &SessionId) -> Result<Vec<OutputMetadata>> {
        self.inner.list(session)
    }

    fn delete(&self, _session: &SessionId, _id: &str) -> Result<()> {
        Err(Error::ReadOnly)
    }

    fn delete_session(&self, _session: &SessionId) -> Result<()> {
        Err(Error::ReadOnly)
    }

    fn sessions(&self) -> Result<Vec<SessionInfo>> {
        self.inner.sessions()
    }

    fn touch(&self, _session: &SessionId) -> Result<()> {
        Ok(())
    }

    fn link(&self, _child: &SessionId, _parent: &SessionId) -> Result<()> {
        Err(Error::ReadOnly)
    }

    fn parent(&self, session: &SessionId) -> Result<Option<SessionId>> {
        self.inner.parent(session)
    }

    fn append(
        &self,
        session: &SessionId,
        stream: Stream,
        expected: u64,
        entries: &[&[u8]],
    ) -> Result<u64> {
        let before = self.entries_before(stream);
        let expected = expected.saturating_sub(before);
        let position = self.written.append(session, stream, expected, entries)?;
        Ok(before + position)
    }

    fn position(&self, session: &SessionId, stream: Stream) -> Result<u64> {
        Ok(self.entries_before(stream) + self.written.position(session, stream)?)
    }

    fn read(
        &self,
        session: &SessionId,
        stream: Stream,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Vec<u8>>> {
        let before = self.entries_before(stream);
        if from >= before {
            return self.written.read(session, stream, from - before, limit);
        }
        let mut entries = self.inner.read(session, stream, from, limit)?;
        // Another process may have added some since.
        entries.truncate(usize::try_from(before - from).unwrap_or(usize::MAX));
        let left = limit.saturating_sub(entries.len());
        if left > 0 {
            entries.extend(self.written.read(session, stream, 0, left)?);
        }
        Ok(entries)
    }

    fn secret(&self) -> Result<[u8; 32]> {
        self.inner.secret()
    }

    fn status(&self) -> Result<StoreStatus> {
        self.inner.status()
    }

    fn collect(&self, _request: &CollectOptions) -> Result<CollectReport> {
        Err(Error::ReadOnly)
    }

    fn spill(&self, _session: &SessionId, _id: &str) -> Result<SpilledFile> {
        Err(Error::ReadOnly)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_store_reads_its_writes_and_leaves_the_inner_store_unchanged() {
        let inner: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let session = SessionId::new("s").unwrap();
        let old = inner.put(&session, Put::new("c1", "old")).unwrap();
        inner.append(&session, Stream::Log, 0, &[b"one"]).unwrap();
        let scratch = ScratchStore::of(Arc::clone(&inner), &session).unwrap();
        let new = scratch.put(&session, Put::new("c2", "new")).unwrap();
        let position = scratch.append(&session, Stream::Log, 1, &[b"two"]);
        assert_eq!(position.unwrap(), 2);
        let read = scratch.read(&session, Stream::Log, 0, 10).unwrap();
        assert_eq!(read, [b"one".to_vec(), b"two".to_vec()]);
        assert_eq!(scratch.get(&session, old.id()).unwrap(), b"old");
        assert_eq!(scratch.get(&session, new.id()).unwrap(), b"new");
        assert!(inner.get(&session, new.id()).unwrap_err().is_not_found());
        assert_eq!(inner.position(&session, Stream::Log).unwrap(), 1);
    }
}
