//! Copies one store into another, between any two backends.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::{
    Error, OutputForm, OutputMetadata, Put, Result, SessionId, SessionInfo, Store, Stream,
};

/// The number of entries that are copied at once.
const BATCH: usize = 256;

/// The progress of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyProgress {
    /// The number of sessions to copy.
    pub sessions: u64,
    /// The number of sessions that are complete.
    pub copied_sessions: u64,
    /// The number of outputs that were copied, without those that the target had already.
    pub copied_outputs: u64,
    /// Their original size in bytes.
    pub copied_bytes: u64,
    /// The number of entries of logs and journals that were copied.
    pub copied_entries: u64,
}

/// Copies everything in `from` to `to`, and calls `report` after each output and each session.
///
/// Refs, logs and journals stay the same, so a proxy can continue every conversation with the copy.
/// Every output is read back from the target and verified by its digest, every entry by its bytes.
/// What the target already has is not copied again, so an interrupted copy continues where it
/// stopped, and a second copy adds what is new.
///
/// ```
/// use trimtab_store::{MemoryStore, Put, SessionId, Store, copy_store};
///
/// let (from, to) = (MemoryStore::new(), MemoryStore::new());
/// let session = SessionId::new("s1")?;
/// let output = from.put(&session, Put::new("call_1", "text"))?;
/// let done = copy_store(&from, &to, &mut |_| {})?;
/// assert_eq!(done.copied_outputs, 1);
/// assert_eq!(to.get(&session, output.id())?, b"text");
/// # Ok::<_, trimtab_store::Error>(())
/// ```
pub fn copy_store(
    from: &dyn Store,
    to: &dyn Store,
    report: &mut dyn FnMut(&CopyProgress),
) -> Result<CopyProgress> {
    // First, because only an empty store accepts another secret.
    to.restore_secret(&from.secret()?)?;
    // A link creates a missing parent with a new secret, so parents must be copied before their
    // children.
    let sessions = parents_first(from.sessions()?);
    let mut copy = StoreCopy {
        from,
        to,
        report,
        progress: CopyProgress {
            sessions: sessions.len() as u64,
            ..CopyProgress::default()
        },
    };
    for info in &sessions {
        match copy.session(info) {
            // The session was removed since it was listed.
            Err(Error::NotFound) if from.ref_minter(&info.session)?.is_none() => {}
            copied => copied?,
        }
        copy.progress.copied_sessions += 1;
        (copy.report)(&copy.progress);
    }
    // Last, because every write above marks a session as used now.
    copy.restore_times(&sessions)?;
    Ok(copy.progress)
}

struct StoreCopy<'s> {
    from: &'s dyn Store,
    to: &'s dyn Store,
    report: &'s mut dyn FnMut(&CopyProgress),
    progress: CopyProgress,
}

impl StoreCopy<'_> {
    fn session(&mut self, info: &SessionInfo) -> Result<()> {
        let session = &info.session;
        let minter = self.from.ref_minter(session)?.ok_or(Error::NotFound)?;
        self.to.restore_session(info, &minter)?;
        if let Some(parent) = &info.parent {
            self.to.link(session, parent)?;
        }
        let present = self.to.list(session)?;
        // An earlier copy may have stopped before it read its last output back.
        if let Some(last) = present.last() {
            self.verify(session, last)?;
        }
        let present: BTreeSet<&str> = present.iter().map(|output| output.reference.id()).collect();
        for output in self.from.list(session)? {
            if !present.contains(output.reference.id()) {
                self.output(session, &output)?;
            }
            (self.report)(&self.progress);
        }
        for stream in Stream::ALL {
            self.entries(session, stream)?;
        }
        Ok(())
    }

    /// Restores the times of the last use, which writes and links have changed.
    fn restore_times(&self, sessions: &[SessionInfo]) -> Result<()> {
        for info in sessions {
            if let Some(minter) = self.from.ref_minter(&info.session)? {
                self.to.restore_session(info, &minter)?;
            }
        }
        Ok(())
    }

    fn output(&mut self, session: &SessionId, output: &OutputMetadata) -> Result<()> {
        let id = output.reference.id();
        let text = if output.has_text {
            Some(self.from.open(session, id, OutputForm::Text)?.bytes()?)
        } else {
            None
        };
        // It was stored as a string, so the conversion loses nothing.
        let text = text.map(|text| String::from_utf8_lossy(&text).into_owned());
        let mut bytes = self.from.open(session, id, OutputForm::Whole)?.reader();
        let labels = &output.labels;
        let mut put = Put::from_reader(&labels.call, &mut bytes)
            .tool(&labels.tool)
            .media_type(&labels.media_type);
        put.text = text.as_deref();
        let copied = self.to.put(session, put).map_err(|error| match error {
            // The input is the other store, which has its own errors.
            Error::Input(error) => Error::from_read(error),
            error => error,
        })?;
        // The id depends on the digest of the bytes, and reading verifies the stored bytes.
        if copied.id() != id {
            return Err(Error::damaged(format!("output {id}")));
        }
        self.verify(session, output)?;
        self.progress.copied_outputs += 1;
        self.progress.copied_bytes += output.byte_size;
        Ok(())
    }

    /// Reads an output back from the target, which checks it by its digest.
    fn verify(&self, session: &SessionId, output: &OutputMetadata) -> Result<()> {
        let text = output.has_text.then_some(OutputForm::Text);
        for form in std::iter::once(OutputForm::Whole).chain(text) {
            let mut stored = self.to.open(session, output.reference.id(), form)?.reader();
            io::copy(&mut stored, &mut io::sink()).map_err(Error::from_read)?;
        }
        Ok(())
    }

    fn entries(&mut self, session: &SessionId, stream: Stream) -> Result<()> {
        let mut position = self.to.position(session, stream)?;
        if position > 0 {
            // Streams only grow, so an equal last entry means that all entries before it are equal.
            let last = position - 1;
            let ours = self.to.read(session, stream, last, 1)?;
            if self.from.read(session, stream, last, 1)? != ours {
                return Err(Error::OtherSession {
                    session: session.to_string(),
                });
            }
        }
        loop {
            let entries = self.from.read(session, stream, position, BATCH)?;
            if entries.is_empty() {
                return Ok(());
            }
            let slices: Vec<&[u8]> = entries.iter().map(Vec::as_slice).collect();
            self.to.append(session, stream, position, &slices)?;
            if self.to.read(session, stream, position, BATCH)? != entries {
                return Err(Error::damaged(format!("the copy of a {}", stream.as_str())));
            }
            position += entries.len() as u64;
            self.progress.copied_entries += entries.len() as u64;
        }
    }
}

/// Sessions in an order in which every parent comes before its children.
fn parents_first(sessions: Vec<SessionInfo>) -> Vec<SessionInfo> {
    let names: BTreeSet<SessionId> = sessions.iter().map(|info| info.session.clone()).collect();
    let mut below: BTreeMap<Option<SessionId>, Vec<SessionInfo>> = BTreeMap::new();
    for info in sessions {
        let parent = info.parent.clone().filter(|parent| names.contains(parent));
        below.entry(parent).or_default().push(info);
    }
    let mut ordered = below.remove(&None).unwrap_or_default();
    let mut at = 0;
    while let Some(info) = ordered.get(at) {
        let children = below.remove(&Some(info.session.clone()));
        ordered.extend(children.unwrap_or_default());
        at += 1;
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryStore;

    #[test]
    fn copy_keeps_refs_parents_and_entries_and_continues_after_a_stop() {
        let (from, to) = (MemoryStore::new(), MemoryStore::new());
        let session = |name: &str| SessionId::new(name).unwrap();
        let (child, parent) = (session("a child"), session("parent"));
        from.link(&child, &parent).unwrap();
        let image = Put::new("c1", &[0_u8, 1, 2]).media_type("image/png");
        let output = from.put(&parent, image.text("three bytes")).unwrap();
        let entries: Vec<Vec<u8>> = (0..600_u32).map(|n| n.to_le_bytes().to_vec()).collect();
        let slices: Vec<&[u8]> = entries.iter().map(Vec::as_slice).collect();
        from.append(&child, Stream::Log, 0, &slices).unwrap();
        // A copy that stopped in the middle of the log.
        to.restore_secret(&from.secret().unwrap()).unwrap();
        let minter = from.ref_minter(&child).unwrap().unwrap();
        let info = from.sessions().unwrap();
        let info = info.iter().find(|info| info.session == child).unwrap();
        to.restore_session(info, &minter).unwrap();
        to.append(&child, Stream::Log, 0, &slices[..100]).unwrap();
        let done = copy_store(&from, &to, &mut |_| {}).unwrap();
        assert_eq!((done.copied_sessions, done.copied_outputs), (2, 1));
        assert_eq!(done.copied_entries, 500);
        assert_eq!(to.sessions().unwrap(), from.sessions().unwrap());
        assert_eq!(to.read(&child, Stream::Log, 0, 1_000).unwrap(), entries);
        assert_eq!(to.get(&child, output.id()).unwrap(), [0, 1, 2]);
        let text = to.open(&child, output.id(), OutputForm::Text).unwrap();
        assert_eq!(text.bytes().unwrap(), b"three bytes");
        let again = copy_store(&from, &to, &mut |_| {}).unwrap();
        assert_eq!((again.copied_outputs, again.copied_entries), (0, 0));
    }

    #[test]
    fn copy_into_a_store_with_other_sessions_is_refused() {
        let (from, to) = (MemoryStore::new(), MemoryStore::new());
        let session = SessionId::new("s").unwrap();
        from.put(&session, Put::new("c", "one")).unwrap();
        to.put(&session, Put::new("c", "two")).unwrap();
        let refused = copy_store(&from, &to, &mut |_| {}).unwrap_err();
        assert!(matches!(refused, Error::NotEmpty), "{refused}");
    }
}
