//! A store in a folder: no server, many processes.
//!
//! A database holds sessions, refs, logs, journals and small outputs; larger outputs have files
//! of their own. The bytes on disk are described in `docs/store-format.md`.

mod disk;
mod image;
mod outline;
mod putting;
mod rows;
mod schema;
mod spill;
mod stored;
mod streams;
mod sweep;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use trimtab_model::Ref;

use crate::clock::{self, Clock};
use crate::digest::Digest;
use crate::refs::well_formed;
use crate::session::may_link;
use crate::{
    Collect, Collected, Error, Form, Metadata, Put, Result, SessionId, SessionInfo, Spilled, Store,
    Stored, Stream,
};
use disk::{Dir, Fault};
use rows::{BlobRow, RefRow, SessionRow};
use schema::{Access, DATABASE, from_sqlite};
use stored::{Place, StoredImage};

/// Connections kept for reading; more are made when more threads read at once.
const KEPT_READERS: usize = 8;

/// How to open a [`FolderStore`].
#[derive(Clone, Default)]
pub struct FolderOptions {
    clock: Option<Clock>,
    fault: Option<Fault>,
}

impl FolderOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the time, in milliseconds since 1970, from `clock` instead of the computer.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Asks `fault` before every step on files; an error is taken for the disk's. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn fault(
        mut self,
        fault: impl Fn(&'static str) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.fault = Some(Arc::new(fault));
        self
    }

    /// Opens the store in the folder `path`; makes both if they are not there.
    pub fn open(self, path: impl AsRef<Path>) -> Result<FolderStore> {
        let path = make_folder(path.as_ref())?;
        let dir = Arc::new(Dir::open(&path, self.fault)?);
        schema::ensure(&dir)?;
        let (writer, access) = schema::open(&dir)?;
        if access == Access::Write {
            dir.make_private()?;
        }
        let store = FolderStore {
            clock: self.clock.unwrap_or_else(clock::system),
            blobs: Arc::new(dir.folder("blobs")?),
            spills: Arc::new(dir.folder("spills")?),
            dir,
            access,
            writer: Mutex::new(writer),
            readers: Mutex::default(),
        };
        if access == Access::Write {
            store.keep_reserve();
        }
        Ok(store)
    }
}

impl fmt::Debug for FolderOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FolderOptions").finish_non_exhaustive()
    }
}

/// The folder with every link on the way to it resolved, but not followed itself.
fn make_folder(path: &Path) -> Result<PathBuf> {
    let absolute = std::path::absolute(path);
    let absolute = absolute.map_err(|error| Error::io("find", path, error))?;
    let (Some(above), Some(name)) = (absolute.parent(), absolute.file_name()) else {
        let path = path.to_owned();
        let why = "cannot be a store".to_owned();
        return Err(Error::NotAStore { path, why });
    };
    std::fs::create_dir_all(above).map_err(|error| Error::io("make the folder", above, error))?;
    let above = above
        .canonicalize()
        .map_err(|error| Error::io("find", above, error))?;
    let folder = above.join(name);
    let mut builder = std::fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists && !folder.is_dir() => {
            Err(Error::io("make the folder", &folder, error))
        }
        _ => Ok(folder),
    }
}

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

/// An output with the rows that it is made of.
struct Output {
    reference: RefRow,
    whole: BlobRow,
    text: Option<(i64, BlobRow)>,
    metadata: Metadata,
}

impl Output {
    fn load(db: &Connection, session: &SessionRow, reference: RefRow) -> Result<Self> {
        let whole = rows::blob(db, reference.blob)?;
        let text = reference
            .text
            .map(|id| Ok((id, rows::blob(db, id)?)))
            .transpose()?;
        // The id is made from the digest: it proves that these are its bytes.
        let proven = session
            .secret
            .ref_id(&reference.labels.call, &whole.outline.digest);
        if proven != reference.id {
            return Err(Error::damaged("the row of a ref"));
        }
        let lines = text
            .as_ref()
            .map_or(&whole, |(_, text)| text)
            .outline
            .newlines
            + 1;
        let byte_size = whole.outline.byte_size;
        let text_size = text
            .as_ref()
            .map_or(0, |(_, text)| text.outline.image_size());
        let metadata = Metadata {
            reference: Ref::issue(reference.id.clone(), Some(byte_size), Some(lines)),
            session: session.id.clone(),
            labels: reference.labels.clone(),
            byte_size,
            stored_size: whole.outline.image_size() + text_size,
            line_count: lines,
            has_text: text.is_some(),
            created: reference.created,
        };
        Ok(Self {
            reference,
            whole,
            text,
            metadata,
        })
    }

    /// The blob that holds the bytes with `digest`, if one of the output's does.
    fn holder(&self, digest: &Digest) -> Option<i64> {
        let text = self.text.iter().map(|(id, row)| (*id, row));
        std::iter::once((self.reference.blob, &self.whole))
            .chain(text)
            .find_map(|(id, row)| (row.outline.digest == *digest).then_some(id))
    }

    fn form(&self, form: Form) -> (i64, &BlobRow) {
        match (form, &self.text) {
            (Form::Text, Some((id, row))) => (*id, row),
            _ => (self.reference.blob, &self.whole),
        }
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
