//! How a shared store is opened.

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::prefix::PrefixStore;

use super::SharedStore;
use super::body::Bodies;
use super::connect::Database;
use super::migrate::migrate;
use crate::clock::{self, Clock};
use crate::{Error, Result};

/// How to open a [`SharedStore`].
pub struct SharedOptions {
    database: String,
    blobs: Option<String>,
    clock: Clock,
}

impl SharedOptions {
    /// The store in the PostgreSQL database at `url`, for example
    /// `postgres://user@host/trimtab`.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            database: url.into(),
            blobs: None,
            clock: clock::system(),
        }
    }

    /// Keeps larger outputs in the object store at `url`: `s3://bucket/prefix`, `gs://…`,
    /// `az://…` or `file:///folder`. Credentials come from the usual environment variables.
    #[must_use]
    pub fn blobs(mut self, url: impl Into<String>) -> Self {
        self.blobs = Some(url.into());
        self
    }

    /// Takes the time, in milliseconds since 1970, from `clock`.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Connects, and brings the tables up to date.
    pub fn open(self) -> Result<SharedStore> {
        let objects = self.blobs.as_deref().map(open_objects).transpose()?;
        let database = Arc::new(Database::connect(&self.database)?);
        let mut secret = [0; 32];
        crate::refs::random(&mut secret)?;
        database.ask(move |connection| migrate(connection, secret))?;
        let bodies = Bodies {
            database: Arc::clone(&database),
            objects,
        };
        Ok(SharedStore {
            clock: self.clock,
            database,
            bodies,
        })
    }
}

fn open_objects(url: &str) -> Result<Arc<dyn ObjectStore>> {
    let parsed = url::Url::parse(url).map_err(Error::database)?;
    // `AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL` and the like, as the tools of each provider.
    let environment = std::env::vars().map(|(name, value)| (name.to_ascii_lowercase(), value));
    let (store, prefix) =
        object_store::parse_url_opts(&parsed, environment).map_err(Error::database)?;
    Ok(Arc::new(PrefixStore::new(store, prefix)))
}
