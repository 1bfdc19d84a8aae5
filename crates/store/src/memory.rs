//! A store in memory: for tests, demonstrations and sessions that need not outlive the process.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trimtab_model::Ref;

use crate::clock::{self, Clock};
use crate::collect::{self, Picture, PictureOutput, PictureSession};
use crate::digest::Digest;
use crate::frames::{FRAME, Scan};
use crate::put::Input;
use crate::refs::Secret;
use crate::session::may_link;
use crate::{
    Collect, Collected, Error, Form, Labels, Metadata, Put, Result, SessionId, SessionInfo, Source,
    Spilled, Store, Stored, Stream, frames,
};

/// A store in memory. Nothing survives the process; bytes are not compressed.
pub struct MemoryStore {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sessions: BTreeMap<SessionId, Session>,
    /// Kept once per owner: the session at the top of the tree when they came.
    blobs: BTreeMap<(SessionId, Digest), Arc<Blob>>,
    /// Counts outputs, so that they can be listed in the order in which they came.
    puts: u64,
}

struct Session {
    secret: Secret,
    parent: Option<SessionId>,
    created: u64,
    used: u64,
    outputs: BTreeMap<String, Output>,
    streams: BTreeMap<Stream, Vec<Vec<u8>>>,
}

struct Output {
    number: u64,
    created: u64,
    labels: Labels,
    whole: Arc<Blob>,
    text: Option<Arc<Blob>>,
}

struct Blob {
    bytes: Vec<u8>,
    scan: Scan,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self {
            clock: clock::system(),
            state: Mutex::default(),
        }
    }

    /// An empty store that takes the time, in milliseconds since 1970, from `clock`.
    pub fn with_clock(clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self {
            clock: Arc::new(clock),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change below is made after all that can fail: the state is whole at any time.
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

impl State {
    /// The session, made if it is new, and marked as used.
    fn used(&mut self, id: &SessionId, now: u64) -> Result<&mut Session> {
        if !self.sessions.contains_key(id) {
            let session = Session {
                secret: Secret::random()?,
                parent: None,
                created: now,
                used: now,
                outputs: BTreeMap::new(),
                streams: BTreeMap::new(),
            };
            self.sessions.insert(id.clone(), session);
        }
        let session = self.sessions.get_mut(id).ok_or(Error::NotFound)?;
        session.used = now.max(session.used);
        Ok(session)
    }

    /// The session and those above it, from the bottom up.
    fn up<'a>(
        &'a self,
        id: &SessionId,
    ) -> impl Iterator<Item = (&'a SessionId, &'a Session)> + use<'a> {
        let mut next = self.sessions.get_key_value(id);
        std::iter::from_fn(move || {
            let this = next?;
            let parent = this.1.parent.as_ref();
            next = parent.and_then(|parent| self.sessions.get_key_value(parent));
            Some(this)
        })
    }

    fn owner(&self, id: &SessionId) -> SessionId {
        self.up(id)
            .last()
            .map_or_else(|| id.clone(), |(top, _)| top.clone())
    }

    fn find(&self, session: &SessionId, id: &str) -> Result<(&SessionId, &Output)> {
        self.up(session)
            .find_map(|(holder, session)| Some((holder, session.outputs.get(id)?)))
            .ok_or(Error::NotFound)
    }

    fn blob(&mut self, owner: SessionId, bytes: Vec<u8>, scan: Scan) -> Arc<Blob> {
        let key = (owner, scan.digest);
        let blob = self.blobs.entry(key);
        Arc::clone(blob.or_insert_with(|| Arc::new(Blob { bytes, scan })))
    }

    /// Forgets bytes that no output holds any more.
    fn sweep(&mut self) {
        let outputs = self
            .sessions
            .values()
            .flat_map(|session| session.outputs.values());
        let held: BTreeSet<*const Blob> =
            outputs.flat_map(Output::blobs).map(Arc::as_ptr).collect();
        self.blobs
            .retain(|_, blob| held.contains(&Arc::as_ptr(blob)));
    }

    fn remove_session(&mut self, id: &SessionId) -> bool {
        for session in self.sessions.values_mut() {
            if session.parent.as_ref() == Some(id) {
                session.parent = None;
            }
        }
        self.sessions.remove(id).is_some()
    }

    fn picture(&self) -> Picture {
        let blobs = self.blobs.values();
        let blobs = blobs.map(|blob| (address(blob), blob.bytes.len() as u64));
        let sessions = self.sessions.iter().map(|(id, session)| PictureSession {
            id: id.clone(),
            parent: session.parent.clone(),
            used: session.used,
            stream_bytes: session
                .streams
                .values()
                .flatten()
                .map(|e| e.len() as u64)
                .sum(),
            outputs: session.outputs.iter().map(picture_of).collect(),
        });
        Picture {
            sessions: sessions.collect(),
            blobs: blobs.collect(),
        }
    }
}

fn picture_of((id, output): (&String, &Output)) -> PictureOutput {
    PictureOutput {
        id: id.clone(),
        blobs: output.blobs().map(address).collect(),
    }
}

fn address(blob: &Arc<Blob>) -> u64 {
    Arc::as_ptr(blob).addr() as u64
}

impl Output {
    fn blobs(&self) -> impl Iterator<Item = &Arc<Blob>> {
        std::iter::once(&self.whole).chain(&self.text)
    }

    fn text(&self) -> &Arc<Blob> {
        self.text.as_ref().unwrap_or(&self.whole)
    }

    fn metadata(&self, session: &SessionId, id: &str) -> Metadata {
        let byte_size = self.whole.scan.byte_size;
        let line_count = self.text().scan.newlines + 1;
        Metadata {
            reference: Ref::issue(id, Some(byte_size), Some(line_count)),
            session: session.clone(),
            labels: self.labels.clone(),
            byte_size,
            stored_size: self.blobs().map(|blob| blob.scan.byte_size).sum(),
            line_count,
            has_text: self.text.is_some(),
            created: self.created,
        }
    }
}

impl Store for MemoryStore {
    fn put(&self, session: &SessionId, put: Put<'_>) -> Result<Ref> {
        let labels = put.labels();
        let text = put.text.map(|text| text.as_bytes().to_vec());
        let bytes = match put.bytes {
            Input::Slice(bytes) => bytes.to_vec(),
            Input::Reader(reader) => {
                let mut bytes = Vec::new();
                reader.read_to_end(&mut bytes).map_err(Error::Input)?;
                bytes
            }
        };
        let scan = frames::scan(&bytes);
        let now = (self.clock)();
        let mut state = self.state();
        let id = state
            .used(session, now)?
            .secret
            .ref_id(&labels.call, &scan.digest);
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
        let output = Output {
            number: state.puts,
            created: now,
            labels,
            whole,
            text,
        };
        let reference = output.metadata(session, &id).reference;
        state.used(session, now)?.outputs.insert(id, output);
        Ok(reference)
    }

    fn open(&self, session: &SessionId, id: &str, form: Form) -> Result<Stored> {
        let state = self.state();
        let (holder, output) = state.find(session, id)?;
        let blob = match form {
            Form::Whole => &output.whole,
            Form::Text => output.text(),
        };
        Ok(Stored::new(
            output.metadata(holder, id),
            Arc::clone(blob) as Arc<dyn Source>,
        ))
    }

    fn metadata(&self, session: &SessionId, id: &str) -> Result<Metadata> {
        let state = self.state();
        let (holder, output) = state.find(session, id)?;
        Ok(output.metadata(holder, id))
    }

    fn list(&self, session: &SessionId) -> Result<Vec<Metadata>> {
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
                .map(|output| output.whole.scan.byte_size)
                .sum(),
        });
        Ok(sessions.collect())
    }

    fn touch(&self, session: &SessionId) -> Result<()> {
        let now = (self.clock)();
        self.state().used(session, now).map(|_| ())
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
        let ring = state.up(parent).any(|(id, _)| id == child);
        may_link(child, parent, child == parent || ring, above.is_some())?;
        state.used(parent, now)?;
        state.used(child, now)?.parent = Some(parent.clone());
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
        let kept = state.used(session, now)?.streams.entry(stream).or_default();
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

    fn collect(&self, request: &Collect) -> Result<Collected> {
        let now = (self.clock)();
        let mut state = self.state();
        let removal = collect::decide(&state.picture(), request, now);
        if !request.dry_run {
            for session in &removal.sessions {
                state.remove_session(session);
            }
            for (session, id) in &removal.outputs {
                if let Some(session) = state.sessions.get_mut(session) {
                    session.outputs.remove(id);
                }
            }
            state.sweep();
        }
        Ok(removal.report)
    }

    fn spill(&self, session: &SessionId, id: &str) -> Result<Spilled> {
        self.metadata(session, id)?;
        Err(Error::Unsupported(
            "write an output to a file: it has no folder",
        ))
    }
}

impl State {
    fn position(&self, session: &SessionId, stream: Stream) -> u64 {
        let kept = self
            .sessions
            .get(session)
            .and_then(|s| s.streams.get(&stream));
        kept.map_or(0, |entries| entries.len() as u64)
    }
}

impl Source for Blob {
    fn byte_size(&self) -> u64 {
        self.scan.byte_size
    }

    fn newlines(&self) -> u64 {
        self.scan.newlines
    }

    fn frame(&self, number: u64, into: &mut Vec<u8>) -> Result<()> {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        into.clear();
        into.extend_from_slice(self.bytes.chunks(FRAME).nth(number).unwrap_or_default());
        Ok(())
    }

    fn frame_of_newline(&self, number: u64) -> Result<(u64, u64)> {
        let mut before = 0;
        for (at, frame) in self.scan.frames.iter().enumerate() {
            let behind = before + u64::from(frame.newlines);
            if number < behind {
                return Ok((at as u64, before));
            }
            before = behind;
        }
        Err(Error::damaged("the line index"))
    }
}
