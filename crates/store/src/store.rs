//! The trait that every backend implements.
//!
//! Sessions, the proxy and the command line use only this trait. `memory`, `folder` and `shared`
//! implement it, and `staged` wraps any of them to defer writes.

use std::cmp::Reverse;
use std::time::Duration;

use trimtab_model::Ref;

use crate::fork::SessionFork;
use crate::grep::{Query, SearchResults};
use crate::{
    CollectOptions, CollectReport, Error, LineRange, OpenOutput, OutputForm, OutputLines,
    OutputMetadata, Put, RefMinter, Result, SessionId, SessionInfo, SpilledFile, StoreStatus,
    Stream, StreamEntries, Write,
};

/// Stores outputs, logs and journals.
///
/// An output is identified by a session and the id of a ref. A session may redeem its own refs and
/// those of its parents ([`link`](Self::link)); every other id, well formed or not, gives the same
/// error [`NotFound`](crate::Error::NotFound).
///
/// In persistent backends, everything that a method has acknowledged is durable.
///
/// ```
/// use trimtab_store::{LineRange, MemoryStore, Put, SessionId, Store};
///
/// let store = MemoryStore::new();
/// let session = SessionId::new("s1")?;
/// let found = store.put(&session, Put::new("call_1", "one\ntwo\nthree").tool("read"))?;
/// assert_eq!(found.line_count(), Some(3));
///
/// let lines = store.lines(&session, found.id(), LineRange::new(1, 1))?;
/// assert_eq!(lines.lines[0].text(), "two");
///
/// let other = SessionId::new("s2")?;
/// assert!(store.get(&other, found.id()).unwrap_err().is_not_found());
/// # Ok::<_, trimtab_store::Error>(())
/// ```
pub trait Store: Send + Sync {
    /// Stores an output. The ref is returned once the bytes are durable. The same session, call and
    /// bytes give the same ref; equal bytes are stored once per tree of sessions.
    fn put(&self, session: &SessionId, put: Put<'_>) -> Result<Ref>;

    /// Opens an output for reading.
    fn open(&self, session: &SessionId, id: &str, form: OutputForm) -> Result<OpenOutput>;

    /// Opens several whole outputs, in the order of `ids`. A store on another machine needs only a
    /// few round trips for any number of them.
    fn open_all(&self, session: &SessionId, ids: &[&str]) -> Result<Vec<OpenOutput>> {
        let opened = ids
            .iter()
            .map(|id| self.open(session, id, OutputForm::Whole));
        opened.collect()
    }

    /// True if the session may redeem all these refs. A store on another machine answers in one
    /// round trip.
    fn holds_all(&self, session: &SessionId, ids: &[&str]) -> Result<bool> {
        for id in ids {
            match self.metadata(session, id) {
                Err(error) if error.is_not_found() => return Ok(false),
                found => drop(found?),
            }
        }
        Ok(true)
    }

    /// The metadata of an output.
    fn metadata(&self, session: &SessionId, id: &str) -> Result<OutputMetadata>;

    /// The session's own outputs, oldest first.
    fn list(&self, session: &SessionId) -> Result<Vec<OutputMetadata>>;

    /// Removes one of the session's own outputs.
    fn delete(&self, session: &SessionId, id: &str) -> Result<()>;

    /// Removes a session with its outputs, log and journal. Child sessions stay.
    fn delete_session(&self, session: &SessionId) -> Result<()>;

    /// All sessions, by name.
    fn sessions(&self) -> Result<Vec<SessionInfo>>;

    /// The sessions whose names start with `prefix` and that may redeem a ref, the most recently
    /// used first. The time that this takes must not depend on other sessions that have the ref.
    fn sessions_with_ref(&self, prefix: &str, id: &str) -> Result<Vec<SessionId>> {
        let mut sessions = self.sessions()?;
        sessions.retain(|info| info.session.as_str().starts_with(prefix));
        sessions.sort_by_key(|info| Reverse(info.used));
        let names = sessions.into_iter().map(|info| info.session);
        // Damaged outputs do not count: the caller wants a session that can return the bytes.
        let may_redeem = |name: &SessionId| self.metadata(name, id).is_ok();
        Ok(names.filter(may_redeem).collect())
    }

    /// Marks the session as used, as every write does.
    fn touch(&self, session: &SessionId) -> Result<()>;

    /// Lets `child` redeem the refs of `parent`, for example as a sub-agent. A session has at most
    /// one parent, and keeps it until the parent is removed. The caller must authorise this.
    fn link(&self, child: &SessionId, parent: &SessionId) -> Result<()>;

    /// The parent session, if there is one.
    fn parent(&self, session: &SessionId) -> Result<Option<SessionId>>;

    /// Appends entries to a log or journal atomically, if it is at position `expected`. Returns the
    /// new position. Positions count entries from 0.
    fn append(
        &self,
        session: &SessionId,
        stream: Stream,
        expected: u64,
        entries: &[&[u8]],
    ) -> Result<u64>;

    /// The position of the next entry.
    fn position(&self, session: &SessionId, stream: Stream) -> Result<u64>;

    /// At most `limit` entries from position `from`.
    fn read(
        &self,
        session: &SessionId,
        stream: Stream,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Vec<u8>>>;

    /// At most `limit` entries of the log and `limit` of the journal, from these positions on. A
    /// store on another machine answers in one round trip.
    fn read_streams(
        &self,
        session: &SessionId,
        (log, journal): (u64, u64),
        limit: usize,
    ) -> Result<StreamEntries> {
        Ok(StreamEntries {
            log: self.read(session, Stream::Log, log, limit)?,
            journal: self.read(session, Stream::Journal, journal, limit)?,
        })
    }

    /// Lets `session` begin like `origin`: copies the entries of the log and the journal of `origin`
    /// between the positions `has`, which `session` is at, and `end`. The session may redeem the
    /// refs of `origin`, as after [`link`](Self::link). Its own entries follow the copied ones.
    fn fork(
        &self,
        origin: &SessionId,
        session: &SessionId,
        has: (u64, u64),
        end: (u64, u64),
    ) -> Result<()> {
        let origin = origin.clone();
        let copied = SessionFork { origin, has, end }.begin(self, session)?;
        self.write(session, &copied)
    }

    /// The secret of the store: 32 random bytes, created with it and never collected. Every store
    /// has a different one.
    fn secret(&self) -> Result<[u8; 32]>;

    /// The current state of the store. Fails if it no longer exists. Never blocks on a disk or a
    /// writer.
    fn status(&self) -> Result<StoreStatus> {
        Ok(StoreStatus::default())
    }

    /// Protects sessions that a process has in memory from collection for `time`. A later lease
    /// replaces an earlier one. Unknown sessions are skipped.
    fn lease(&self, sessions: &[SessionId], time: Duration) -> Result<()> {
        let _ = (sessions, time);
        Ok(())
    }

    /// The state of the store, and the positions of the log and the journal of each session.
    /// Backends that are far away answer in one round trip.
    fn positions(&self, sessions: &[SessionId]) -> Result<(StoreStatus, Vec<(u64, u64)>)> {
        let position = |session: &SessionId| {
            let log = self.position(session, Stream::Log)?;
            Ok((log, self.position(session, Stream::Journal)?))
        };
        let positions = sessions.iter().map(position).collect::<Result<_>>()?;
        Ok((self.status()?, positions))
    }

    /// Claims work on a session that only one process should do, for at most `time`. False if
    /// another process has claimed it. Backends for one machine always allow it.
    fn claim(&self, session: &SessionId, purpose: &'static str, time: Duration) -> Result<bool> {
        let _ = (session, purpose, time);
        Ok(true)
    }

    /// Ends a claim of this process.
    fn release(&self, session: &SessionId, purpose: &'static str) -> Result<()> {
        let _ = (session, purpose);
        Ok(())
    }

    /// Replaces the secret of an empty store, for a copy of another store. Fails with
    /// [`NotEmpty`](crate::Error::NotEmpty) if the store has sessions and another secret.
    fn restore_secret(&self, secret: &[u8; 32]) -> Result<()> {
        let _ = secret;
        Err(Error::Unsupported("be the target of a copy"))
    }

    /// Creates a session with the refs of another store, or sets the times of an earlier copy.
    /// Fails if the session exists with other refs.
    fn restore_session(&self, info: &SessionInfo, minter: &RefMinter) -> Result<()> {
        let _ = (info, minter);
        Err(Error::Unsupported("be the target of a copy"))
    }

    /// Removes data as requested, or only reports it.
    fn collect(&self, request: &CollectOptions) -> Result<CollectReport>;

    /// Writes an output to a plain file inside the store's folder. The same output gives the same
    /// path.
    fn spill(&self, session: &SessionId, id: &str) -> Result<SpilledFile>;

    /// The ref generator of a session, for naming outputs before they are written. None if the
    /// session does not exist yet, or if only a put can generate refs.
    fn ref_minter(&self, session: &SessionId) -> Result<Option<RefMinter>> {
        let _ = session;
        Ok(None)
    }

    /// Executes writes to one session in order, atomically if the backend can.
    fn write(&self, session: &SessionId, writes: &[Write]) -> Result<()> {
        let mut writes = writes.iter();
        writes.try_for_each(|write| write.carry_out(self, session))
    }

    /// All original bytes of an output.
    fn get(&self, session: &SessionId, id: &str) -> Result<Vec<u8>> {
        self.open(session, id, OutputForm::Whole)?.bytes()
    }

    /// Lines of an output's text.
    fn lines(&self, session: &SessionId, id: &str, range: LineRange) -> Result<OutputLines> {
        self.open(session, id, OutputForm::Text)?.lines(range)
    }

    /// Searches one output, or all outputs of the session, oldest first.
    fn grep(
        &self,
        session: &SessionId,
        id: Option<&str>,
        query: &Query<'_>,
    ) -> Result<SearchResults> {
        let mut search = query.start()?;
        if let Some(id) = id {
            search.output(&self.open(session, id, OutputForm::Text)?)?;
            return Ok(search.finish());
        }
        for metadata in self.list(session)? {
            let id = metadata.reference.id();
            let opened = self.open(session, id, OutputForm::Text);
            // One damaged output must not hide the matches in all others.
            match opened.and_then(|output| search.output(&output)) {
                // The output was removed since it was listed.
                Err(error) if error.is_not_found() => {}
                Err(error) if error.is_damaged() => search.damaged(id),
                searched => searched?,
            }
            if search.is_over() {
                break;
            }
        }
        Ok(search.finish())
    }
}
