//! A store that defers writes and executes them together.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use trimtab_model::Ref;

use crate::fork::SessionFork;
use crate::put::PutInput;
use crate::write::{RefMinter, Write, WriteKind};
use crate::{
    CollectOptions, CollectReport, Error, OpenOutput, OutputForm, OutputMetadata, Put, Result,
    SessionId, SessionInfo, SpilledFile, Store, StoreStatus, Stream, StreamEntries, frames,
};

/// Larger outputs are not deferred. Most backends store them in separate files, which need a sync
/// of their own anyway.
const MOST_DEFERRED: usize = 64 << 10;
/// The maximum number of deferred bytes.
const MOST_BYTES: usize = 4 << 20;

/// A store whose outputs and entries wait in memory until [`flush`](Self::flush), which executes
/// them together with one sync, off the path of callers that must not block.
///
/// Nothing is durable before that. **A ref, and anything that depends on it, must not leave the
/// process before `flush` has returned.** Every operation that depends on earlier writes flushes
/// first, so reads always see them. A failed flush loses the deferred writes: from then on writes and
/// reads fail with [`Error::Lost`].
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
    /// The lease that a session gets with its first writes; none if zero.
    lease: Duration,
    state: Mutex<StagedWrites>,
    /// Held while writes are executed, so that they keep their order.
    flush_lock: Mutex<()>,
}

#[derive(Default)]
struct StagedWrites {
    ref_minters: HashMap<SessionId, RefMinter>,
    /// Sessions that begin like others. They are copied before anything else is written to them.
    forks: HashMap<SessionId, SessionFork>,
    /// Deferred writes in order, grouped by session.
    waiting: Vec<(SessionId, Vec<Write>)>,
    bytes: usize,
    leased: HashSet<SessionId>,
    lost: bool,
}

impl StagedWrites {
    fn is_empty(&self) -> bool {
        self.forks.is_empty() && self.waiting.is_empty()
    }
}

impl StagedStore {
    /// Defers writes to `inner`.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self::leasing(inner, Duration::ZERO)
    }

    /// The same, and leases each session for `lease` when it is first written to, so that no
    /// collection removes it while its first refs are on their way.
    pub fn leasing(inner: Arc<dyn Store>, lease: Duration) -> Self {
        Self {
            inner,
            lease,
            state: Mutex::default(),
            flush_lock: Mutex::default(),
        }
    }

    /// Executes the deferred writes. They are durable once it returns `Ok`, if the store is
    /// durable.
    pub fn flush(&self) -> Result<()> {
        // One flush at a time, so that writes reach the store in their order.
        let _guard = self
            .flush_lock
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut state = self.usable()?;
        if state.is_empty() {
            return Ok(());
        }
        let forks = std::mem::take(&mut state.forks);
        let mut waiting = std::mem::take(&mut state.waiting);
        state.bytes = 0;
        // Release the state during the write, so that others can stage meanwhile.
        drop(state);
        // From here on, an early return or a panic loses writes. The guard records that.
        let mut under_way = FlushInProgress {
            staged: self,
            done: false,
        };
        for (session, fork) in forks {
            let copied = fork.begin(self.inner.as_ref(), &session)?;
            // What follows the copied entries is written in the same transaction.
            match waiting.iter_mut().find(|(waiting, _)| *waiting == session) {
                Some((_, writes)) => drop(writes.splice(0..0, copied)),
                None => waiting.push((session, copied.into())),
            }
        }
        for (session, writes) in &waiting {
            self.inner.write(session, writes)?;
        }
        under_way.done = true;
        drop(under_way);
        self.lease_new(waiting.into_iter().map(|(session, _)| session));
        Ok(())
    }

    /// Leases the sessions that have no lease of ours. One that fails is tried again with the next
    /// writes.
    fn lease_new(&self, written: impl Iterator<Item = SessionId>) {
        if self.lease.is_zero() {
            return;
        }
        let state = self.state();
        let new: Vec<SessionId> = written.filter(|id| !state.leased.contains(id)).collect();
        drop(state);
        if !new.is_empty() && self.inner.lease(&new, self.lease).is_ok() {
            self.state().leased.extend(new);
        }
    }

    /// True if nothing is deferred or being written; never blocks.
    pub fn is_idle(&self) -> bool {
        self.flush_lock.try_lock().is_ok() && self.state().is_empty()
    }

    /// True if a session that begins like another one is not copied yet.
    pub fn has_uncopied(&self) -> bool {
        !self.state().forks.is_empty()
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
    fn session_ref_minter(&self, session: &SessionId) -> Result<Option<RefMinter>> {
        if let Some(minter) = self.state().ref_minters.get(session) {
            return Ok(Some(minter.clone()));
        }
        self.link_fork(session)?;
        // Only a hit is cached: a new session gets its secret with its first write.
        let minter = self.inner.ref_minter(session)?;
        if let Some(minter) = &minter {
            let mut state = self.state();
            state.ref_minters.insert(session.clone(), minter.clone());
        }
        Ok(minter)
    }

    fn queue_write(&self, session: &SessionId, write: Write) -> Result<()> {
        let mut state = self.usable()?;
        state.bytes += write.weight();
        let mut sessions = state.waiting.iter_mut();
        // Few sessions wait at a time, so a linear search is enough.
        match sessions.find(|(waiting, _)| waiting == session) {
            Some((_, writes)) => writes.push(write),
            None => state.waiting.push((session.clone(), vec![write])),
        }
        // The writer that fills the buffer also flushes it, so memory is bounded even if nobody
        // calls `flush`.
        let full = state.bytes > MOST_BYTES;
        drop(state);
        if full { self.flush() } else { Ok(()) }
    }

    /// Links a fork that waits to be copied. Its outputs belong to the tree of its origin, so that
    /// is done before it has any.
    fn link_fork(&self, session: &SessionId) -> Result<()> {
        let state = self.usable()?;
        let fork = state.forks.get(session);
        let origin = fork.map(|fork| fork.origin.clone());
        drop(state);
        origin.map_or(Ok(()), |origin| self.inner.link(session, &origin))
    }

    /// The inner store after a flush.
    fn flushed_store(&self) -> Result<&dyn Store> {
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
        let minter = match &put.bytes {
            PutInput::Slice(bytes) if bytes.len() <= MOST_DEFERRED => {
                self.session_ref_minter(session)?
            }
            _ => None,
        };
        let (Some(minter), PutInput::Slice(bytes)) = (minter, &put.bytes) else {
            // Deferred entries keep waiting: what a caller appends before and after this output is
            // written together, or not at all.
            self.link_fork(session)?;
            return self.inner.put(session, put);
        };
        let scan = frames::scan(bytes);
        let reference = minter.name(put.call, &scan, put.text);
        let write = Write(WriteKind::Put {
            id: reference.id().to_owned(),
            labels: put.labels(),
            bytes: bytes.to_vec(),
            scan,
            text: put.text.map(str::to_owned),
        });
        self.queue_write(session, write)?;
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
        self.queue_write(session, Write::append(stream, expected, entries))?;
        Ok(expected + entries.len() as u64)
    }

    fn write(&self, session: &SessionId, writes: &[Write]) -> Result<()> {
        self.flushed_store()?.write(session, writes)
    }

    fn ref_minter(&self, session: &SessionId) -> Result<Option<RefMinter>> {
        self.session_ref_minter(session)
    }

    fn open(&self, session: &SessionId, id: &str, form: OutputForm) -> Result<OpenOutput> {
        self.flushed_store()?.open(session, id, form)
    }

    fn open_all(&self, session: &SessionId, ids: &[&str]) -> Result<Vec<OpenOutput>> {
        self.flushed_store()?.open_all(session, ids)
    }

    fn holds_all(&self, session: &SessionId, ids: &[&str]) -> Result<bool> {
        self.flushed_store()?.holds_all(session, ids)
    }

    fn metadata(&self, session: &SessionId, id: &str) -> Result<OutputMetadata> {
        self.flushed_store()?.metadata(session, id)
    }

    fn list(&self, session: &SessionId) -> Result<Vec<OutputMetadata>> {
        self.flushed_store()?.list(session)
    }

    fn delete(&self, session: &SessionId, id: &str) -> Result<()> {
        self.flushed_store()?.delete(session, id)
    }

    fn delete_session(&self, session: &SessionId) -> Result<()> {
        let inner = self.flushed_store()?;
        // A new session of this name would have another secret.
        self.state().ref_minters.remove(session);
        inner.delete_session(session)
    }

    fn sessions(&self) -> Result<Vec<SessionInfo>> {
        self.flushed_store()?.sessions()
    }

    fn touch(&self, session: &SessionId) -> Result<()> {
        self.flushed_store()?.touch(session)
    }

    fn link(&self, child: &SessionId, parent: &SessionId) -> Result<()> {
        self.flushed_store()?.link(child, parent)
    }

    fn parent(&self, session: &SessionId) -> Result<Option<SessionId>> {
        self.flushed_store()?.parent(session)
    }

    fn position(&self, session: &SessionId, stream: Stream) -> Result<u64> {
        self.flushed_store()?.position(session, stream)
    }

    fn read(
        &self,
        session: &SessionId,
        stream: Stream,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Vec<u8>>> {
        self.flushed_store()?.read(session, stream, from, limit)
    }

    fn read_streams(
        &self,
        session: &SessionId,
        from: (u64, u64),
        limit: usize,
    ) -> Result<StreamEntries> {
        self.flushed_store()?.read_streams(session, from, limit)
    }

    /// The entries are copied when they are written, so `origin` must be in the inner store.
    fn fork(
        &self,
        origin: &SessionId,
        session: &SessionId,
        has: (u64, u64),
        end: (u64, u64),
    ) -> Result<()> {
        let mut state = self.usable()?;
        if let Some(fork) = state.forks.get_mut(session)
            && fork.origin == *origin
            && fork.end == has
        {
            fork.end = end;
            return Ok(());
        }
        let mut sessions = state
            .forks
            .keys()
            .chain(state.waiting.iter().map(|(to, _)| to));
        let is_waiting = sessions.any(|waiting| waiting == session);
        drop(state);
        // What waits for this session belongs before its new entries.
        if is_waiting {
            self.flush()?;
        }
        let origin = origin.clone();
        let fork = SessionFork { origin, has, end };
        self.usable()?.forks.insert(session.clone(), fork);
        Ok(())
    }

    fn secret(&self) -> Result<[u8; 32]> {
        self.inner.secret()
    }

    fn status(&self) -> Result<StoreStatus> {
        // The status must not block, so it does not flush.
        self.inner.status()
    }

    fn lease(&self, sessions: &[SessionId], time: Duration) -> Result<()> {
        self.flushed_store()?.lease(sessions, time)
    }

    fn positions(&self, sessions: &[SessionId]) -> Result<(StoreStatus, Vec<(u64, u64)>)> {
        self.flushed_store()?.positions(sessions)
    }

    // Claims do not depend on deferred writes, so they need no flush.
    fn claim(&self, session: &SessionId, purpose: &'static str, time: Duration) -> Result<bool> {
        self.inner.claim(session, purpose, time)
    }

    fn release(&self, session: &SessionId, purpose: &'static str) -> Result<()> {
        self.inner.release(session, purpose)
    }

    fn restore_secret(&self, secret: &[u8; 32]) -> Result<()> {
        self.flushed_store()?.restore_secret(secret)
    }

    fn restore_session(&self, info: &SessionInfo, minter: &RefMinter) -> Result<()> {
        self.flushed_store()?.restore_session(info, minter)
    }

    fn collect(&self, request: &CollectOptions) -> Result<CollectReport> {
        let inner = self.flushed_store()?;
        // A session that is removed and created again has other refs.
        self.state().ref_minters.clear();
        inner.collect(request)
    }

    fn spill(&self, session: &SessionId, id: &str) -> Result<SpilledFile> {
        self.flushed_store()?.spill(session, id)
    }
}
