//! The state of a store in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use trimtab_model::Ref;

use crate::collect::{SnapshotSession, StoreSnapshot};
use crate::digest::Digest;
use crate::frames::{FRAME, OutputScan};
use crate::refs::SessionSecret;
use crate::{Error, FrameSource, OutputLabels, OutputMetadata, Result, SessionId, Stream};

#[derive(Default)]
pub(super) struct MemoryState {
    pub(super) sessions: BTreeMap<SessionId, MemorySession>,
    /// Stored once per owner, the root session at the time of the put.
    pub(super) blobs: BTreeMap<(SessionId, Digest), Arc<Blob>>,
    /// The number of puts, used to list outputs in order.
    pub(super) puts: u64,
    /// The removal counter.
    pub(super) removals: u64,
    /// The secret of the store, created on first use.
    pub(super) secret: Option<SessionSecret>,
    /// True if all sessions have the same known secret.
    pub(super) has_fixed_refs: bool,
}

pub(super) struct MemorySession {
    pub(super) secret: SessionSecret,
    pub(super) parent: Option<SessionId>,
    pub(super) created: u64,
    pub(super) used: u64,
    /// The end of its lease.
    pub(super) leased_until: u64,
    pub(super) outputs: BTreeMap<String, MemoryOutput>,
    pub(super) streams: BTreeMap<Stream, Vec<Vec<u8>>>,
}

pub(super) struct MemoryOutput {
    pub(super) number: u64,
    pub(super) created: u64,
    pub(super) labels: OutputLabels,
    pub(super) blob: Arc<Blob>,
    pub(super) text: Option<Arc<Blob>>,
}

pub(super) struct Blob {
    pub(super) bytes: Vec<u8>,
    pub(super) scan: OutputScan,
}

impl MemoryState {
    /// The session, created if necessary and marked as used.
    pub(super) fn session_mut(&mut self, id: &SessionId, now: u64) -> Result<&mut MemorySession> {
        if !self.sessions.contains_key(id) {
            let secret = if self.has_fixed_refs {
                SessionSecret::from_bytes([0; 32])
            } else {
                SessionSecret::random()?
            };
            let session = MemorySession {
                secret,
                parent: None,
                created: now,
                used: now,
                leased_until: 0,
                outputs: BTreeMap::new(),
                streams: BTreeMap::new(),
            };
            self.sessions.insert(id.clone(), session);
        }
        let session = self.sessions.get_mut(id).ok_or(Error::NotFound)?;
        session.used = now.max(session.used);
        Ok(session)
    }

    /// The session and its parents, from the bottom up.
    pub(super) fn ancestors<'a>(
        &'a self,
        id: &SessionId,
    ) -> impl Iterator<Item = (&'a SessionId, &'a MemorySession)> + use<'a> {
        let mut next = self.sessions.get_key_value(id);
        std::iter::from_fn(move || {
            let this = next?;
            let parent = this.1.parent.as_ref();
            next = parent.and_then(|parent| self.sessions.get_key_value(parent));
            Some(this)
        })
    }

    pub(super) fn owner(&self, id: &SessionId) -> SessionId {
        self.ancestors(id)
            .last()
            .map_or_else(|| id.clone(), |(top, _)| top.clone())
    }

    pub(super) fn find(
        &self,
        session: &SessionId,
        id: &str,
    ) -> Result<(&SessionId, &MemoryOutput)> {
        self.ancestors(session)
            .find_map(|(holder, session)| Some((holder, session.outputs.get(id)?)))
            .ok_or(Error::NotFound)
    }

    pub(super) fn blob(&mut self, owner: SessionId, bytes: Vec<u8>, scan: OutputScan) -> Arc<Blob> {
        let key = (owner, scan.digest);
        let blob = self.blobs.entry(key);
        Arc::clone(blob.or_insert_with(|| Arc::new(Blob { bytes, scan })))
    }

    /// Frees unreferenced blobs after a removal.
    pub(super) fn sweep(&mut self) {
        self.removals += 1;
        let outputs = self
            .sessions
            .values()
            .flat_map(|session| session.outputs.values());
        let held: BTreeSet<*const Blob> = outputs
            .flat_map(MemoryOutput::blobs)
            .map(Arc::as_ptr)
            .collect();
        self.blobs
            .retain(|_, blob| held.contains(&Arc::as_ptr(blob)));
    }

    pub(super) fn remove_session(&mut self, id: &SessionId) -> bool {
        for session in self.sessions.values_mut() {
            if session.parent.as_ref() == Some(id) {
                session.parent = None;
            }
        }
        self.sessions.remove(id).is_some()
    }

    pub(super) fn snapshot(&self, now: u64) -> StoreSnapshot {
        let blobs = self.blobs.values();
        let blobs = blobs.map(|blob| (address(blob), blob.bytes.len() as u64));
        let sessions = self.sessions.iter().map(|(id, session)| SnapshotSession {
            id: id.clone(),
            parent: session.parent.clone(),
            used: session.used,
            leased: session.leased_until > now,
            stream_bytes: session
                .streams
                .values()
                .flatten()
                .map(|e| e.len() as u64)
                .sum(),
            outputs: session.outputs.values().map(blob_addresses).collect(),
        });
        StoreSnapshot {
            sessions: sessions.collect(),
            blobs: blobs.collect(),
            ..StoreSnapshot::default()
        }
    }
}

fn blob_addresses(output: &MemoryOutput) -> Vec<u64> {
    output.blobs().map(address).collect()
}

/// Identifies a blob in a snapshot, which is used only while the state is locked.
fn address(blob: &Arc<Blob>) -> u64 {
    Arc::as_ptr(blob).addr() as u64
}

impl MemoryOutput {
    pub(super) fn blobs(&self) -> impl Iterator<Item = &Arc<Blob>> {
        std::iter::once(&self.blob).chain(&self.text)
    }

    pub(super) fn text(&self) -> &Arc<Blob> {
        self.text.as_ref().unwrap_or(&self.blob)
    }

    pub(super) fn metadata(&self, session: &SessionId, id: &str) -> OutputMetadata {
        let byte_size = self.blob.scan.byte_size;
        let line_count = self.text().scan.newlines + 1;
        OutputMetadata {
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

impl MemoryState {
    pub(super) fn position(&self, session: &SessionId, stream: Stream) -> u64 {
        let kept = self
            .sessions
            .get(session)
            .and_then(|s| s.streams.get(&stream));
        kept.map_or(0, |entries| entries.len() as u64)
    }
}

impl FrameSource for Blob {
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
            let after = before + u64::from(frame.newlines);
            if number < after {
                return Ok((at as u64, before));
            }
            before = after;
        }
        Err(Error::damaged("the line index"))
    }
}
