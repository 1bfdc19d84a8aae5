//! Errors of a store.

use std::io;
use std::path::{Path, PathBuf};

/// Errors of a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The session has no such output. Unknown, malformed and foreign refs all give this error, so
    /// that refs cannot be probed.
    #[error("ref not found in this session")]
    NotFound,
    /// Stored data fails its check. Wrong bytes are never returned.
    #[error(
        "damaged: {what} fails its check\nhint: the stored bytes were changed from outside; `trimtab store check` lists what is lost"
    )]
    Damaged {
        /// The object that was read.
        what: String,
    },
    /// A log or journal has grown since the caller read its position.
    #[error(
        "the {stream} is at position {actual}, not {expected}\nhint: read the new entries first"
    )]
    Conflict {
        /// `log` or `journal`.
        stream: &'static str,
        /// The position that the caller expected.
        expected: u64,
        /// The actual position.
        actual: u64,
    },
    /// A line offset beyond the last line.
    #[error("offset {offset} is past the end: the output has {line_count} lines")]
    PastEnd {
        /// The requested offset, counted from 0.
        offset: u64,
        /// The number of lines.
        line_count: u64,
    },
    /// An invalid search pattern.
    #[error("bad pattern: {why}")]
    Pattern {
        /// What is wrong with the pattern.
        why: String,
    },
    /// An invalid session name.
    #[error("bad session name: {why}")]
    SessionName {
        /// What is wrong with the name.
        why: &'static str,
    },
    /// An impossible link between sessions.
    #[error("cannot link session '{child}' to '{parent}': {why}")]
    Link {
        /// The child.
        child: String,
        /// The parent.
        parent: String,
        /// The reason.
        why: &'static str,
    },
    /// Reading the input failed.
    #[error("could not read the output to be stored: {0}")]
    Input(#[source] io::Error),
    /// The disk is full. Nothing was stored, and nothing stored is lost.
    #[error("no room left in the store\nhint: free disk space, or collect old sessions")]
    Full,
    /// The store is read-only. Reading still works.
    #[error("the store is read-only")]
    ReadOnly,
    /// The store was deleted or replaced while it was open. Writes would be lost.
    #[error("the store at {} was deleted or replaced\nhint: put it back, or restart this process", path.display())]
    Vanished {
        /// The folder of the store.
        path: PathBuf,
    },
    /// Another process has the store open or repairs it.
    #[error("the store at {} is in use: {why}\nhint: try again when that process has ended", path.display())]
    InUse {
        /// The folder of the store.
        path: PathBuf,
        /// How it is used.
        why: &'static str,
    },
    /// Another process held the write lock for too long.
    #[error("the store is busy: another process is writing to it\nhint: try again later")]
    Busy,
    /// Staged writes failed, so writes that depend on them cannot follow.
    #[error("earlier writes to the store failed\nhint: open the session again")]
    Lost,
    /// The store has a newer format and is left untouched.
    #[error(
        "the store has format {found}, this version knows up to {known}\nhint: upgrade Trimtab"
    )]
    NewerFormat {
        /// The format of the store.
        found: i64,
        /// The newest format of this version.
        known: i64,
    },
    /// The folder is not a store, or its permissions are unsafe.
    #[error("{}: {why}", path.display())]
    NotAStore {
        /// The folder or file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// This backend does not support the operation.
    #[error("this store cannot {0}")]
    Unsupported(&'static str),
    /// An error of the operating system.
    #[error("could not {action} {}: {source}", path.display())]
    Io {
        /// The operation.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The target of a copy is another store, and not empty.
    #[error(
        "the target of the copy already has sessions of another store\nhint: copy into an empty store"
    )]
    NotEmpty,
    /// A session of the target of a copy differs from that of the source.
    #[error(
        "session '{session}' of the target is not a copy of the session in the source\nhint: copy into an empty store"
    )]
    OtherSession {
        /// The session.
        session: String,
    },
    /// A database or an object store cannot be reached.
    #[error(
        "{what} cannot be reached: {why}\nhint: check its address and its credentials, and that it runs"
    )]
    Unreachable {
        /// The server.
        what: String,
        /// The reason.
        why: String,
    },
    /// The object store belongs to another store.
    #[error(
        "the object store belongs to another store\nhint: give each store a bucket or a prefix of its own; if the other store no longer exists, delete the object `store` in this place"
    )]
    ForeignObjects,
    /// The database has no store yet.
    #[error(
        "there is no store in the database\nhint: `trimtab serve` and `trimtab output put` create one"
    )]
    NoTables,
    /// An invalid URL of a store. The text does not contain the URL, which may have a password.
    #[error(
        "bad URL of {what}: {why}\nhint: write postgres://USER@HOST/DATABASE, and s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///FOLDER for large outputs"
    )]
    BadUrl {
        /// The server.
        what: &'static str,
        /// What is wrong with the URL.
        why: String,
    },
    /// The database does not let its user do something.
    #[error(
        "the database denies access: {0}\nhint: let this user own the database, or grant it CREATE on the database"
    )]
    Denied(String),
    /// An error of the database.
    #[error("database: {0}")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The result of a store operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// True if the session has no such ref.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound)
    }

    /// True if stored bytes failed their check.
    pub fn is_damaged(&self) -> bool {
        matches!(self, Self::Damaged { .. })
    }

    pub(crate) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged { what: what.into() }
    }

    /// An error of the database or of the network below it.
    #[cfg(feature = "shared")]
    pub(crate) fn database(source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Database(Box::new(source))
    }

    /// A database that cannot be reached. The caller adds its name.
    #[cfg(feature = "shared")]
    pub(crate) fn unreachable(why: &str) -> Self {
        Self::Unreachable {
            what: "the database".to_owned(),
            why: why.to_owned(),
        }
    }

    pub(crate) fn pattern(why: impl Into<String>) -> Self {
        Self::Pattern { why: why.into() }
    }

    /// Sorts an operating system error into the kinds that callers handle.
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            _ => Self::Io {
                action,
                path: path.to_owned(),
                source,
            },
        }
    }

    /// Recovers an error that passed through an [`io::Read`].
    pub fn from_read(error: io::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(ours) => ours,
            Err(source) => Self::io("read", Path::new("the store"), source),
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::NotFound => io::ErrorKind::NotFound,
            Error::Damaged { .. } => io::ErrorKind::InvalidData,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}
