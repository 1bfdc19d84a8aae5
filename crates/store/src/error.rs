//! What can go wrong in a store.

use std::io;
use std::path::{Path, PathBuf};

/// What can go wrong in a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No such output in this session. Unknown, malformed and foreign refs all give this.
    #[error("ref not found in this session")]
    NotFound,
    /// What is stored fails its check. Wrong bytes are never given out.
    #[error(
        "damaged: {what} fails its check\nhint: the stored bytes changed behind our back; `trimtab store check` says what is lost"
    )]
    Damaged {
        /// What was being read.
        what: String,
    },
    /// A log or journal has moved on since the caller looked.
    #[error("the {stream} is at position {actual}, not {expected}\nhint: read what is new first")]
    Conflict {
        /// `log` or `journal`.
        stream: &'static str,
        /// Where the caller believed it to be.
        expected: u64,
        /// Where it is.
        actual: u64,
    },
    /// A line offset behind the last line.
    #[error("offset {offset} is past the end: the output has {line_count} lines")]
    PastEnd {
        /// The offset asked for, counted from 0.
        offset: u64,
        /// How many lines there are.
        line_count: u64,
    },
    /// A search pattern that cannot be used.
    #[error("bad pattern: {why}")]
    Pattern {
        /// What is wrong with it.
        why: String,
    },
    /// A session name that cannot be used.
    #[error("bad session name: {why}")]
    SessionName {
        /// What is wrong with it.
        why: &'static str,
    },
    /// A link between sessions that cannot be made.
    #[error("cannot link session '{child}' to '{parent}': {why}")]
    Link {
        /// The session that would become the child.
        child: String,
        /// The session that would become the parent.
        parent: String,
        /// What stands against it.
        why: &'static str,
    },
    /// The bytes to be stored could not be read from the caller.
    #[error("could not read the output to be stored: {0}")]
    Input(#[source] io::Error),
    /// No room left. Nothing was stored, nothing that was stored is lost.
    #[error("no room left in the store\nhint: free disk space, or collect old sessions")]
    Full,
    /// The store cannot be written. What is in it can still be read.
    #[error("the store is read-only")]
    ReadOnly,
    /// The store was deleted or replaced while it was open. What is written now would be lost.
    #[error("the store at {} was deleted or replaced\nhint: put it back, or start again", path.display())]
    Vanished {
        /// The folder of the store.
        path: PathBuf,
    },
    /// Another process has the store open, or repairs it.
    #[error("the store at {} is in use: {why}", path.display())]
    InUse {
        /// The folder of the store.
        path: PathBuf,
        /// Who uses it.
        why: &'static str,
    },
    /// Another process kept the store locked for too long.
    #[error("the store is busy: another process holds it")]
    Busy,
    /// Writes that waited could not be carried out, and what was to follow them cannot be.
    #[error("earlier writes could not be carried out\nhint: open the session again")]
    Lost,
    /// A store made by a newer version. It is left alone.
    #[error("the store has format {found}, this version knows up to {known}\nhint: upgrade")]
    NewerFormat {
        /// The format found.
        found: i64,
        /// The newest format this version knows.
        known: i64,
    },
    /// A folder that is not a store, or not a safe one.
    #[error("{}: {why}", path.display())]
    NotAStore {
        /// The folder or file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// This backend cannot do that.
    #[error("this store cannot {0}")]
    Unsupported(&'static str),
    /// The operating system said no.
    #[error("could not {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// The database underneath said no.
    #[error("database: {0}")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// What store operations give.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// True if the ref is not one of this session.
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

    pub(crate) fn pattern(why: impl Into<String>) -> Self {
        Self::Pattern { why: why.into() }
    }

    /// An operating system error, sorted into the kinds that a caller acts on.
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

    /// Takes back an error that travelled through an [`io::Read`].
    pub(crate) fn from_read(error: io::Error) -> Self {
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
