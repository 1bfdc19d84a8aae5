//! A store in a folder: embedded, and shared by several processes.
//!
//! A database holds sessions, refs, logs, journals and small outputs; larger outputs have their own
//! files. `put_output` stores outputs, `streams` appends entries, `crate::image` reads, `removal`
//! and `sweep` remove, and `check` and `repair` handle damage. `docs/store-format.md` specifies the
//! bytes on disk.

mod batch;
mod check;
mod disk;
mod first_page;
mod image;
mod meta;
mod options;
mod output;
mod put_output;
mod removal;
mod repair;
mod rows;
mod salvage;
mod schema;
mod space;
mod spill;
mod streams;
mod sweep;

use std::cmp::Reverse;
use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior};
use trimtab_model::Ref;

use crate::clock::Clock;
use crate::image::{ImageBytes, StoredImage};
use crate::refs::well_formed;
use crate::session::may_link;
use crate::{
    CollectOptions, CollectReport, Error, OpenOutput, OutputForm, OutputMetadata, Put, RefMinter,
    Result, SessionId, SessionInfo, SpilledFile, Store, StoreStatus, Stream, Write,
};
pub use check::StoreCheck;
use disk::Dir;
pub use options::FolderOptions;
use output::OutputRows;
pub use repair::RepairReport;
use rows::{BlobRow, SessionRow};
use schema::{DATABASE, DatabaseAccess, from_sqlite};

/// The number of pooled read connections; more are opened if more threads read at once.
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
    access: DatabaseAccess,
    /// The opened files of the database. Other files may take their names.
    opened_files: schema::DatabaseFiles,
    /// Holds the lock that marks the store as in use.
    #[expect(dead_code, reason = "held for its lock")]
    users: Option<File>,
    writer: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
    /// A connection for the status, which never waits for other operations.
    watcher: Mutex<Connection>,
}

impl FolderStore {
    /// Opens the store in the folder `path`; creates both if they do not exist.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        FolderOptions::new().open(path)
    }

    /// True if there is a store in the folder `path`, in any state. Creates nothing.
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

    /// Reads from one consistent snapshot.
    fn reading<T>(&self, read: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = readers.pop();
        // Release the pool before reading, so that readers do not wait for each other.
        drop(readers);
        let mut connection = if let Some(connection) = kept {
            connection
        } else {
            let opened = schema::open_for(&self.dir.path().join(DATABASE), self.access)?;
            // A pooled connection keeps its file. A new one may have opened another file of that
            // name.
            self.check_present()?;
            opened
        };
        let transaction = connection.transaction().map_err(from_sqlite)?;
        let result = read(&transaction);
        drop(transaction);
        // Return the connection even after an error: a failed read does not harm it.
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if readers.len() < KEPT_READERS {
            readers.push(connection);
        }
        result
    }

    /// Writes atomically; durable once it returns `Ok`.
    fn writing<T>(&self, write: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        if self.access == DatabaseAccess::Frozen {
            return Err(Error::ReadOnly);
        }
        let mut connection = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        // Take the write lock at once. Upgrading a read transaction later could fail with a
        // conflict.
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = transaction.map_err(from_sqlite)?;
        let result = write(&transaction)?;
        transaction.commit().map_err(from_sqlite)?;
        drop(connection);
        // Writes to a file that was deleted would disappear with this process.
        self.check_present()?;
        Ok(result)
    }

    /// Fails if a file of the database was deleted or replaced since it was opened.
    fn check_present(&self) -> Result<()> {
        let files = schema::files(&self.dir)?;
        if files == self.opened_files {
            return Ok(());
        }
        // What is only in a deleted write-ahead log can still be read through our handle. Nobody
        // else has opened another log yet, or it would have the name.
        if files.database == self.opened_files.database && files.log.is_none() {
            self.checkpoint().unwrap_or(false);
        }
        let path = self.path().to_owned();
        Err(Error::Vanished { path })
    }

    /// Adds the secret and its tables where they are missing.
    fn complete(&self) -> Result<()> {
        if self.access == DatabaseAccess::Frozen || self.reading(|db| meta::is_complete(db))? {
            return Ok(());
        }
        self.writing(|db| meta::complete(db))
    }

    /// Finds an output of a session or its parents.
    fn find(db: &Connection, session: &SessionId, id: &str) -> Result<OutputRows> {
        Self::find_in(db, &rows::up(db, session)?, id)
    }

    /// Finds an output of these sessions.
    fn find_in(db: &Connection, sessions: &[SessionRow], id: &str) -> Result<OutputRows> {
        // Reject malformed ids before any lookup. The answer is the same as for unknown ids.
        if !well_formed(id) {
            return Err(Error::NotFound);
        }
        for session in sessions {
            if let Some(reference) = rows::reference(db, session.row, id)? {
                return OutputRows::load(db, session, reference);
            }
        }
        Err(Error::NotFound)
    }

    /// Opens outputs in one transaction.
    fn open_outputs(
        &self,
        session: &SessionId,
        ids: &[&str],
        form: OutputForm,
    ) -> Result<Vec<OpenOutput>> {
        let open = || {
            // Files are opened inside the transaction: once open, they stay readable even if
            // collection unlinks them.
            self.reading(|db| {
                let sessions = rows::up(db, session)?;
                let opened = ids.iter().map(|id| {
                    let output = Self::find_in(db, &sessions, id)?;
                    let (blob, row) = output.form(form);
                    let source = Arc::new(self.stored(db, blob, row)?);
                    Ok(OpenOutput::new(output.metadata, source))
                });
                opened.collect()
            })
        };
        match open() {
            // A file may have been removed or replaced since its row was read, so try again.
            Err(error) if error.is_damaged() => open(),
            opened => opened,
        }
    }

    fn stored(&self, db: &Connection, blob: i64, row: &BlobRow) -> Result<StoredImage> {
        let place = match &row.file {
            None => Box::new(rows::image(db, blob)?) as Box<dyn ImageBytes>,
            Some(name) => {
                let file = self.blobs.open_file(name)?;
                Box::new(file.ok_or_else(|| Error::damaged("the file of an output"))?)
            }
        };
        Ok(StoredImage::new(row.outline.clone(), place))
    }
}

impl Store for FolderStore {
    fn put(&self, session: &SessionId, put: Put<'_>) -> Result<Ref> {
        self.put_output(session, put)
    }

    fn open(&self, session: &SessionId, id: &str, form: OutputForm) -> Result<OpenOutput> {
        let mut opened = self.open_outputs(session, &[id], form)?;
        opened.pop().ok_or(Error::NotFound)
    }

    fn open_all(&self, session: &SessionId, ids: &[&str]) -> Result<Vec<OpenOutput>> {
        self.open_outputs(session, ids, OutputForm::Whole)
    }

    fn metadata(&self, session: &SessionId, id: &str) -> Result<OutputMetadata> {
        self.reading(|db| Ok(Self::find(db, session, id)?.metadata))
    }

    fn list(&self, session: &SessionId) -> Result<Vec<OutputMetadata>> {
        self.reading(|db| {
            let Some(session) = rows::session(db, session)? else {
                return Ok(Vec::new());
            };
            let references = rows::references(db, session.row)?;
            let outputs = references
                .into_iter()
                .map(|row| OutputRows::load(db, &session, row));
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

    fn sessions_with_ref(&self, prefix: &str, id: &str) -> Result<Vec<SessionId>> {
        // Unlike the default, this does not add up the outputs of all sessions.
        self.reading(|db| {
            let mut sessions = rows::sessions_with_prefix(db, prefix)?;
            sessions.sort_by_key(|session| Reverse(session.used));
            let names = sessions.into_iter().map(|session| session.id);
            let may_redeem = |name: &SessionId| Self::find(db, name, id).is_ok();
            Ok(names.filter(may_redeem).collect())
        })
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
                // A cycle of parents would make lookups endless.
                let ring = rows::up(db, parent)?.iter().any(|row| row.row == below.row);
                may_link(child, parent, ring, below.parent.is_some())?;
                below.parent = Some(above.row);
                // New outputs of the child belong to the owner of the tree, which shares equal
                // bytes. A session that was in another tree keeps its owner: its outputs may share
                // blobs with sessions of that tree.
                if below.owner == below.row {
                    below.owner = above.owner;
                }
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
        // Compress before the transaction, so that other writers do not wait.
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

    fn positions(&self, sessions: &[SessionId]) -> Result<(StoreStatus, Vec<(u64, u64)>)> {
        let positions = self.reading(|db| streams::positions(db, sessions))?;
        Ok((self.status()?, positions))
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

    fn ref_minter(&self, session: &SessionId) -> Result<Option<RefMinter>> {
        self.reading(|db| {
            let session = rows::session(db, session)?;
            Ok(session.map(|session| RefMinter::new(session.secret)))
        })
    }

    fn write(&self, session: &SessionId, writes: &[Write]) -> Result<()> {
        self.write_together(session, writes)
    }

    fn secret(&self) -> Result<[u8; 32]> {
        // The store may have been opened while the disk was full, without its secret.
        self.complete()?;
        let secret = self.reading(|db| meta::secret(db))?;
        // Only a store on a read-only disk may still have none.
        secret.ok_or(Error::ReadOnly)
    }

    fn restore_secret(&self, secret: &[u8; 32]) -> Result<()> {
        self.complete()?;
        self.writing(|db| {
            // An interrupted copy continues with sessions that it has copied before.
            if meta::secret(db)? == Some(*secret) {
                return Ok(());
            }
            if !rows::sessions(db)?.is_empty() {
                return Err(Error::NotEmpty);
            }
            meta::set_secret(db, secret)
        })
    }

    fn restore_session(&self, info: &SessionInfo, minter: &RefMinter) -> Result<()> {
        self.writing(|db| {
            let secret = minter.secret();
            let mut row = match rows::session(db, &info.session)? {
                Some(row) => row,
                None => rows::insert_session(db, &info.session, secret.clone(), info.used)?,
            };
            if row.secret != *secret {
                return Err(Error::OtherSession {
                    session: info.session.to_string(),
                });
            }
            (row.created, row.used) = (info.created, info.used);
            rows::save_session(db, &row)
        })
    }

    fn status(&self) -> Result<StoreStatus> {
        self.check_present()?;
        if self.access == DatabaseAccess::Frozen {
            return Ok(StoreStatus {
                removals: 0,
                read_only: true,
            });
        }
        let path = self.dir.path().join(DATABASE);
        // The disk may have become read-only since the store was opened.
        let writable = rustix::fs::access(&path, rustix::fs::Access::WRITE_OK).is_ok();
        let watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(StoreStatus {
            removals: meta::removals(&watcher)?,
            read_only: !writable,
        })
    }

    fn lease(&self, sessions: &[SessionId], time: Duration) -> Result<()> {
        let now = self.now();
        self.writing(|db| {
            for session in sessions {
                if let Some(session) = rows::session(db, session)? {
                    meta::lease(db, session.row, meta::lease_end(now, time))?;
                }
            }
            Ok(())
        })
    }

    fn collect(&self, request: &CollectOptions) -> Result<CollectReport> {
        self.sweep(request)
    }

    fn spill(&self, session: &SessionId, id: &str) -> Result<SpilledFile> {
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
