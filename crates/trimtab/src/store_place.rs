//! The place of a store, and how it is opened.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trimtab_store::{Error, Result, ServerVariables, Store};

use crate::redact::redact_urls;

/// The schemes of PostgreSQL.
const DATABASES: [&str; 2] = ["postgres://", "postgresql://"];

/// The place of a store: a folder, or a database that several machines share.
///
/// ```
/// use std::path::Path;
/// use trimtab::store_place::StorePlace;
///
/// let place = StorePlace::new(Path::new("postgres://me:secret@db/trimtab"), None);
/// assert_eq!(place.unwrap().to_string(), "postgres://***@db/trimtab");
/// assert!(StorePlace::new(Path::new("ftp://somewhere"), None).is_none());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub enum StorePlace {
    /// A folder of this machine.
    Folder(PathBuf),
    /// A PostgreSQL database.
    Shared {
        /// Its URL.
        database: String,
        /// The URL of the object store for large outputs; none to store them in the database.
        blobs: Option<String>,
        /// Credentials and settings that the URLs leave out.
        variables: ServerVariables,
    },
}

impl StorePlace {
    /// The place that the settings `store` and `blobs` name. None if `store` is a URL of another
    /// kind.
    pub fn new(store: &Path, blobs: Option<&str>) -> Option<Self> {
        let text = store.to_string_lossy();
        if DATABASES.iter().any(|scheme| text.starts_with(scheme)) {
            let blobs = blobs.filter(|url| !url.is_empty()).map(str::to_owned);
            let database = text.into_owned();
            return Some(Self::Shared {
                database,
                blobs,
                variables: ServerVariables::of_process(),
            });
        }
        // A mistyped scheme must not become a folder of that name.
        (!text.contains("://")).then(|| Self::Folder(store.to_owned()))
    }

    /// The same place with these variables instead of those of this process.
    #[must_use]
    pub fn with_variables(mut self, given: ServerVariables) -> Self {
        if let Self::Shared { variables, .. } = &mut self {
            *variables = given;
        }
        self
    }

    /// True if both keep large outputs in the same place.
    pub fn shares_objects(&self, other: &Self) -> bool {
        let objects = |place: &Self| match place {
            Self::Shared {
                blobs: Some(url), ..
            } => {
                // The query has credentials and settings.
                let place = url.split('?').next().unwrap_or_default();
                Some(place.trim_end_matches('/').to_owned())
            }
            _ => None,
        };
        objects(self).is_some() && objects(self) == objects(other)
    }

    /// Opens the store, and creates it if it does not exist.
    pub fn create(&self) -> Result<Arc<dyn Store>> {
        self.open_as(false)
    }

    /// Opens the store. Fails with [`Error::Vanished`] or [`Error::NoTables`] if it does not exist.
    pub fn open(&self) -> Result<Arc<dyn Store>> {
        match self {
            Self::Folder(path) if !is_folder_store(path) => {
                Err(Error::Vanished { path: path.clone() })
            }
            place => place.open_as(true),
        }
    }

    /// Checks whether a store that does not exist yet can be created here. A folder is always
    /// accepted.
    pub fn rehearse(&self) -> Result<()> {
        match self {
            Self::Folder(_) => Ok(()),
            Self::Shared {
                database,
                blobs,
                variables,
            } => rehearse_shared(database, blobs.as_deref(), variables),
        }
    }

    fn open_as(&self, must_exist: bool) -> Result<Arc<dyn Store>> {
        match self {
            Self::Folder(path) => open_folder(path),
            Self::Shared {
                database,
                blobs,
                variables,
            } => open_shared(database, blobs.as_deref(), variables, must_exist),
        }
    }
}

impl fmt::Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => write!(f, "{}", path.display()),
            Self::Shared { database, .. } => f.write_str(&redact_urls(database)),
        }
    }
}

/// Without the password of the database.
impl fmt::Debug for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StorePlace({self})")
    }
}

#[cfg(all(unix, feature = "folder"))]
fn open_folder(path: &Path) -> Result<Arc<dyn Store>> {
    Ok(Arc::new(trimtab_store::FolderStore::open(path)?))
}

#[cfg(not(all(unix, feature = "folder")))]
fn open_folder(_: &Path) -> Result<Arc<dyn Store>> {
    Err(Error::Unsupported(
        "be opened: this program is built without stores in folders",
    ))
}

#[cfg(all(unix, feature = "folder"))]
fn is_folder_store(path: &Path) -> bool {
    trimtab_store::FolderStore::is_at(path)
}

#[cfg(not(all(unix, feature = "folder")))]
fn is_folder_store(_: &Path) -> bool {
    true
}

#[cfg(feature = "shared")]
fn open_shared(
    database: &str,
    blobs: Option<&str>,
    variables: &ServerVariables,
    must_exist: bool,
) -> Result<Arc<dyn Store>> {
    let options = shared_options(database, blobs, variables);
    Ok(Arc::new(options.must_exist(must_exist).open()?))
}

#[cfg(feature = "shared")]
fn rehearse_shared(database: &str, blobs: Option<&str>, variables: &ServerVariables) -> Result<()> {
    shared_options(database, blobs, variables).rehearse()
}

#[cfg(feature = "shared")]
fn shared_options(
    database: &str,
    blobs: Option<&str>,
    variables: &ServerVariables,
) -> trimtab_store::SharedOptions {
    let options = trimtab_store::SharedOptions::new(database).variables(variables.clone());
    match blobs {
        Some(blobs) => options.blobs(blobs),
        None => options,
    }
}

#[cfg(not(feature = "shared"))]
fn rehearse_shared(database: &str, blobs: Option<&str>, variables: &ServerVariables) -> Result<()> {
    open_shared(database, blobs, variables, true).map(drop)
}

#[cfg(not(feature = "shared"))]
fn open_shared(_: &str, _: Option<&str>, _: &ServerVariables, _: bool) -> Result<Arc<dyn Store>> {
    Err(Error::Unsupported(
        "be opened: this program is built without stores in databases",
    ))
}
