//! The one trait that every backend implements.

use std::time::Duration;

use trimtab_model::Ref;

use crate::grep::{Found, Query};
use crate::{
    Collect, Collected, Form, LineRange, Lines, Metadata, Naming, Put, Result, SessionId,
    SessionInfo, Spilled, StoreStatus, Stored, Stream, Write,
};

/// Where outputs, logs and journals live.
///
/// Outputs are named by a session and the id of a ref. A session may redeem its own refs and
/// those of the sessions above it ([`link`](Self::link)); every other id, well formed or not,
/// is answered by the same [`NotFound`](crate::Error::NotFound).
///
/// What a method has acknowledged is durable, in backends that outlive their process.
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
    /// Stores an output. The ref exists only after its bytes are durable. The same session,
    /// call and bytes give the same ref; equal bytes are kept once per tree of sessions.
    fn put(&self, session: &SessionId, put: Put<'_>) -> Result<Ref>;

    /// Opens an output for reading.
    fn open(&self, session: &SessionId, id: &str, form: Form) -> Result<Stored>;

    /// What is known of an output.
    fn metadata(&self, session: &SessionId, id: &str) -> Result<Metadata>;

    /// The session's own outputs, oldest first.
    fn list(&self, session: &SessionId) -> Result<Vec<Metadata>>;

    /// Removes one of the session's own outputs.
    fn delete(&self, session: &SessionId, id: &str) -> Result<()>;

    /// Removes a session: its outputs, its log and its journal. Sessions below it stay.
    fn delete_session(&self, session: &SessionId) -> Result<()>;

    /// All sessions, by name.
    fn sessions(&self) -> Result<Vec<SessionInfo>>;

    /// Says that the session is in use, as every write does.
    fn touch(&self, session: &SessionId) -> Result<()>;

    /// Lets `child` redeem the refs of `parent`, as a sub-agent of it. A session has one parent
    /// for good. Whether the child may is for the caller to know.
    fn link(&self, child: &SessionId, parent: &SessionId) -> Result<()>;

    /// The session above, if there is one.
    fn parent(&self, session: &SessionId) -> Result<Option<SessionId>>;

    /// Appends entries to a log or journal, all or none, if it is at position `expected`;
    /// gives the new position. Positions count entries from 0.
    fn append(
        &self,
        session: &SessionId,
        stream: Stream,
        expected: u64,
        entries: &[&[u8]],
    ) -> Result<u64>;

    /// The position at which the next entry goes.
    fn position(&self, session: &SessionId, stream: Stream) -> Result<u64>;

    /// At most `limit` entries from position `from`.
    fn read(
        &self,
        session: &SessionId,
        stream: Stream,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Vec<u8>>>;

    /// The secret of the store: 32 random bytes that are made with it and live as long as its
    /// data. Collection never takes it. Another store has another one.
    fn secret(&self) -> Result<[u8; 32]>;

    /// What may have changed since the store was opened. Fails if it is no longer there.
    /// Quick: it waits for no disk and no writer.
    fn status(&self) -> Result<StoreStatus> {
        Ok(StoreStatus::default())
    }

    /// Keeps collection away from these sessions for `time`, because a process has them in
    /// memory. A later lease replaces an earlier one. Sessions that are not there are skipped.
    fn lease(&self, sessions: &[SessionId], time: Duration) -> Result<()> {
        let _ = (sessions, time);
        Ok(())
    }

    /// Removes what the request says, or only reports it.
    fn collect(&self, request: &Collect) -> Result<Collected>;

    /// Writes an output to a plain file inside the store's own folder. The same output gives
    /// the same path.
    fn spill(&self, session: &SessionId, id: &str) -> Result<Spilled>;

    /// What makes the refs of a session, for who names outputs before they are written. None
    /// if the session is not there yet, or where only a put can tell.
    fn naming(&self, session: &SessionId) -> Result<Option<Naming>> {
        let _ = session;
        Ok(None)
    }

    /// Carries out writes to one session in their order: all or none in backends that can.
    fn write(&self, session: &SessionId, writes: &[Write]) -> Result<()> {
        let mut writes = writes.iter();
        writes.try_for_each(|write| write.carry_out(self, session))
    }

    /// All bytes of an output, as they came.
    fn get(&self, session: &SessionId, id: &str) -> Result<Vec<u8>> {
        self.open(session, id, Form::Whole)?.bytes()
    }

    /// Lines of an output's text.
    fn lines(&self, session: &SessionId, id: &str, range: LineRange) -> Result<Lines> {
        self.open(session, id, Form::Text)?.lines(range)
    }

    /// Searches one output, or all of the session's own, oldest first.
    fn grep(&self, session: &SessionId, id: Option<&str>, query: &Query<'_>) -> Result<Found> {
        let mut search = query.start()?;
        if let Some(id) = id {
            search.output(&self.open(session, id, Form::Text)?)?;
            return Ok(search.finish());
        }
        for metadata in self.list(session)? {
            let id = metadata.reference.id();
            let opened = self.open(session, id, Form::Text);
            match opened.and_then(|output| search.output(&output)) {
                // It was removed since it was listed.
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
