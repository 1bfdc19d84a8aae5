//! Names and metadata of sessions.

use std::fmt;

use crate::{Error, Result};

/// The longest session name in bytes: enough for any client's id, too short for a message.
const LONGEST_NAME: usize = 512;

/// The name of a session.
///
/// ```
/// # use trimtab_store::SessionId;
/// let session = SessionId::new("project-7/main")?;
/// assert_eq!(session.as_str(), "project-7/main");
/// assert!(SessionId::new("").is_err());
/// # Ok::<_, trimtab_store::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(String);

impl SessionId {
    /// Accepts any text of 1 to 512 bytes. It never becomes part of a file name.
    pub fn new(name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        if name.is_empty() {
            return Err(Error::SessionName { why: "it is empty" });
        }
        if name.len() > LONGEST_NAME {
            let why = "it is longer than 512 bytes";
            return Err(Error::SessionName { why });
        }
        Ok(Self(name))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A name that was checked when it was stored.
    pub(crate) fn known(name: String) -> Self {
        Self(name)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One of the two append-only streams of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stream {
    /// The original messages.
    Log,
    /// The executed plans.
    Journal,
}

/// Entries of both streams of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamEntries {
    /// Entries of the log.
    pub log: Vec<Vec<u8>>,
    /// Entries of the journal.
    pub journal: Vec<Vec<u8>>,
}

impl Stream {
    /// Both streams.
    pub const ALL: [Self; 2] = [Self::Log, Self::Journal];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Journal => "journal",
        }
    }

    /// Its number in the database. Part of the format of all persistent backends.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Log => 0,
            Self::Journal => 1,
        }
    }
}

/// The metadata of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// Its name.
    pub session: SessionId,
    /// The parent, whose refs it may redeem too.
    pub parent: Option<SessionId>,
    /// The time of the first use, in milliseconds since 1970.
    pub created: u64,
    /// The time of the last use, in milliseconds since 1970, precise to a minute.
    pub used: u64,
    /// The number of outputs.
    pub outputs: u64,
    /// Their original size in bytes.
    pub byte_size: u64,
}

/// The state of a store, which may change while it is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStatus {
    /// The removal counter of all processes. While it is unchanged, no ref has become invalid.
    pub removals: u64,
    /// True if the store is read-only now.
    pub read_only: bool,
}

/// Fails if `parent` cannot become the parent of `child`.
pub(crate) fn may_link(
    child: &SessionId,
    parent: &SessionId,
    is_ring: bool,
    has_parent: bool,
) -> Result<()> {
    let why = if is_ring {
        "the parent is the session itself, or one of its descendants"
    } else if has_parent {
        "it already has another parent"
    } else {
        return Ok(());
    };
    Err(Error::Link {
        child: child.to_string(),
        parent: parent.to_string(),
        why,
    })
}
