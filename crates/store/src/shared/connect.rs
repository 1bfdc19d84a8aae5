//! The connections to PostgreSQL, and the thread that a caller waits on.

use std::future::Future;
use std::sync::mpsc;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{Error, Result};

/// Connections of one process. More would only wait for the database's own locks.
const CONNECTIONS: usize = 16;
/// How long a call waits for a connection, and for the answer to what it asked.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the database works on one statement before it gives up.
const STATEMENT_TIMEOUT: &str = "-c statement_timeout=8000 -c lock_timeout=5000";

/// Says that a stream has moved on. The message is its position.
const CONFLICT: &str = "TT001";
/// Says that a session was removed since its outputs were named.
const REMOVED: &str = "TT002";

/// A pool of connections, and a runtime that drives them.
///
/// [`Store`](crate::Store) is not asynchronous: its callers are threads that may wait. The
/// runtime has threads of its own, so a caller may be a worker of another runtime.
pub(super) struct Database {
    pool: Pool,
    runtime: tokio::runtime::Runtime,
}

impl Database {
    /// Connects as `url` and the usual environment variables say.
    pub(super) fn connect(url: &str) -> Result<Self> {
        let mut config: Config = url.parse().map_err(Error::database)?;
        config.connect_timeout(Duration::from_secs(5));
        config.application_name("trimtab");
        let options = config.get_options().unwrap_or_default();
        config.options(format!("{STATEMENT_TIMEOUT} {options}"));
        // Dead connections are noticed when they are used.
        let recycling_method = RecyclingMethod::Fast;
        let manager = ManagerConfig { recycling_method };
        let manager = match config.get_ssl_mode() {
            SslMode::Disable => Manager::from_config(config, NoTls, manager),
            _ => Manager::from_config(config, tls()?, manager),
        };
        let pool = Pool::builder(manager)
            .max_size(CONNECTIONS)
            .wait_timeout(Some(PATIENCE))
            .create_timeout(Some(PATIENCE))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(Error::database)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("trimtab-store")
            .enable_all()
            .build()
            .map_err(Error::database)?;
        Ok(Self { pool, runtime })
    }

    /// Runs `work` and waits for it.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let (done, wait) = mpsc::sync_channel(1);
        self.runtime.spawn(async move {
            let result = work.await;
            // Whoever waited may have given up.
            let _ = done.send(result);
        });
        wait.recv().map_err(Error::database)?
    }

    /// Runs `work` with a connection and waits for it, but not for ever.
    pub(super) fn ask<T, W>(&self, work: impl FnOnce(Object) -> W + Send + 'static) -> Result<T>
    where
        T: Send + 'static,
        W: Future<Output = Result<T>> + Send + 'static,
    {
        let pool = self.pool.clone();
        self.wait(async move {
            let connection = pool.get().await.map_err(pool_error)?;
            let answer = tokio::time::timeout(PATIENCE, work(connection)).await;
            answer.unwrap_or(Err(Error::Busy))
        })
    }
}

/// TLS with the certificates of the system, or of `SSL_CERT_FILE`.
fn tls() -> Result<MakeRustlsConnect> {
    let mut roots = rustls::RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(Error::database)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn pool_error(error: deadpool_postgres::PoolError) -> Error {
    match error {
        deadpool_postgres::PoolError::Timeout(_) => Error::Busy,
        deadpool_postgres::PoolError::Backend(error) => from_postgres(error),
        other => Error::database(other),
    }
}

/// An error of the database, sorted into the kinds that a caller acts on.
pub(super) fn from_postgres(error: tokio_postgres::Error) -> Error {
    let Some(database) = error.as_db_error() else {
        return Error::database(error);
    };
    match database.code() {
        code if code.code() == CONFLICT => Error::Conflict {
            stream: "stream",
            expected: 0,
            actual: database.message().parse().unwrap_or_default(),
        },
        code if code.code() == REMOVED => Error::NotFound,
        &SqlState::DISK_FULL | &SqlState::OUT_OF_MEMORY => Error::Full,
        &SqlState::READ_ONLY_SQL_TRANSACTION | &SqlState::INSUFFICIENT_PRIVILEGE => Error::ReadOnly,
        &SqlState::LOCK_NOT_AVAILABLE | &SqlState::QUERY_CANCELED => Error::Busy,
        _ => Error::database(error),
    }
}
