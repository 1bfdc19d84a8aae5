//! A store that defers writes and executes them together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use trimtab_model::Ref;

use crate::put::PutInput;
use crate::write::{RefMinter, Write, WriteKind};
use crate::{
    CollectOptions, CollectReport, Error, OpenOutput, OutputForm, OutputMetadata, Put, Result,
    SessionId, SessionInfo, SpilledFile, Store, StoreStatus, Stream,
};

/// Larger outputs are not deferred, because most backends store them in separate files.
const LARGE: usize = 64 << 10;
/// The maximum number of deferred bytes.
const MOST: usize = 4 << 20;

/// A store whose outputs and entries wait in memory until [`flush`](Self::flush), which executes
/// them together with one sync, off the path of callers that must not block.
///
/// Nothing is durable before that. **A ref, and anything that depends on it, must not leave the
/// process before `flush` has returned.** Everything except a put and an append flushes first, so
/// reads always see earlier writes. A failed flush loses the deferred writes: from then on every
/// operation fails with [`Error::Lost`].
///
/// ```
/// use std::sync::Arc;
/// use trimtab_store::{MemoryStore, Put, SessionId, StagedStore, Store, Stream};
///
/// let (inner, session) = (Arc::new(MemoryStore::new()), SessionId::new("s1")?);
/// let staged = StagedStore::new(inner.clone());
/// staged.append(&session, Stream::Log, 0, &[b"entry"])?;
/// assert_eq!(inner.position(&session, Stream::Log)?, 0);
/// staged.flush()?;
/// assert_eq!(inner.position(&session, Stream::Log)?, 1);
/// # Ok::<_, trimtab_store::Error>(())
/// ```
pub struct StagedStore {
    inner: Arc<dyn Store>,
    state: Mutex<StagedWrites>,
    /// Held while writes are executed, to keep their order.
    turn: Mutex<()>,
}

#[derive(Default)]
struct StagedWrites {
    namings: HashMap<SessionId, RefMinter>,
    /// Deferred writes in order, grouped by session.
    waiting: Vec<(SessionId, Vec<Write>)>,
    bytes: usize,
    lost: bool,
}

impl StagedStore {
    /// Defers writes to `inner`.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self {
            inner,
            state: Mutex::default(),
            turn: Mutex::default(),
        }
    }

    /// Executes the deferred writes. They are durable once it returns `Ok`, if the store is
    /// durable.
    pub fn flush(&self) -> Result<()> {
        // One flush at a time, so that writes reach the store in their order.
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.usable()?;
        if state.waiting.is_empty() {
            return Ok(());
        }
        let waiting = std::mem::take(&mut state.waiting);
        state.bytes = 0;
        // Release the state during the write, so that others can stage meanwhile.
        drop(state);
        let mut under_way = FlushInProgress {
            staged: self,
            done: false,
        };
        for (session, writes) in waiting {
            self.inner.write(&session, &writes)?;
        }
        under_way.done = true;
        Ok(())
    }

    /// True if nothing is deferred or being written; never blocks.
    pub fn is_idle(&self) -> bool {
        self.turn.try_lock().is_ok() && self.state().waiting.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, StagedWrites> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn usable(&self) -> Result<MutexGuard<'_, StagedWrites>> {
        let state = self.state();
        if state.lost {
            Err(Error::Lost)
        } else {
            Ok(state)
        }
    }

    /// The ref generator of a session, if it is known.
    fn namer(&self, session: &SessionId) -> Result<Option<RefMinter>> {
        if let Some(naming) = self.state().namings.get(session) {
            return Ok(Some(naming.clone()));
        }
        // Not cached yet: ask the store once per session.
        let naming = self.inner.naming(session)?;
        if let Some(naming) = &naming {
            let mut state = self.state();
            state.namings.insert(session.clone(), naming.clone());
        }
        Ok(naming)
    }

    fn wait(&self, session: &SessionId, write: Write) -> Result<()> {
        let mut state = self.usable()?;
        state.bytes += write.weight();
        let mut sessions = state.waiting.iter_mut();
        // Few sessions wait at a time, so a linear search is enough.
        match sessions.find(|(waiting, _)| waiting == session) {
            Some((_, writes)) => writes.push(write),
            None => state.waiting.push((session.clone(), vec![write])),
        }
        let full = state.bytes > MOST;
        drop(state);
        if full { self.flush() } else { Ok(()) }
    }

    /// The inner store after a flush.
    fn settled(&self) -> Result<&dyn Store> {
        self.flush()?;
        Ok(self.inner.as_ref())
    }
}

/// Writes that left the queue. They count as lost unless they complete, even after a panic.
struct FlushInProgress<'s> {
    staged: &'s StagedStore,
    done: bool,
}

impl Drop for FlushInProgress<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.staged.state().lost = true;
        }
    }
}

impl Drop for StagedStore {
    fn drop(&mut self) {
        // Nobody can handle an error here. The log is read from the store when the session is
        // reopened.
        self.flush().unwrap_or(());
    }
}

impl Store for StagedStore {
    fn put(&self, session: &SessionId, put: Put<'_>) -> Result<Ref> {
        // Only small outputs in memory can be named without writing them.
        let naming = match &put.bytes {
            PutInput::Slice(bytes) if bytes.len() <= LARGE => self.namer(session)?,
            _ => None,
        };
        let (Some(naming), PutInput::Slice(bytes)) = (naming, &put.bytes) else {
            return self.settled()?.put(session, put);
        };
        let reference = naming.name(put.call, bytes, put.text);
        let write = Write(WriteKind::Put {
            id: reference.id().to_owned(),
            labels: put.labels(),
            bytes: bytes.to_vec(),
            text: put.text.map(str::to_owned),
        });
        self.wait(session, write)?;
        Ok(reference)
    }

    /// A conflict with `expected` is detected when the entry is written.
    fn append(
        &self,
        session: &SessionId,
        stream: Stream,
        expected: u64,
        entries: &[&[u8]],
    ) -> Result<u64> {
        let write = Write(WriteKind::Append {
            stream,
            expected,
            entries: entries.iter().map(|entry| entry.to_vec()).collect(),
        });
        self.wait(session, write)?;
        Ok(expected + entries.len() as u64)
    }

    fn write(&self, session: &SessionId, writes: &[Write]) -> Result<()> {
        self.settled()?.write(session, writes)
    }

    fn naming(&self, session: &SessionId) -> Result<Option<RefMinter>> {
        self.namer(session)
    }

    fn open(&self, session: &SessionId, id: &str, form: OutputForm) -> Result<OpenOutput> {
        self.settled()?.open(session, id, form)
    }

    fn metadata(&self, session: &SessionId, id: &str) -> Result<OutputMetadata> {
        self.settled()?.metadata(session, id)
    }

    fn list(&self, session: &SessionId) -> Result<Vec<OutputMetadata>> {
        self.settled()?.list(session)
    }

    fn delete(&self, session: &SessionId, id: &str) -> Result<()> {
        self.settled()?.delete(session, id)
    }

    fn delete_session(&self, session: &SessionId) -> Result<()> {
        let settled = self.settled()?;
        // A new session of this name would have another secret.
        self.state().namings.remove(session);
        settled.delete_session(session)
    }

    fn sessions(&self) -> Result<Vec<SessionInfo>> {
        self.settled()?.sessions()
    }

    fn touch(&self, session: &SessionId) -> Result<()> {
        self.settled()?.touch(session)
    }

    fn link(&self, child: &SessionId, parent: &SessionId) -> Result<()> {
        self.settled()?.link(child, parent)
    }

    fn parent(&self, session: &SessionId) -> Result<Option<SessionId>> {
        self.settled()?.parent(session)
    }

    fn position(&self, session: &SessionId, stream: Stream) -> Result<u64> {
        self.settled()?.position(session, stream)
    }

    fn read(
        &self,
        session: &SessionId,
        stream: Stream,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Vec<u8>>> {
        self.settled()?.read(session, stream, from, limit)
    }

    fn secret(&self) -> Result<[u8; 32]> {
        self.inner.secret()
    }

    fn status(&self) -> Result<StoreStatus> {
        self.inner.status()
    }

    fn lease(&self, sessions: &[SessionId], time: Duration) -> Result<()> {
        self.settled()?.lease(sessions, time)
    }

    fn collect(&self, request: &CollectOptions) -> Result<CollectReport> {
        let settled = self.settled()?;
        // A session that is removed and created again has other refs.
        self.state().namings.clear();
        settled.collect(request)
    }

    fn spill(&self, session: &SessionId, id: &str) -> Result<SpilledFile> {
        self.settled()?.spill(session, id)
    }
}
