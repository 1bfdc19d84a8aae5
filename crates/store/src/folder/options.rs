//! Opens a store in a folder.

use std::fmt;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::Connection;

use super::FolderStore;
use super::disk::{Dir, FaultHook};
use super::schema::{self, DATABASE, DatabaseAccess, USERS, from_sqlite};
use super::space::RESERVE;
use crate::clock::{self, Clock};
use crate::{Error, Result};

/// Options for opening a [`FolderStore`].
#[derive(Clone, Default)]
pub struct FolderOptions {
    clock: Option<Clock>,
    fault: Option<FaultHook>,
}

impl FolderOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the time, in milliseconds since 1970, from `clock` instead of the system.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Calls `fault` before every file operation; an error counts as an error of the disk. For
    /// tests.
    #[doc(hidden)]
    #[must_use]
    pub fn fault(
        mut self,
        fault: impl Fn(&'static str) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.fault = Some(Arc::new(fault));
        self
    }

    /// Opens the store in the folder `path`; creates both if they do not exist.
    pub fn open(self, path: impl AsRef<Path>) -> Result<FolderStore> {
        let path = make_folder(path.as_ref())?;
        let dir = Arc::new(Dir::open(&path, self.fault)?);
        schema::ensure(&dir)?;
        // Lock before opening the database: a repair replaces its file.
        let users = use_store(&dir)?;
        let (writer, access) = open_database(&dir)?;
        if access == DatabaseAccess::Write {
            dir.make_private()?;
        }
        let database = dir.path().join(DATABASE);
        let watcher = schema::open_for(&database, access)?;
        // The status must never wait, not even for a lock of SQLite.
        watcher.busy_timeout(Duration::ZERO).map_err(from_sqlite)?;
        // The first read through a connection creates the write-ahead log and its index.
        let opened_files = schema::files(&dir)?;
        if opened_files.database.is_none() {
            return Err(Error::Vanished { path });
        }
        let store = FolderStore {
            clock: self.clock.unwrap_or_else(clock::system),
            blobs: Arc::new(dir.folder("blobs")?),
            spills: Arc::new(dir.folder("spills")?),
            dir,
            access,
            opened_files,
            users,
            writer: Mutex::new(writer),
            readers: Mutex::default(),
            watcher: Mutex::new(watcher),
        };
        if access == DatabaseAccess::Write {
            // Early, while there is room. A full disk has none later.
            store.keep_reserve();
            // A full or damaged disk must not prevent reading. Operations that need the missing
            // parts report the error.
            store.complete().unwrap_or(());
        }
        Ok(store)
    }
}

/// Marks the store as in use while the file is open. None if the disk supports no locks; then
/// nobody can repair the store there either.
fn use_store(dir: &Dir) -> Result<Option<File>> {
    let Ok(users) = dir.open_or_create(USERS) else {
        return Ok(None);
    };
    match users.try_lock_shared() {
        Ok(()) => Ok(Some(users)),
        Err(TryLockError::WouldBlock) => Err(Error::InUse {
            path: dir.path().to_owned(),
            why: "another process is repairing it",
        }),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

/// Opens the database. On a full disk this may use the space of the reserve.
fn open_database(dir: &Dir) -> Result<(Connection, DatabaseAccess)> {
    match schema::open(dir) {
        Err(Error::Full) => {
            dir.remove(RESERVE)?;
            schema::open(dir)
        }
        opened => opened,
    }
}

impl fmt::Debug for FolderOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FolderOptions").finish_non_exhaustive()
    }
}

/// Creates the folder. Links in the path above it are resolved; the folder itself must not be a
/// link.
fn make_folder(path: &Path) -> Result<PathBuf> {
    let absolute = std::path::absolute(path);
    let absolute = absolute.map_err(|error| Error::io("find", path, error))?;
    let (Some(above), Some(name)) = (absolute.parent(), absolute.file_name()) else {
        let path = path.to_owned();
        let why = "is not the path of a folder that can be created".to_owned();
        return Err(Error::NotAStore { path, why });
    };
    std::fs::create_dir_all(above).map_err(|error| Error::io("make the folder", above, error))?;
    let above = above
        .canonicalize()
        .map_err(|error| Error::io("find", above, error))?;
    let folder = above.join(name);
    let mut builder = std::fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    // A read-only disk reports another error than "already exists" for a folder that does exist.
    match builder.create(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists && !folder.is_dir() => {
            Err(Error::io("make the folder", &folder, error))
        }
        _ => Ok(folder),
    }
}
