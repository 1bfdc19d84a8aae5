//! A store in a folder: no server, many processes.
//!
//! A database holds sessions, refs, logs, journals and small outputs; larger outputs have files
//! of their own. The bytes on disk are described in `docs/store-format.md`.

mod batch;
mod disk;
mod image;
mod options;
mod outline;
mod output;
mod putting;
mod rows;
mod schema;
mod spill;
mod stored;
mod streams;
mod sweep;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use trimtab_model::Ref;

use crate::clock::Clock;
use crate::refs::well_formed;
use crate::session::may_link;
use crate::{
    Collect, Collected, Error, Form, Metadata, Naming, Put, Result, SessionId, SessionInfo,
    Spilled, Store, Stored, Stream, Write,
};
use disk::Dir;
pub use options::FolderOptions;
use output::Output;
use rows::BlobRow;
use schema::{Access, DATABASE, from_sqlite};
use stored::{Place, StoredImage};

/// Connections kept for reading; more are made when more threads read at once.
const KEPT_READERS: usize = 8;

/// A store in a folder. Several processes may use one at the same time.
///
/// ```
/// use trimtab_store::{FolderStore, Put, SessionId, Store};
///
/// # let temporary = tempfile::tempdir().unwrap();
/// # let folder = temporary.path().join("store");
/// let session = SessionId::new("s1")?;
/// let store = FolderStore::open(&folder)?;
/// let kept = store.put(&session, Put::new("call_1", "what the tool said"))?;
/// drop(store);
///
/// let store = FolderStore::open(&folder)?;
/// assert_eq!(store.get(&session, kept.id())?, b"what the tool said");
/// # Ok::<_, trimtab_store::Error>(())
/// ```
pub struct FolderStore {
    clock: Clock,
    dir: Arc<Dir>,
    blobs: Arc<Dir>,
    spills: Arc<Dir>,
    access: Access,
    writer: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
}

impl FolderStore {
    /// Opens the store in the folder `path`; makes both if they are not there.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        FolderOptions::new().open(path)
    }

    /// True if there is a store in the folder `path`, whatever its state. Makes nothing.
    pub fn is_at(path: impl AsRef<Path>) -> bool {
        path.as_ref().join(DATABASE).symlink_metadata().is_ok()
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    fn now(&self) -> u64 {
        (self.clock)()
    }

    /// Reads from one state of the store, whatever others write meanwhile.
    fn reading<T>(&self, read: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = readers.pop();
        drop(readers);
        let mut connection = match kept {
            Some(connection) => connection,
            None => schema::open_for(&self.dir.path().join(DATABASE), self.access)?,
        };
        let transaction = connection.transaction().map_err(from_sqlite)?;
        let result = read(&transaction);
        drop(transaction);
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if readers.len() < KEPT_READERS {
            readers.push(connection);
        }
        result
    }

    /// Writes all or nothing; durable once it gives `Ok`.
    fn writing<T>(&self, write: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        if self.access == Access::Frozen {
            return Err(Error::ReadOnly);
        }
        let mut connection = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = transaction.map_err(from_sqlite)?;
        let result = write(&transaction)?;
        transaction.commit().map_err(from_sqlite)?;
        Ok(result)
    }

    /// Finds an output of a session or of one above it.
    fn find(db: &Connection, session: &SessionId, id: &str) -> Result<Output> {
        if !well_formed(id) {
            return Err(Error::NotFound);
        }
        for session in rows::up(db, session)? {
            if let Some(reference) = rows::reference(db, session.row, id)? {
                return Output::load(db, &session, reference);
            }
        }
        Err(Error::NotFound)
    }

    fn stored(&self, db: &Connection, blob: i64, row: &BlobRow) -> Result<StoredImage> {
        let place = match &row.file {
            None => Place::Inline(rows::image(db, blob)?),
            Some(name) => {
                let file = self.blobs.open_file(name)?;
                Place::File(file.ok_or_else(|| Error::damaged("the file of an output"))?)
            }
        };
        Ok(StoredImage::new(row.outline.clone(), place))
    }
}

impl Store for FolderStore {
    fn put(&self, session: &SessionId, put: Put<'_>) -> Result<Ref> {
        self.put_output(session, put)
    }

    fn open(&self, session: &SessionId, id: &str, form: Form) -> Result<Stored> {
        let open = || {
            self.reading(|db| {
                let output = Self::find(db, session, id)?;
                let (blob, row) = output.form(form);
                let source = Arc::new(self.stored(db, blob, row)?);
                Ok(Stored::new(output.metadata, source))
            })
        };
        match open() {
            // Its file may have been removed or replaced since the row was read: look again.
            Err(error) if error.is_damaged() => open(),
            opened => opened,
        }
    }

    fn metadata(&self, session: &SessionId, id: &str) -> Result<Metadata> {
        self.reading(|db| Ok(Self::find(db, session, id)?.metadata))
    }

    fn list(&self, session: &SessionId) -> Result<Vec<Metadata>> {
        self.reading(|db| {
            let Some(session) = rows::session(db, session)? else {
                return Ok(Vec::new());
            };
            let references = rows::references(db, session.row)?;
            let outputs = references
                .into_iter()
                .map(|row| Output::load(db, &session, row));
            outputs.map(|output| Ok(output?.metadata)).collect()
        })
    }

    fn delete(&self, session: &SessionId, id: &str) -> Result<()> {
        self.delete_output(session, id)
    }

    fn delete_session(&self, session: &SessionId) -> Result<()> {
        self.delete_whole_session(session)
    }

    fn sessions(&self) -> Result<Vec<SessionInfo>> {
        self.reading(sweep::session_infos)
    }

    fn touch(&self, session: &SessionId) -> Result<()> {
        let now = self.now();
        self.writing(|db| rows::save_session(db, &rows::used(db, session, now)?))
    }

    fn link(&self, child: &SessionId, parent: &SessionId) -> Result<()> {
        let now = self.now();
        self.writing(|db| {
            let above = rows::used(db, parent, now)?;
            rows::save_session(db, &above)?;
            let mut below = rows::used(db, child, now)?;
            if below.parent != Some(above.row) {
                let ring = rows::up(db, parent)?.iter().any(|row| row.row == below.row);
                may_link(child, parent, ring, below.parent.is_some())?;
                below.parent = Some(above.row);
                below.owner = above.owner;
            }
            rows::save_session(db, &below)
        })
    }

    fn parent(&self, session: &SessionId) -> Result<Option<SessionId>> {
        self.reading(|db| Ok(rows::up(db, session)?.into_iter().nth(1).map(|row| row.id)))
    }

    fn append(
        &self,
        session: &SessionId,
        stream: Stream,
        expected: u64,
        entries: &[&[u8]],
    ) -> Result<u64> {
        let now = self.now();
        let packed: Vec<_> = entries.iter().map(|entry| streams::pack(entry)).collect();
        self.writing(|db| {
            let mut session = rows::used(db, session, now)?;
            streams::append(db, &mut session, (stream, expected), &packed)?;
            rows::save_session(db, &session)?;
            Ok(expected + packed.len() as u64)
        })
    }

    fn position(&self, session: &SessionId, stream: Stream) -> Result<u64> {
        self.reading(|db| streams::position(db, session, stream))
    }

    fn read(
        &self,
        session: &SessionId,
        stream: Stream,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Vec<u8>>> {
        self.reading(|db| streams::read(db, session, stream, from, limit))
    }

    fn naming(&self, session: &SessionId) -> Result<Option<Naming>> {
        self.reading(|db| {
            let session = rows::session(db, session)?;
            Ok(session.map(|session| Naming::new(session.secret)))
        })
    }

    fn write(&self, session: &SessionId, writes: &[Write]) -> Result<()> {
        self.write_together(session, writes)
    }

    fn collect(&self, request: &Collect) -> Result<Collected> {
        self.sweep(request)
    }

    fn spill(&self, session: &SessionId, id: &str) -> Result<Spilled> {
        self.spill_output(session, id)
    }
}

impl fmt::Debug for FolderStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FolderStore")
            .field("path", &self.path())
            .finish_non_exhaustive()
    }
}
