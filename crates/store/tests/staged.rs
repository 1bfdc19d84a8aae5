//! Staged writes: invisible before the flush, complete after it.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use trimtab_store::{Error, FolderStore, MemoryStore, Put, SessionId, StagedStore, Store, Stream};

fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

#[test]
fn staged_writes_wait_for_flush() {
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (s, staged) = (session("s"), StagedStore::new(Arc::clone(&inner)));
    staged.append(&s, Stream::Log, 0, &[b"one"]).unwrap();
    staged.flush().unwrap();
    let stored = staged.put(&s, Put::new("c", "a\nb").tool("read")).unwrap();
    staged.append(&s, Stream::Log, 1, &[b"two"]).unwrap();
    assert!(!staged.is_idle());
    assert!(inner.get(&s, stored.id()).unwrap_err().is_not_found());
    assert_eq!(inner.position(&s, Stream::Log).unwrap(), 1);
    staged.flush().unwrap();
    assert!(staged.is_idle());
    assert_eq!(inner.get(&s, stored.id()).unwrap(), b"a\nb");
    let metadata = inner.metadata(&s, stored.id()).unwrap();
    assert_eq!(
        (metadata.reference, metadata.labels.tool.as_str()),
        (stored, "read")
    );
    assert_eq!(inner.read(&s, Stream::Log, 0, 9).unwrap(), [b"one", b"two"]);
}

#[test]
fn reads_see_staged_writes() {
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (s, staged) = (session("s"), StagedStore::new(inner));
    staged.append(&s, Stream::Journal, 0, &[b"plan"]).unwrap();
    assert_eq!(staged.position(&s, Stream::Journal).unwrap(), 1);
    let stored = staged.put(&s, Put::new("c", "text")).unwrap();
    assert_eq!(staged.get(&s, stored.id()).unwrap(), b"text");
}

#[test]
fn staged_fork_waits_for_flush_and_shares_outputs_before() {
    let folder = tempfile::tempdir().unwrap();
    let inner: Arc<dyn Store> = Arc::new(FolderStore::open(folder.path().join("s")).unwrap());
    let (origin, fork) = (session("origin"), session("fork"));
    let entries: &[&[u8]] = &[b"one", b"two", b"three"];
    inner.append(&origin, Stream::Log, 0, entries).unwrap();
    inner.append(&origin, Stream::Journal, 0, entries).unwrap();
    let staged = StagedStore::new(Arc::clone(&inner));
    staged.fork(&origin, &fork, (0, 0), (1, 1)).unwrap();
    staged.fork(&origin, &fork, (1, 1), (2, 3)).unwrap();
    assert!(!staged.is_idle());
    assert_eq!(inner.parent(&fork).unwrap(), None);
    // An output belongs to the tree of the origin from the first one on.
    let stored = staged.put(&fork, Put::new("c", "text")).unwrap();
    assert_eq!(inner.parent(&fork).unwrap(), Some(origin));
    staged.append(&fork, Stream::Log, 2, &[b"own"]).unwrap();
    assert_eq!(inner.position(&fork, Stream::Log).unwrap(), 0);
    staged.flush().unwrap();
    assert!(staged.is_idle());
    let log = inner.read(&fork, Stream::Log, 0, 9).unwrap();
    assert_eq!(log, [&b"one"[..], b"two", b"own"]);
    assert_eq!(inner.read(&fork, Stream::Journal, 0, 9).unwrap(), entries);
    assert_eq!(inner.get(&fork, stored.id()).unwrap(), b"text");
}

#[test]
fn staged_fork_without_its_origin_is_lost() {
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (origin, fork) = (session("origin"), session("fork"));
    inner.append(&origin, Stream::Log, 0, &[b"one"]).unwrap();
    let staged = StagedStore::new(Arc::clone(&inner));
    staged.fork(&origin, &fork, (0, 0), (1, 0)).unwrap();
    inner.delete_session(&origin).unwrap();
    assert!(matches!(staged.flush(), Err(Error::Conflict { .. })));
    let next = staged.append(&fork, Stream::Log, 1, &[b"two"]);
    assert!(matches!(next, Err(Error::Lost)));
}

#[test]
fn dropping_a_staged_store_flushes_it() {
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let s = session("s");
    let staged = StagedStore::new(Arc::clone(&inner));
    staged.append(&s, Stream::Log, 0, &[b"one"]).unwrap();
    drop(staged);
    assert_eq!(inner.position(&s, Stream::Log).unwrap(), 1);
}

#[test]
fn failed_flush_is_rolled_back_and_permanent() {
    let folder = tempfile::tempdir().unwrap();
    let inner: Arc<dyn Store> = Arc::new(FolderStore::open(folder.path().join("s")).unwrap());
    let (s, staged) = (session("s"), StagedStore::new(Arc::clone(&inner)));
    staged.append(&s, Stream::Log, 0, &[b"one"]).unwrap();
    staged.flush().unwrap();
    let stored = staged.put(&s, Put::new("c", "text")).unwrap();
    // Another writer was faster.
    staged.append(&s, Stream::Log, 1, &[b"two"]).unwrap();
    inner.append(&s, Stream::Log, 1, &[b"other"]).unwrap();
    assert!(matches!(staged.flush(), Err(Error::Conflict { .. })));
    assert!(inner.get(&s, stored.id()).unwrap_err().is_not_found());
    assert_eq!(inner.position(&s, Stream::Log).unwrap(), 2);
    let again = staged.append(&s, Stream::Log, 2, &[b"three"]);
    assert!(matches!(again, Err(Error::Lost)));
    assert!(matches!(
        staged.put(&s, Put::new("d", "x")),
        Err(Error::Lost)
    ));
    assert!(matches!(staged.flush(), Err(Error::Lost)));
}

#[test]
fn recreated_session_never_yields_a_wrong_ref() {
    let folder = tempfile::tempdir().unwrap();
    let inner: Arc<dyn Store> = Arc::new(FolderStore::open(folder.path().join("s")).unwrap());
    let (s, staged) = (session("s"), StagedStore::new(Arc::clone(&inner)));
    let first = staged.put(&s, Put::new("c", "text")).unwrap();
    staged.put(&s, Put::new("d", "more")).unwrap();
    staged.flush().unwrap();
    inner.delete_session(&s).unwrap();
    let stale = staged.put(&s, Put::new("c", "text")).unwrap();
    assert_eq!(stale, first);
    // Its secret is another one now, and so is the id of that ref.
    assert!(staged.flush().is_err());
    assert!(inner.get(&s, stale.id()).unwrap_err().is_not_found());
}

/// A store whose writes panic when told to.
struct Panics(MemoryStore, AtomicBool);

#[test]
fn panic_during_flush_loses_staged_writes_with_an_error() {
    let inner = Arc::new(Panics(MemoryStore::new(), AtomicBool::new(true)));
    let (s, staged) = (session("s"), StagedStore::new(inner.clone()));
    staged.append(&s, Stream::Log, 0, &[b"one"]).unwrap();
    let flushed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| staged.flush()));
    assert!(flushed.is_err());
    inner.1.store(false, Ordering::Relaxed);
    assert!(matches!(staged.flush(), Err(Error::Lost)));
    assert_eq!(inner.0.position(&s, Stream::Log).unwrap(), 0);
}

impl Store for Panics {
    fn append(
        &self,
        session: &SessionId,
        stream: Stream,
        expected: u64,
        entries: &[&[u8]],
    ) -> trimtab_store::Result<u64> {
        assert!(!self.1.load(Ordering::Relaxed), "told to");
        self.0.append(session, stream, expected, entries)
    }

    fn put(&self, session: &SessionId, put: Put<'_>) -> trimtab_store::Result<trimtab_model::Ref> {
        self.0.put(session, put)
    }

    fn open(
        &self,
        session: &SessionId,
        id: &str,
        form: trimtab_store::OutputForm,
    ) -> trimtab_store::Result<trimtab_store::OpenOutput> {
        self.0.open(session, id, form)
    }

    fn metadata(
        &self,
        session: &SessionId,
        id: &str,
    ) -> trimtab_store::Result<trimtab_store::OutputMetadata> {
        self.0.metadata(session, id)
    }

    fn list(
        &self,
        session: &SessionId,
    ) -> trimtab_store::Result<Vec<trimtab_store::OutputMetadata>> {
        self.0.list(session)
    }

    fn delete(&self, session: &SessionId, id: &str) -> trimtab_store::Result<()> {
        self.0.delete(session, id)
    }

    fn delete_session(&self, session: &SessionId) -> trimtab_store::Result<()> {
        self.0.delete_session(session)
    }

    fn sessions(&self) -> trimtab_store::Result<Vec<trimtab_store::SessionInfo>> {
        self.0.sessions()
    }

    fn touch(&self, session: &SessionId) -> trimtab_store::Result<()> {
        self.0.touch(session)
    }

    fn link(&self, child: &SessionId, parent: &SessionId) -> trimtab_store::Result<()> {
        self.0.link(child, parent)
    }

    fn parent(&self, session: &SessionId) -> trimtab_store::Result<Option<SessionId>> {
        self.0.parent(session)
    }

    fn position(&self, session: &SessionId, stream: Stream) -> trimtab_store::Result<u64> {
        self.0.position(session, stream)
    }

    fn read(
        &self,
        session: &SessionId,
        stream: Stream,
        from: u64,
        limit: usize,
    ) -> trimtab_store::Result<Vec<Vec<u8>>> {
        self.0.read(session, stream, from, limit)
    }

    fn secret(&self) -> trimtab_store::Result<[u8; 32]> {
        self.0.secret()
    }

    fn collect(
        &self,
        request: &trimtab_store::CollectOptions,
    ) -> trimtab_store::Result<trimtab_store::CollectReport> {
        self.0.collect(request)
    }

    fn spill(
        &self,
        session: &SessionId,
        id: &str,
    ) -> trimtab_store::Result<trimtab_store::SpilledFile> {
        self.0.spill(session, id)
    }
}

/// One thing to do.
#[derive(Clone, Debug)]
enum Step {
    Put(u8, String, Option<String>),
    Append(bool, String),
    Flush,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let text = || "[a-c\n]{0,12}";
    let step = prop_oneof![
        4 => (0..4u8, text(), prop::option::of(text())).prop_map(|(c, b, t)| Step::Put(c, b, t)),
        4 => (any::<bool>(), text()).prop_map(|(log, entry)| Step::Append(log, entry)),
        1 => Just(Step::Flush),
    ];
    prop::collection::vec(step, 0..24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// What is written in the end is what would have been written at once.
    #[test]
    fn staging_does_not_change_results(steps in steps()) {
        let folder = tempfile::tempdir().unwrap();
        let inner: Arc<dyn Store> = Arc::new(FolderStore::open(folder.path().join("s")).unwrap());
        let staged = StagedStore::new(Arc::clone(&inner));
        let (s, mut positions, mut stored) = (session("s"), [0, 0], Vec::new());
        let mut streams: [Vec<Vec<u8>>; 2] = Default::default();
        for step in steps {
            match step {
                Step::Put(call, bytes, text) => {
                    let call = call.to_string();
                    let mut put = Put::new(&call, &bytes);
                    if let Some(text) = &text {
                        put = put.text(text);
                    }
                    let reference = staged.put(&s, put).unwrap();
                    stored.push((reference, bytes));
                }
                Step::Append(log, entry) => {
                    let (at, stream) = if log { (0, Stream::Log) } else { (1, Stream::Journal) };
                    let next = staged.append(&s, stream, positions[at], &[entry.as_bytes()]);
                    positions[at] = next.unwrap();
                    streams[at].push(entry.into_bytes());
                }
                Step::Flush => staged.flush().unwrap(),
            }
        }
        staged.flush().unwrap();
        for (reference, bytes) in stored {
            prop_assert_eq!(&inner.get(&s, reference.id()).unwrap(), bytes.as_bytes());
        }
        prop_assert_eq!(&inner.read(&s, Stream::Log, 0, 99).unwrap(), &streams[0]);
        prop_assert_eq!(&inner.read(&s, Stream::Journal, 0, 99).unwrap(), &streams[1]);
    }
}
