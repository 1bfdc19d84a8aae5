//! A store in memory, for tests, demonstrations and sessions that need not outlive the process.

mod state;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use trimtab_model::Ref;

use crate::clock::{self, Clock};
use crate::put::PutInput;
use crate::refs::SessionSecret;
use crate::session::may_link;
use crate::{
    CollectOptions, CollectReport, Error, FrameSource, OpenOutput, OutputForm, OutputMetadata, Put,
    RefMinter, Result, SessionId, SessionInfo, SpilledFile, Store, StoreStatus, Stream, collect,
    frames,
};
use state::{MemoryOutput, MemoryState};

/// A store in memory, without persistence and compression.
pub struct MemoryStore {
    clock: Clock,
    state: Mutex<MemoryState>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self {
            clock: clock::system(),
            state: Mutex::default(),
        }
    }

    /// An empty store with the same refs in every run, for measurements. Anybody can compute such
    /// refs, so it must not hold the sessions of different users.
    pub fn with_fixed_refs() -> Self {
        let store = Self::new();
        store.state().has_fixed_refs = true;
        store
    }

    /// An empty store that takes the time, in milliseconds since 1970, from `clock`.
    pub fn with_clock(clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self {
            clock: Arc::new(clock),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, MemoryState> {
        // Changes are made only after everything that can fail, so the state is always consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

impl Store for MemoryStore {
    fn put(&self, session: &SessionId, put: Put<'_>) -> Result<Ref> {
        let labels = put.labels();
        let text = put.text.map(|text| text.as_bytes().to_vec());
        let bytes = match put.bytes {
            PutInput::Slice(bytes) => bytes.to_vec(),
            PutInput::Reader(reader) => {
                let mut bytes = Vec::new();
                reader.read_to_end(&mut bytes).map_err(Error::Input)?;
                bytes
            }
        };
        let scan = frames::scan(&bytes);
        let now = (self.clock)();
        let mut state = self.state();
        let id = state
            .session_mut(session, now)?
            .secret
            .ref_id(&labels.call, &scan.digest);
        // With fixed refs, an output of a parent may have the same id. Only the session's own
        // output counts.
        if let Ok((holder, output)) = state.find(session, &id)
            && holder == session
        {
            return Ok(output.metadata(session, &id).reference);
        }
        let owner = state.owner(session);
        let text = text.map(|text| {
            let scan = frames::scan(&text);
            state.blob(owner.clone(), text, scan)
        });
        let whole = state.blob(owner, bytes, scan);
        state.puts += 1;
        let output = MemoryOutput {
            number: state.puts,
            created: now,
            labels,
            blob: whole,
            text,
        };
        let reference = output.metadata(session, &id).reference;
        state.session_mut(session, now)?.outputs.insert(id, output);
        Ok(reference)
    }

    fn open(&self, session: &SessionId, id: &str, form: OutputForm) -> Result<OpenOutput> {
        let state = self.state();
        let (holder, output) = state.find(session, id)?;
        let blob = match form {
            OutputForm::Whole => &output.blob,
            OutputForm::Text => output.text(),
        };
        Ok(OpenOutput::new(
            output.metadata(holder, id),
            Arc::clone(blob) as Arc<dyn FrameSource>,
        ))
    }

    fn metadata(&self, session: &SessionId, id: &str) -> Result<OutputMetadata> {
        let state = self.state();
        let (holder, output) = state.find(session, id)?;
        Ok(output.metadata(holder, id))
    }

    fn list(&self, session: &SessionId) -> Result<Vec<OutputMetadata>> {
        let state = self.state();
        let Some(held) = state.sessions.get(session) else {
            return Ok(Vec::new());
        };
        let mut outputs: Vec<_> = held.outputs.iter().collect();
        outputs.sort_by_key(|(_, output)| output.number);
        Ok(outputs
            .iter()
            .map(|(id, output)| output.metadata(session, id))
            .collect())
    }

    fn delete(&self, session: &SessionId, id: &str) -> Result<()> {
        let mut state = self.state();
        let held = state.sessions.get_mut(session).ok_or(Error::NotFound)?;
        held.outputs.remove(id).ok_or(Error::NotFound)?;
        state.sweep();
        Ok(())
    }

    fn delete_session(&self, session: &SessionId) -> Result<()> {
        let mut state = self.state();
        if !state.remove_session(session) {
            return Err(Error::NotFound);
        }
        state.sweep();
        Ok(())
    }

    fn sessions(&self) -> Result<Vec<SessionInfo>> {
        let state = self.state();
        let sessions = state.sessions.iter().map(|(id, session)| SessionInfo {
            session: id.clone(),
            parent: session.parent.clone(),
            created: session.created,
            used: session.used,
            outputs: session.outputs.len() as u64,
            byte_size: session
                .outputs
                .values()
                .map(|output| output.blob.scan.byte_size)
                .sum(),
        });
        Ok(sessions.collect())
    }

    fn touch(&self, session: &SessionId) -> Result<()> {
        let now = (self.clock)();
        self.state().session_mut(session, now).map(|_| ())
    }

    fn link(&self, child: &SessionId, parent: &SessionId) -> Result<()> {
        let now = (self.clock)();
        let mut state = self.state();
        let above = state
            .sessions
            .get(child)
            .and_then(|session| session.parent.as_ref());
        if above == Some(parent) {
            return Ok(());
        }
        let ring = state.ancestors(parent).any(|(id, _)| id == child);
        may_link(child, parent, child == parent || ring, above.is_some())?;
        state.session_mut(parent, now)?;
        state.session_mut(child, now)?.parent = Some(parent.clone());
        Ok(())
    }

    fn parent(&self, session: &SessionId) -> Result<Option<SessionId>> {
        let state = self.state();
        Ok(state
            .sessions
            .get(session)
            .and_then(|session| session.parent.clone()))
    }

    fn append(
        &self,
        session: &SessionId,
        stream: Stream,
        expected: u64,
        entries: &[&[u8]],
    ) -> Result<u64> {
        let now = (self.clock)();
        let mut state = self.state();
        let actual = state.position(session, stream);
        if actual != expected {
            let stream = stream.as_str();
            return Err(Error::Conflict {
                stream,
                expected,
                actual,
            });
        }
        let kept = state
            .session_mut(session, now)?
            .streams
            .entry(stream)
            .or_default();
        kept.extend(entries.iter().map(|entry| entry.to_vec()));
        Ok(kept.len() as u64)
    }

    fn position(&self, session: &SessionId, stream: Stream) -> Result<u64> {
        Ok(self.state().position(session, stream))
    }

    fn read(
        &self,
        session: &SessionId,
        stream: Stream,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Vec<u8>>> {
        let state = self.state();
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let kept = state
            .sessions
            .get(session)
            .and_then(|s| s.streams.get(&stream));
        let kept = kept.map_or(&[][..], Vec::as_slice);
        Ok(kept.iter().skip(from).take(limit).cloned().collect())
    }

    fn ref_minter(&self, session: &SessionId) -> Result<Option<RefMinter>> {
        let state = self.state();
        let known = state.sessions.get(session);
        Ok(known.map(|session| RefMinter::new(session.secret.clone())))
    }

    fn restore_secret(&self, secret: &[u8; 32]) -> Result<()> {
        let mut state = self.state();
        let secret = Some(SessionSecret::from_bytes(*secret));
        if state.secret != secret && !state.sessions.is_empty() {
            return Err(Error::NotEmpty);
        }
        state.secret = secret;
        Ok(())
    }

    fn restore_session(&self, info: &SessionInfo, minter: &RefMinter) -> Result<()> {
        let mut state = self.state();
        let is_new = !state.sessions.contains_key(&info.session);
        let session = state.session_mut(&info.session, info.used)?;
        if is_new {
            session.secret = minter.secret().clone();
        }
        if session.secret != *minter.secret() {
            return Err(Error::OtherSession {
                session: info.session.to_string(),
            });
        }
        (session.created, session.used) = (info.created, info.used);
        Ok(())
    }

    fn secret(&self) -> Result<[u8; 32]> {
        let mut state = self.state();
        if state.secret.is_none() {
            state.secret = Some(SessionSecret::random()?);
        }
        let secret = state.secret.as_ref().map(|secret| *secret.as_bytes());
        secret.ok_or(Error::NotFound)
    }

    fn status(&self) -> Result<StoreStatus> {
        Ok(StoreStatus {
            removals: self.state().removals,
            read_only: false,
        })
    }

    fn lease(&self, sessions: &[SessionId], time: Duration) -> Result<()> {
        let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let until = (self.clock)().saturating_add(time);
        let mut state = self.state();
        for session in sessions {
            if let Some(session) = state.sessions.get_mut(session) {
                session.leased_until = until;
            }
        }
        Ok(())
    }

    fn collect(&self, request: &CollectOptions) -> Result<CollectReport> {
        let now = (self.clock)();
        let mut state = self.state();
        let removal = collect::decide(&state.snapshot(now), request, now);
        // The removal counter must not change if nothing was removed: others would look up refs for
        // nothing.
        if !request.dry_run && !removal.sessions.is_empty() {
            for session in &removal.sessions {
                state.remove_session(session);
            }
            state.sweep();
        }
        Ok(removal.report)
    }

    fn spill(&self, session: &SessionId, id: &str) -> Result<SpilledFile> {
        self.metadata(session, id)?;
        Err(Error::Unsupported(
            "write an output to a file: it has no folder",
        ))
    }
}
