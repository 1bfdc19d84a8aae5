//! Creates, opens and identifies the database.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::disk::{Dir, FileIdentity, UNFINISHED, random_name};
use super::meta;
use crate::{Error, Result};

/// The database inside the store's folder.
pub(super) const DATABASE: &str = "trimtab.db";
/// Locked by the process that creates a new store.
const LOCK: &str = "lock";
/// Holds a shared lock of every process that has the store open, or the exclusive lock of a repair.
pub(super) const USERS: &str = "users";
/// Identifies a database as a store: the letters `trim`.
const APPLICATION: i64 = 0x7472_696d;
/// The format that this version writes, and the newest it reads.
const FORMAT: i64 = 1;
/// How long to wait for another writer.
const PATIENCE: Duration = Duration::from_secs(10);

const SCHEMA: &str = "
    CREATE TABLE sessions (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE,
        secret BLOB NOT NULL,
        -- The session above, and the one at the top of the tree, if only itself.
        parent INTEGER,
        owner INTEGER,
        created INTEGER NOT NULL,
        used INTEGER NOT NULL,
        -- How many outputs it has been given, and how many entries its streams have.
        puts INTEGER NOT NULL,
        log INTEGER NOT NULL,
        journal INTEGER NOT NULL,
        seal BLOB NOT NULL
    ) STRICT;
    CREATE TABLE refs (
        session INTEGER NOT NULL,
        id TEXT NOT NULL,
        number INTEGER NOT NULL,
        blob INTEGER NOT NULL,
        text INTEGER,
        call TEXT NOT NULL,
        tool TEXT NOT NULL,
        media_type TEXT NOT NULL,
        created INTEGER NOT NULL,
        seal BLOB NOT NULL,
        PRIMARY KEY (session, id)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE blobs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        owner INTEGER NOT NULL,
        digest BLOB NOT NULL,
        byte_size INTEGER NOT NULL,
        newlines INTEGER NOT NULL,
        outline BLOB NOT NULL,
        seal BLOB NOT NULL,
        -- Either the name of a file or the image itself.
        file TEXT,
        image BLOB,
        UNIQUE (owner, digest)
    ) STRICT;
    CREATE TABLE entries (
        session INTEGER NOT NULL,
        stream INTEGER NOT NULL,
        position INTEGER NOT NULL,
        -- Size before compression; none: not compressed.
        byte_size INTEGER,
        seal BLOB NOT NULL,
        bytes BLOB NOT NULL,
        PRIMARY KEY (session, stream, position)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE spills (
        session INTEGER NOT NULL,
        id TEXT NOT NULL,
        file TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        PRIMARY KEY (session, id)
    ) STRICT, WITHOUT ROWID;
";

/// Creates the database if there is none. A process killed at any moment leaves either no database
/// or a complete one.
pub(super) fn ensure(dir: &Arc<Dir>) -> Result<()> {
    if dir.entry(DATABASE)?.is_some() {
        return Ok(());
    }
    // Refuse to create a store in a folder with other files, such as a home folder.
    for name in dir.names()? {
        let is_ours = [LOCK, USERS].contains(&name.as_str());
        if !is_ours && !name.starts_with(UNFINISHED) && !name.starts_with(DATABASE) {
            let why = format!(
                "is not empty and not a store: it holds '{name}'\nhint: give the folder of a store, or a new or empty folder"
            );
            let path = dir.path().to_owned();
            return Err(Error::NotAStore { path, why });
        }
    }
    dir.make_private()?;
    let lock = dir.open_or_create(LOCK)?;
    lock.lock()
        .map_err(|error| Error::io("lock", dir.path(), error))?;
    // Another process may have created the store while we waited for the lock.
    if dir.entry(DATABASE)?.is_some() {
        return Ok(());
    }
    remove_unfinished(dir)?;
    // The write-ahead log of a deleted database must not be applied to the new one.
    remove_log(dir)?;
    let new = NewDatabase::make(dir)?;
    meta::complete(&new.connection)?;
    new.finish(dir)
}

/// A database under construction, under another name.
pub(super) struct NewDatabase {
    pub(super) connection: Connection,
    name: String,
    pub(super) file: std::fs::File,
}

impl NewDatabase {
    /// An empty database without a secret.
    pub(super) fn make(dir: &Dir) -> Result<Self> {
        let name = format!("{UNFINISHED}{}", random_name()?);
        let file = dir.create(&name)?;
        let connection = connect(&dir.path().join(&name), DatabaseAccess::Write)?;
        fill(&connection)?;
        Ok(Self {
            connection,
            name,
            file,
        })
    }

    /// Removes it.
    pub(super) fn discard(self, dir: &Dir) -> Result<()> {
        drop(self.connection);
        dir.remove(&self.name)
    }

    /// Makes it durable under the name of the store's database.
    pub(super) fn finish(self, dir: &Dir) -> Result<()> {
        // Closing merges everything into the file, which can then be renamed as a whole.
        self.connection
            .close()
            .map_err(|(_, error)| from_sqlite(error))?;
        let synced = self.file.sync_all();
        synced.map_err(|error| Error::io("sync", dir.path(), error))?;
        dir.rename(&self.name, DATABASE)?;
        dir.sync()
    }
}

/// Removes leftovers of killed processes. Requires the lock: nobody else may be creating a store.
fn remove_unfinished(dir: &Dir) -> Result<()> {
    let names = dir.names()?;
    let unfinished = names.iter().filter(|name| name.starts_with(UNFINISHED));
    unfinished.into_iter().try_for_each(|name| dir.remove(name))
}

/// The write-ahead log of the database, and its index.
fn log_names() -> [String; 2] {
    [format!("{DATABASE}-wal"), format!("{DATABASE}-shm")]
}

/// Removes the write-ahead log of the store's database, and its index.
pub(super) fn remove_log(dir: &Dir) -> Result<()> {
    log_names().iter().try_for_each(|name| dir.remove(name))
}

/// The files of a database. They stay the same as long as somebody has it open.
#[derive(PartialEq, Eq)]
pub(super) struct DatabaseFiles {
    pub(super) database: Option<FileIdentity>,
    pub(super) log: Option<FileIdentity>,
    index: Option<FileIdentity>,
}

/// The files that the database has now.
pub(super) fn files(dir: &Dir) -> Result<DatabaseFiles> {
    let at = |name: &str| FileIdentity::at(&dir.path().join(name));
    let [log, index] = log_names();
    Ok(DatabaseFiles {
        database: at(DATABASE)?,
        log: at(&log)?,
        index: at(&index)?,
    })
}

/// Creates the tables. The database is not visible yet, so it needs no journal.
fn fill(connection: &Connection) -> Result<()> {
    let fill = format!(
        "PRAGMA page_size = 16384;
         PRAGMA auto_vacuum = INCREMENTAL;
         PRAGMA journal_mode = OFF;
         BEGIN;
         {SCHEMA}
         {}
         PRAGMA application_id = {APPLICATION};
         PRAGMA user_version = {FORMAT};
         COMMIT;",
        meta::TABLES
    );
    connection.execute_batch(&fill).map_err(from_sqlite)
}

/// The access mode of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DatabaseAccess {
    Write,
    /// For a disk that nobody can write to.
    Frozen,
}

/// Opens the database; falls back to read-only access if the disk allows no more.
pub(super) fn open(dir: &Dir) -> Result<(Connection, DatabaseAccess)> {
    let path = dir.path().join(DATABASE);
    match open_for(&path, DatabaseAccess::Write) {
        Err(Error::Database(_) | Error::ReadOnly) if is_frozen(dir)? => Ok((
            open_for(&path, DatabaseAccess::Frozen)?,
            DatabaseAccess::Frozen,
        )),
        opened => Ok((opened?, DatabaseAccess::Write)),
    }
}

/// True if nothing can be created in the folder and the write-ahead log is empty.
fn is_frozen(dir: &Dir) -> Result<bool> {
    let [log, _] = log_names();
    let log = dir.entry(&log)?;
    let writable = rustix::fs::access(dir.path(), rustix::fs::Access::WRITE_OK).is_ok();
    // With a non-empty log, an immutable connection would miss its writes.
    Ok(!writable && log.is_none_or(|log| log.byte_size == 0))
}

pub(super) fn open_for(path: &Path, access: DatabaseAccess) -> Result<Connection> {
    let connection = connect(path, access)?;
    check_kind(&connection, path)?;
    if access == DatabaseAccess::Write {
        // With a write-ahead log, only FULL makes each commit durable; macOS also needs fullfsync.
        // secure_delete overwrites removed text. cell_size_check finds damaged pages early. The
        // size limit, 64 MiB, returns the space of a log that a large write has extended. The log
        // is emptied whenever it has 256 pages (4 MiB): on a full disk, all of them may need room
        // in the database before anything can be removed, and the reserve must have that much.
        let prepare = "PRAGMA journal_mode = WAL;
             PRAGMA synchronous = FULL;
             PRAGMA fullfsync = ON;
             PRAGMA secure_delete = ON;
             PRAGMA cell_size_check = ON;
             PRAGMA journal_size_limit = 67108864;
             PRAGMA wal_autocheckpoint = 256;";
        connection.execute_batch(prepare).map_err(from_sqlite)?;
    }
    Ok(connection)
}

/// Checks that a database is a store of a known format.
fn check_kind(connection: &Connection, path: &Path) -> Result<()> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let application = pragma("application_id").map_err(from_sqlite)?;
    if application != APPLICATION {
        let why = "is a database of another program".to_owned();
        let path = path.to_owned();
        return Err(Error::NotAStore { path, why });
    }
    let found = pragma("user_version").map_err(from_sqlite)?;
    if found > FORMAT {
        let known = FORMAT;
        return Err(Error::NewerFormat { found, known });
    }
    Ok(())
}

/// Opens a possibly damaged database for reading. Nothing is written to it.
pub(super) fn open_to_read(dir: &Dir, name: &str) -> Result<Connection> {
    let path = dir.path().join(name);
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_READ_ONLY;
    let opened = Connection::open_with_flags(&path, flags).map_err(from_sqlite)?;
    opened.busy_timeout(PATIENCE).map_err(from_sqlite)?;
    let checked = check_kind(&opened, &path);
    match checked {
        // There is no write-ahead log, and none can be created.
        Err(Error::Database(_) | Error::ReadOnly) if is_frozen(dir)? => {
            open_for(&path, DatabaseAccess::Frozen)
        }
        checked => checked.map(|()| opened),
    }
}

fn connect(path: &Path, access: DatabaseAccess) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = match access {
        DatabaseAccess::Write => {
            Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_READ_WRITE)
        }
        DatabaseAccess::Frozen => {
            // `immutable` lets SQLite read without creating the files that it needs otherwise.
            let flags = flags | OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(frozen_uri(path), flags)
        }
    };
    let connection = connection.map_err(from_sqlite)?;
    connection.busy_timeout(PATIENCE).map_err(from_sqlite)?;
    // More than there are statements, so that none is prepared twice.
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// The path as a URI, with the characters escaped that have a meaning in one.
fn frozen_uri(path: &Path) -> String {
    let path = path.to_string_lossy();
    let path = path
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    format!("file:{path}?immutable=1")
}

/// Sorts errors of the database into the kinds that callers handle.
pub(super) fn from_sqlite(error: rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Error::Full,
        // The index of the write-ahead log could not grow.
        _ if has_no_room_for_index(&error) => Error::Full,
        Some(ErrorCode::ReadOnly) => Error::ReadOnly,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            Error::damaged("the database")
        }
        _ => match error {
            // A row has an unexpected type.
            rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::FromSqlConversionFailure(..) => Error::damaged("a row"),
            error => Error::Database(Box::new(error)),
        },
    }
}

fn has_no_room_for_index(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    code == Some(rusqlite::ffi::SQLITE_IOERR_SHMSIZE)
}
