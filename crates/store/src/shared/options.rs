//! Options for opening a shared store.

use std::sync::Arc;

use super::SharedStore;
use super::bodies::BodyStorage;
use super::database::Database;
use super::migrate::{may_create, migrate};
use super::objects;
use crate::clock::Clock;
use crate::{Result, ServerVariables};

/// Options for opening a [`SharedStore`].
pub struct SharedOptions {
    database: String,
    blobs: Option<String>,
    variables: Option<ServerVariables>,
    must_exist: bool,
    clock: Option<Clock>,
}

impl SharedOptions {
    /// The store in the PostgreSQL database at `url`, for example
    /// `postgres://user@host/trimtab`.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            database: url.into(),
            blobs: None,
            variables: None,
            must_exist: false,
            clock: None,
        }
    }

    /// Stores larger outputs in the object store at `url`: `s3://bucket/prefix`, `gs://…`, `az://…`
    /// or `file:///folder`. Credentials come from the usual environment variables.
    #[must_use]
    pub fn blobs(mut self, url: impl Into<String>) -> Self {
        self.blobs = Some(url.into());
        self
    }

    /// Takes credentials and settings of the servers from `variables` instead of the environment of
    /// this process.
    #[must_use]
    pub fn variables(mut self, variables: ServerVariables) -> Self {
        self.variables = Some(variables);
        self
    }

    /// Fails if the database has no store yet, instead of creating one.
    #[must_use]
    pub fn must_exist(mut self, must_exist: bool) -> Self {
        self.must_exist = must_exist;
        self
    }

    /// Takes the time, in milliseconds since 1970, from `clock` instead of the clock of the
    /// database.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Checks whether [`open`](Self::open) can create the store: whether the database allows it,
    /// and whether the object store can be written and read. Leaves nothing behind.
    pub fn rehearse(&self) -> Result<()> {
        let bodies = self.connect()?;
        bodies.database.call(may_create)?;
        bodies.probe()
    }

    /// Connects, and upgrades the tables.
    pub fn open(self) -> Result<SharedStore> {
        let bodies = self.connect()?;
        let (mut secret, mut holder) = ([0; 32], [0; 16]);
        crate::refs::random(&mut secret)?;
        crate::refs::random(&mut holder)?;
        let must_exist = self.must_exist;
        let database = Arc::clone(&bodies.database);
        database.long_call(move |connection| migrate(connection, secret, must_exist))?;
        Ok(SharedStore {
            clock: self.clock,
            database,
            bodies,
            holder,
            secrets: std::sync::Mutex::default(),
            removals: std::sync::atomic::AtomicU64::new(0),
        })
    }

    fn connect(&self) -> Result<BodyStorage> {
        let variables = self.variables.clone();
        let variables = variables.unwrap_or_else(ServerVariables::of_process);
        let objects = self.blobs.as_deref();
        let objects = objects.map(|url| objects::open(url, &variables));
        Ok(BodyStorage {
            objects: objects.transpose()?,
            database: Arc::new(Database::new(&self.database, &variables)?),
            cache: Arc::default(),
            is_ours: Arc::default(),
        })
    }
}
