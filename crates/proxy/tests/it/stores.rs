//! Failing stores, for tests.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::ThreadId;
use std::time::Duration;

use trimtab_model::Ref;
use trimtab_store::{
    CollectOptions, CollectReport, Error, MemoryStore, OpenOutput, OutputForm, OutputMetadata, Put,
    RefMinter, Result, SessionId, SessionInfo, SpilledFile, Store, StoreStatus, Stream, Write,
};

/// How a store goes wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wrong {
    /// Every so many calls fail: there is no room left.
    Full(u64),
    /// Every so many calls panic.
    Panics(u64),
    /// Every call takes its time.
    Slow(Duration),
    /// Nothing can be written.
    ReadOnly,
    /// Nothing that waited can be written.
    Late,
    /// When work on a session is claimed, another process has just added to its journal.
    Overtaken,
    /// Nothing.
    Never,
}

/// A store that goes wrong.
pub(crate) struct Failing {
    inner: MemoryStore,
    wrong: Wrong,
    calls: AtomicU64,
    /// The thread that made it, and how often that one called.
    maker: ThreadId,
    by_maker: AtomicU64,
    read_only: AtomicBool,
    vanished: AtomicBool,
    holds_writes: AtomicBool,
    releases: AtomicU64,
}

impl Failing {
    pub(crate) fn new(wrong: Wrong) -> Self {
        Self {
            inner: MemoryStore::new(),
            wrong,
            calls: AtomicU64::new(0),
            maker: std::thread::current().id(),
            by_maker: AtomicU64::new(0),
            read_only: AtomicBool::new(false),
            vanished: AtomicBool::new(false),
            holds_writes: AtomicBool::new(false),
            releases: AtomicU64::new(0),
        }
    }

    /// Says from now on whether it can be written.
    pub(crate) fn set_read_only(&self, read_only: bool) {
        self.read_only.store(read_only, Ordering::Relaxed);
    }

    /// Says from now on that it is gone.
    pub(crate) fn vanish(&self) {
        self.vanished.store(true, Ordering::Relaxed);
    }

    /// Lets what waited in memory wait here, or no longer.
    pub(crate) fn hold_writes(&self, hold: bool) {
        self.holds_writes.store(hold, Ordering::Relaxed);
    }

    /// How often a claim was released.
    pub(crate) fn releases(&self) -> u64 {
        self.releases.load(Ordering::Relaxed)
    }

    /// How often the thread called that made it.
    pub(crate) fn calls_by_maker(&self) -> u64 {
        self.by_maker.load(Ordering::Relaxed)
    }

    fn call(&self, writes: bool) -> Result<()> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if std::thread::current().id() == self.maker {
            self.by_maker.fetch_add(1, Ordering::Relaxed);
        }
        match self.wrong {
            Wrong::Full(every) if call.is_multiple_of(every) => Err(Error::Full),
            Wrong::Panics(every) if call.is_multiple_of(every) => panic!("on purpose"),
            Wrong::Slow(time) => {
                std::thread::sleep(time);
                Ok(())
            }
            Wrong::ReadOnly if writes => Err(Error::ReadOnly),
            _ => Ok(()),
        }
    }
}

impl Store for Failing {
    fn put(&self, session: &SessionId, put: Put<'_>) -> Result<Ref> {
        self.call(true)?;
        self.inner.put(session, put)
    }

    fn open(&self, session: &SessionId, id: &str, form: OutputForm) -> Result<OpenOutput> {
        self.call(false)?;
        self.inner.open(session, id, form)
    }

    fn metadata(&self, session: &SessionId, id: &str) -> Result<OutputMetadata> {
        self.call(false)?;
        self.inner.metadata(session, id)
    }

    fn list(&self, session: &SessionId) -> Result<Vec<OutputMetadata>> {
        self.inner.list(session)
    }

    fn delete(&self, session: &SessionId, id: &str) -> Result<()> {
        self.inner.delete(session, id)
    }

    fn delete_session(&self, session: &SessionId) -> Result<()> {
        self.inner.delete_session(session)
    }

    fn sessions(&self) -> Result<Vec<SessionInfo>> {
        self.inner.sessions()
    }

    fn touch(&self, session: &SessionId) -> Result<()> {
        self.inner.touch(session)
    }

    fn link(&self, child: &SessionId, parent: &SessionId) -> Result<()> {
        self.call(true)?;
        self.inner.link(child, parent)
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
        self.call(true)?;
        self.inner.append(session, stream, expected, entries)
    }

    fn position(&self, session: &SessionId, stream: Stream) -> Result<u64> {
        self.call(false)?;
        self.inner.position(session, stream)
    }

    fn read(
        &self,
        session: &SessionId,
        stream: Stream,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Vec<u8>>> {
        self.call(false)?;
        self.inner.read(session, stream, from, limit)
    }

    fn ref_minter(&self, session: &SessionId) -> Result<Option<RefMinter>> {
        self.call(false)?;
        self.inner.ref_minter(session)
    }

    fn write(&self, session: &SessionId, writes: &[Write]) -> Result<()> {
        self.call(true)?;
        if matches!(self.wrong, Wrong::Late) {
            return Err(Error::Full);
        }
        while self.holds_writes.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.inner.write(session, writes)
    }

    fn status(&self) -> Result<StoreStatus> {
        let read_only = self.read_only.load(Ordering::Relaxed);
        let status = self.inner.status()?;
        if self.vanished.load(Ordering::Relaxed) {
            let path = std::path::PathBuf::from("store");
            return Err(Error::Vanished { path });
        }
        Ok(StoreStatus {
            read_only,
            ..status
        })
    }

    fn claim(&self, session: &SessionId, _: &'static str, _: Duration) -> Result<bool> {
        if matches!(self.wrong, Wrong::Overtaken) {
            let at = self.inner.position(session, Stream::Journal)?;
            self.inner
                .append(session, Stream::Journal, at, &[b"another plan"])?;
        }
        Ok(true)
    }

    fn release(&self, _: &SessionId, _: &'static str) -> Result<()> {
        self.releases.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn secret(&self) -> Result<[u8; 32]> {
        self.inner.secret()
    }

    fn collect(&self, request: &CollectOptions) -> Result<CollectReport> {
        self.inner.collect(request)
    }

    fn spill(&self, session: &SessionId, id: &str) -> Result<SpilledFile> {
        self.inner.spill(session, id)
    }
}
