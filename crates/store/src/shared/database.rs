//! Connections to PostgreSQL, and the runtime that drives them.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime,
};
use tokio_postgres::NoTls;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;

use super::connection::ConnectionSettings;
use crate::{Error, Result, ServerVariables};

/// The number of connections per process. More would only wait for locks of the database.
const CONNECTIONS: usize = 16;
/// How long a call waits for a connection, and how long for its answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// The limit of calls that no request waits for, for example a migration or a collection.
const LONG_PATIENCE: Duration = Duration::from_mins(10);
/// After a failure to reach the database, calls fail at once for this time, and then one call tries
/// again. So a database that hangs does not delay every request.
const PAUSE: Duration = Duration::from_secs(1);

/// The error code of our SQL functions if a stream is at another position. The message is the
/// stream and its position.
const CONFLICT: &str = "TT001";
/// Their error code if a session was removed after its outputs were named.
const REMOVED: &str = "TT002";

/// Added to the error of a rejected certificate.
const NOT_TRUSTED: &str = "; PGSSLROOTCERT or sslrootcert names the certificates to trust";

/// A pool of connections, and a runtime that drives them.
///
/// [`Store`](crate::Store) is not asynchronous: its callers are threads that may block. The runtime
/// has threads of its own, so a caller may also be a worker of another runtime.
pub(super) struct Database {
    pool: Pool,
    /// None only while it is dropped.
    runtime: Option<tokio::runtime::Runtime>,
    /// The host names, for error texts. They contain no password.
    name: String,
    failed: Mutex<Option<Instant>>,
    /// When it last answered a call.
    answered: Arc<Mutex<Option<Instant>>>,
}

impl Database {
    /// Prepares connections as `url` and `variables` say. Connects at the first call.
    pub(super) fn new(url: &str, variables: &ServerVariables) -> Result<Self> {
        let connection = ConnectionSettings::new(url, variables, PATIENCE)?;
        let name = connection.host_names();
        let ConnectionSettings { config, trust } = connection;
        // Without a test query, which would cost a round trip per call. A call on a broken
        // connection fails, and the next one opens another.
        let recycling_method = RecyclingMethod::Fast;
        let settings = ManagerConfig { recycling_method };
        let manager = match config.get_ssl_mode() {
            SslMode::Disable => Manager::from_config(config, NoTls, settings),
            _ => Manager::from_config(config, trust.connector()?, settings),
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
        Ok(Self {
            pool,
            runtime: Some(runtime),
            name,
            failed: Mutex::default(),
            answered: Arc::default(),
        })
    }

    /// The host names, for error texts.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Runs `work` on the runtime and waits for it.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let (done, wait) = mpsc::sync_channel(1);
        let runtime = self.runtime.as_ref().ok_or(Error::Lost)?;
        runtime.spawn(async move {
            let result = tokio::time::timeout(limit, work).await;
            // The receiver waits until this is sent.
            done.send(result.unwrap_or(Err(Error::Busy))).unwrap_or(());
        });
        wait.recv().map_err(Error::database)?
    }

    /// Runs `work` with a connection.
    pub(super) fn call<T, W>(&self, work: impl FnOnce(Object) -> W + Send + 'static) -> Result<T>
    where
        T: Send + 'static,
        W: Future<Output = Result<T>> + Send + 'static,
    {
        self.call_within(PATIENCE, work)
    }

    /// Runs `work` with a connection, if no request waits for it.
    pub(super) fn long_call<T, W>(
        &self,
        work: impl FnOnce(Object) -> W + Send + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        W: Future<Output = Result<T>> + Send + 'static,
    {
        self.call_within(LONG_PATIENCE, work)
    }

    fn call_within<T, W>(
        &self,
        limit: Duration,
        work: impl FnOnce(Object) -> W + Send + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        W: Future<Output = Result<T>> + Send + 'static,
    {
        if self.failed_recently() {
            return Err(self.unreachable("it could not be reached a moment ago"));
        }
        let (pool, answered) = (self.pool.clone(), Arc::clone(&self.answered));
        // The wait for a free connection comes on top of the limit.
        let answer = self.wait(PATIENCE + limit, async move {
            let connection = match pool.get().await {
                Err(PoolError::Timeout(_)) if has_answered(&answered) => return Err(Error::Busy),
                got => got.map_err(pool_error)?,
            };
            let Ok(answer) = tokio::time::timeout(limit, work(connection)).await else {
                // The server or the network may hang, and with it the idle connections. That of this
                // call is among them, and its statement may go on for long.
                pool.retain(|_, _| false);
                if has_answered(&answered) {
                    return Err(Error::Busy);
                }
                return Err(Error::unreachable("it did not answer in time"));
            };
            if !matches!(&answer, Err(Error::Unreachable { .. })) {
                *answered.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            }
            answer
        });
        self.note_reachable(answer)
    }

    /// Remembers a failure to reach the database, and names the database in its error.
    fn note_reachable<T>(&self, answer: Result<T>) -> Result<T> {
        let is_lost = matches!(&answer, Err(Error::Unreachable { .. }));
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = is_lost.then(Instant::now);
        answer.map_err(|error| match error {
            Error::Unreachable { why, .. } => self.unreachable(&why),
            other => other,
        })
    }

    /// True if the call should fail at once. After each pause, one call tries the database again.
    fn failed_recently(&self) -> bool {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = &mut *failed else { return false };
        let is_recent = at.elapsed() < PAUSE;
        if !is_recent {
            // Only this call tries again. The others keep failing at once until it has an answer.
            *at = Instant::now();
        }
        is_recent
    }

    fn unreachable(&self, why: &str) -> Error {
        Error::Unreachable {
            what: format!("the database at {}", self.name),
            why: why.to_owned(),
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // A runtime must not be dropped by a thread of another runtime without this.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// True if the database answered another call while this one waited. Then only this call is slow,
/// and others need not be kept away from the database.
fn has_answered(answered: &Mutex<Option<Instant>>) -> bool {
    let answered = answered.lock().unwrap_or_else(PoisonError::into_inner);
    answered.is_some_and(|at| at.elapsed() < PATIENCE)
}

fn pool_error(error: PoolError) -> Error {
    match error {
        PoolError::Timeout(_) => Error::unreachable("no connection within 3 seconds"),
        PoolError::Backend(error) => from_postgres(error),
        other => Error::database(other),
    }
}

/// Converts an error of the database into the kinds that callers handle.
#[expect(clippy::needless_pass_by_value, reason = "a function for map_err")]
pub(super) fn from_postgres(error: tokio_postgres::Error) -> Error {
    let Some(reported) = error.as_db_error() else {
        // No answer, so the connection is broken or was never made.
        let mut why = causes(&error);
        if why.contains("invalid peer certificate") {
            why.push_str(NOT_TRUSTED);
        }
        return Error::unreachable(&why);
    };
    match reported.code() {
        code if code.code() == CONFLICT => conflict(reported.message()),
        code if code.code() == REMOVED => Error::NotFound,
        &SqlState::DISK_FULL => Error::Full,
        &SqlState::INSUFFICIENT_PRIVILEGE => Error::Denied(reported.message().to_owned()),
        &SqlState::READ_ONLY_SQL_TRANSACTION => Error::ReadOnly,
        &SqlState::LOCK_NOT_AVAILABLE | &SqlState::T_R_DEADLOCK_DETECTED => Error::Busy,
        &SqlState::ADMIN_SHUTDOWN
        | &SqlState::CRASH_SHUTDOWN
        | &SqlState::CANNOT_CONNECT_NOW
        | &SqlState::TOO_MANY_CONNECTIONS
        | &SqlState::INVALID_PASSWORD
        | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION
        | &SqlState::INVALID_CATALOG_NAME => Error::unreachable(reported.message()),
        _ => Error::Database(reported.message().to_owned().into()),
    }
}

/// The error and its causes on one line.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

fn conflict(message: &str) -> Error {
    let (stream, position) = message.split_once(' ').unwrap_or_default();
    Error::Conflict {
        stream: if stream == "0" { "log" } else { "journal" },
        // Only the caller knows the expected position.
        expected: 0,
        actual: position.parse().unwrap_or_default(),
    }
}
