//! A store whose writes wait, and are then carried out together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use trimtab_model::Ref;

use crate::put::Input;
use crate::write::{Kind, Naming, Write};
use crate::{
    Collect, Collected, Error, Form, Metadata, Put, Result, SessionId, SessionInfo, Spilled, Store,
    StoreStatus, Stored, Stream,
};

/// Larger outputs do not wait: their bytes take a file of their own in most backends.
const LARGE: usize = 64 << 10;
/// Bytes that wait at most.
const MOST: usize = 4 << 20;

/// A store whose outputs and entries wait in memory until [`flush`](Self::flush), which
/// carries them out together: one sync for all of them, off the path of who cannot wait.
///
/// Nothing that it gave is durable before that. **A ref must not leave the process, and
/// nothing that rests on one, before `flush` has returned.** Everything but a put and an
/// append flushes by itself, so what is read is always what was written. A flush that fails
/// loses what waited: from then on everything fails with [`Error::Lost`].
///
/// ```
/// use std::sync::Arc;
/// use trimtab_store::{MemoryStore, Put, SessionId, Staged, Store, Stream};
///
/// let (inner, session) = (Arc::new(MemoryStore::new()), SessionId::new("s1")?);
/// let staged = Staged::new(inner.clone());
/// staged.append(&session, Stream::Log, 0, &[b"entry"])?;
/// assert_eq!(inner.position(&session, Stream::Log)?, 0);
/// staged.flush()?;
/// assert_eq!(inner.position(&session, Stream::Log)?, 1);
/// # Ok::<_, trimtab_store::Error>(())
/// ```
pub struct Staged {
    inner: Arc<dyn Store>,
    state: Mutex<State>,
    /// Held while writes are carried out, so that they keep their order.
    turn: Mutex<()>,
}

#[derive(Default)]
struct State {
    namings: HashMap<SessionId, Naming>,
    /// Writes in their order, those of one session together.
    waiting: Vec<(SessionId, Vec<Write>)>,
    bytes: usize,
    lost: bool,
}

impl Staged {
    /// Writes to `inner`, later.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self {
            inner,
            state: Mutex::default(),
            turn: Mutex::default(),
        }
    }

    /// Carries out what waits. Durable once it gives `Ok`, where the store is.
    pub fn flush(&self) -> Result<()> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.usable()?;
        if state.waiting.is_empty() {
            return Ok(());
        }
        let waiting = std::mem::take(&mut state.waiting);
        state.bytes = 0;
        drop(state);
        let mut under_way = UnderWay {
            staged: self,
            done: false,
        };
        for (session, writes) in waiting {
            self.inner.write(&session, &writes)?;
        }
        under_way.done = true;
        Ok(())
    }

    /// True if nothing waits and nothing is being written; says so without waiting.
    pub fn is_idle(&self) -> bool {
        self.turn.try_lock().is_ok() && self.state().waiting.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn usable(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state();
        if state.lost {
            Err(Error::Lost)
        } else {
            Ok(state)
        }
    }

    /// What names the outputs of a session, if that is known.
    fn namer(&self, session: &SessionId) -> Result<Option<Naming>> {
        if let Some(naming) = self.state().namings.get(session) {
            return Ok(Some(naming.clone()));
        }
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
        match sessions.find(|(waiting, _)| waiting == session) {
            Some((_, writes)) => writes.push(write),
            None => state.waiting.push((session.clone(), vec![write])),
        }
        let full = state.bytes > MOST;
        drop(state);
        if full { self.flush() } else { Ok(()) }
    }

    /// The store with everything in it.
    fn settled(&self) -> Result<&dyn Store> {
        self.flush()?;
        Ok(self.inner.as_ref())
    }
}

/// Writes that have left the list: they are lost unless they are done, also by a panic.
struct UnderWay<'s> {
    staged: &'s Staged,
    done: bool,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.staged.state().lost = true;
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // Nobody is left to be told; the log is read from the store when the session is opened.
        self.flush().unwrap_or(());
    }
}

impl Store for Staged {
    fn put(&self, session: &SessionId, put: Put<'_>) -> Result<Ref> {
        let naming = match &put.bytes {
            Input::Slice(bytes) if bytes.len() <= LARGE => self.namer(session)?,
            _ => None,
        };
        let (Some(naming), Input::Slice(bytes)) = (naming, &put.bytes) else {
            return self.settled()?.put(session, put);
        };
        let reference = naming.name(put.call, bytes, put.text);
        let write = Write(Kind::Put {
            id: reference.id().to_owned(),
            labels: put.labels(),
            bytes: bytes.to_vec(),
            text: put.text.map(str::to_owned),
        });
        self.wait(session, write)?;
        Ok(reference)
    }

    /// Whether the stream is at `expected` shows when it is written.
    fn append(
        &self,
        session: &SessionId,
        stream: Stream,
        expected: u64,
        entries: &[&[u8]],
    ) -> Result<u64> {
        let write = Write(Kind::Append {
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

    fn naming(&self, session: &SessionId) -> Result<Option<Naming>> {
        self.namer(session)
    }

    fn open(&self, session: &SessionId, id: &str, form: Form) -> Result<Stored> {
        self.settled()?.open(session, id, form)
    }

    fn metadata(&self, session: &SessionId, id: &str) -> Result<Metadata> {
        self.settled()?.metadata(session, id)
    }

    fn list(&self, session: &SessionId) -> Result<Vec<Metadata>> {
        self.settled()?.list(session)
    }

    fn delete(&self, session: &SessionId, id: &str) -> Result<()> {
        self.settled()?.delete(session, id)
    }

    fn delete_session(&self, session: &SessionId) -> Result<()> {
        let settled = self.settled()?;
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

    fn collect(&self, request: &Collect) -> Result<Collected> {
        let settled = self.settled()?;
        // A session that is removed and comes back has other refs.
        self.state().namings.clear();
        settled.collect(request)
    }

    fn spill(&self, session: &SessionId, id: &str) -> Result<Spilled> {
        self.settled()?.spill(session, id)
    }
}
