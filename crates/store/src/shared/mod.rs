//! A store that several machines share: PostgreSQL, and an object store for large outputs.
//!
//! Every process may serve every session. Sessions, refs, logs and journals are rows. An append
//! succeeds only at the expected position, so two processes never extend a session from the same
//! position. Small outputs are rows too. Larger ones are objects, or rows of a bounded size if
//! there is no object store.

#[macro_use]
mod rows;

mod bodies;
mod collecting;
mod connection;
mod database;
mod incoming;
mod migrate;
mod object_owner;
mod objects;
mod options;
mod outputs;
mod puts;
mod segment_cache;
mod snapshot;
mod stray_bodies;
mod tls;
mod writing;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use trimtab_model::Ref;

use crate::clock::Clock;
use crate::refs::SessionSecret;
use crate::session::may_link;
use crate::{
    CollectOptions, CollectReport, Error, OpenOutput, OutputForm, OutputMetadata, Put, RefMinter,
    Result, SessionId, SessionInfo, SpilledFile, Store, StoreStatus, Stream, StreamEntries, Write,
};
use bodies::BodyStorage;
use database::{Database, from_postgres};
pub use options::SharedOptions;
use rows::{query_all, query_one, signed, unsigned};

/// The number of session secrets in memory.
const SECRETS: usize = 10_000;

/// The longest lease in milliseconds: about 30 years, far from an overflow of the sum with a time.
const LONGEST_LEASE: i64 = 1_000_000_000_000;

/// A store in PostgreSQL that processes on several machines use at the same time.
///
/// ```no_run
/// use trimtab_store::{SharedStore, Store};
///
/// let store = SharedStore::open("postgres://trimtab@db.example/trimtab")?;
/// println!("{} sessions", store.sessions()?.len());
/// # Ok::<_, trimtab_store::Error>(())
/// ```
pub struct SharedStore {
    /// A clock that replaces that of the database, for tests.
    clock: Option<Clock>,
    database: Arc<Database>,
    bodies: BodyStorage,
    /// Identifies this process in claims.
    holder: [u8; 16],
    /// The secrets of sessions, which never change while a session exists.
    secrets: Mutex<HashMap<SessionId, SessionSecret>>,
    /// The number of removals when the secrets were last known to be current.
    removals: AtomicU64,
}

impl SharedStore {
    /// Opens the store in the database at `url`, and creates its tables if they do not exist.
    pub fn open(url: &str) -> Result<Self> {
        SharedOptions::new(url).open()
    }

    /// The host names of the database, without user and password.
    pub fn host(&self) -> &str {
        self.database.name()
    }

    /// The time for a statement; none to let it take that of the database. The clocks of the
    /// machines may differ, and what one of them writes is removed by others.
    fn now(&self) -> Option<i64> {
        self.clock.as_ref().map(|clock| signed(clock()))
    }

    fn secrets(&self) -> MutexGuard<'_, HashMap<SessionId, SessionSecret>> {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets secrets and bytes if another process has removed something: a session that was
    /// removed and created again has another secret, and erased bytes must not stay in memory.
    fn note_removals(&self, removals: u64) {
        if self.removals.swap(removals, Ordering::Relaxed) != removals {
            self.secrets().clear();
            self.bodies.cache.clear();
        }
    }

    /// The secret of a session, if it exists.
    fn session_secret(&self, session: &SessionId) -> Result<Option<SessionSecret>> {
        if let Some(secret) = self.secrets().get(session) {
            return Ok(Some(secret.clone()));
        }
        let name = session.clone();
        let found = self.database.call(|connection| async move {
            let select = "SELECT secret FROM trimtab.sessions WHERE name = $1";
            let found = query_one(&connection, select, &[&name.as_str().as_bytes()]).await?;
            found.map(|row| rows::secret(row.get(0))).transpose()
        })?;
        if let Some(secret) = &found {
            let mut secrets = self.secrets();
            // Starting over is simpler than tracking uses: a secret costs one query.
            if secrets.len() >= SECRETS {
                secrets.clear();
            }
            secrets.insert(session.clone(), secret.clone());
        }
        Ok(found)
    }
}

impl fmt::Debug for SharedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedStore").finish_non_exhaustive()
    }
}

impl Store for SharedStore {
    fn put(&self, session: &SessionId, put: Put<'_>) -> Result<Ref> {
        self.put_output(session, put)
    }

    fn open(&self, session: &SessionId, id: &str, form: OutputForm) -> Result<OpenOutput> {
        self.open_output(session, id, form)
    }

    fn open_all(&self, session: &SessionId, ids: &[&str]) -> Result<Vec<OpenOutput>> {
        self.open_outputs(session, ids)
    }

    fn holds_all(&self, session: &SessionId, ids: &[&str]) -> Result<bool> {
        let found = self.find_outputs(session, ids)?;
        Ok(ids.iter().all(|id| found.contains_key(*id)))
    }

    fn metadata(&self, session: &SessionId, id: &str) -> Result<OutputMetadata> {
        self.find_output(session, id)?.metadata()
    }

    fn list(&self, session: &SessionId) -> Result<Vec<OutputMetadata>> {
        self.list_outputs(session)
    }

    fn delete(&self, session: &SessionId, id: &str) -> Result<()> {
        self.delete_output(session, id)
    }

    fn delete_session(&self, session: &SessionId) -> Result<()> {
        self.delete_whole_session(session)
    }

    fn sessions(&self) -> Result<Vec<SessionInfo>> {
        self.database.long_call(|connection| async move {
            let rows = query_all(&connection, rows::SESSIONS, &[]).await?;
            rows.iter().map(rows::session_info).collect()
        })
    }

    fn sessions_with_ref(&self, prefix: &str, id: &str) -> Result<Vec<SessionId>> {
        self.find_redeemers(prefix, id)
    }

    fn touch(&self, session: &SessionId) -> Result<()> {
        self.execute(session, None, Vec::new())
    }

    fn link(&self, child: &SessionId, parent: &SessionId) -> Result<()> {
        // Creates sessions that do not exist yet.
        self.touch(parent)?;
        self.touch(child)?;
        let (below, above) = (child.clone(), parent.clone());
        let refused = self
            .database
            .call(move |connection| rows::link(connection, below, above))?;
        match refused {
            None => Ok(()),
            Some((is_ring, has_parent)) => may_link(child, parent, is_ring, has_parent),
        }
    }

    fn parent(&self, session: &SessionId) -> Result<Option<SessionId>> {
        let session = session.clone();
        self.database.call(|connection| async move {
            let select = "SELECT above.name FROM trimtab.sessions JOIN trimtab.sessions AS above
                 ON above.id = sessions.parent WHERE sessions.name = $1";
            let found = query_one(&connection, select, &[&session.as_str().as_bytes()]).await?;
            found.map(|row| rows::session_id(row.get(0))).transpose()
        })
    }

    fn append(
        &self,
        session: &SessionId,
        stream: Stream,
        expected: u64,
        entries: &[&[u8]],
    ) -> Result<u64> {
        let write = Write::append(stream, expected, entries);
        self.write(session, &[write])?;
        Ok(expected + entries.len() as u64)
    }

    fn position(&self, session: &SessionId, stream: Stream) -> Result<u64> {
        let (_, positions) = self.positions(std::slice::from_ref(session))?;
        let (log, journal) = positions.first().copied().unwrap_or_default();
        Ok(match stream {
            Stream::Log => log,
            Stream::Journal => journal,
        })
    }

    fn positions(&self, sessions: &[SessionId]) -> Result<(StoreStatus, Vec<(u64, u64)>)> {
        let names = sessions
            .iter()
            .map(|name| name.as_str().as_bytes().to_vec());
        let names: Vec<Vec<u8>> = names.collect();
        let found = self.database.call(move |connection| async move {
            // The left joins return the row of the store even if no session is asked for or exists.
            let select = "SELECT removals, current_setting('transaction_read_only') = 'on',
                     coalesce(sessions.log, 0), coalesce(sessions.journal, 0), asked.name IS NULL
                 FROM trimtab.store
                 LEFT JOIN unnest($1::bytea[]) WITH ORDINALITY AS asked (name, number) ON true
                 LEFT JOIN trimtab.sessions ON sessions.name = asked.name
                 ORDER BY asked.number";
            let rows = query_all(&connection, select, &[&names]).await?;
            let first = rows
                .first()
                .ok_or_else(|| Error::damaged("the row of the store"))?;
            let status = StoreStatus {
                removals: unsigned(first.get(0)),
                read_only: first.get(1),
            };
            let asked = rows.iter().filter(|row| !row.get::<_, bool>(4));
            let positions = asked.map(|row| (unsigned(row.get(2)), unsigned(row.get(3))));
            Ok((status, positions.collect()))
        })?;
        let (status, positions): (StoreStatus, Vec<(u64, u64)>) = found;
        self.note_removals(status.removals);
        Ok((status, positions))
    }

    fn read(
        &self,
        session: &SessionId,
        stream: Stream,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Vec<u8>>> {
        let session = session.clone();
        self.database
            .call(move |connection| rows::read_entries(connection, session, stream, from, limit))
    }

    fn read_streams(
        &self,
        session: &SessionId,
        from: (u64, u64),
        limit: usize,
    ) -> Result<StreamEntries> {
        let session = session.clone();
        self.database
            .call(move |connection| rows::read_streams(connection, session, from, limit))
    }

    fn secret(&self) -> Result<[u8; 32]> {
        self.database.call(rows::store_secret)
    }

    fn status(&self) -> Result<StoreStatus> {
        self.positions(&[]).map(|(status, _)| status)
    }

    fn lease(&self, sessions: &[SessionId], time: Duration) -> Result<()> {
        let (now, time) = (self.now(), i64::try_from(time.as_millis()));
        let time = time.unwrap_or(LONGEST_LEASE).min(LONGEST_LEASE);
        let names = sessions
            .iter()
            .map(|name| name.as_str().as_bytes().to_vec());
        let names: Vec<Vec<u8>> = names.collect();
        self.database.call(move |connection| async move {
            let update = concat!(
                "UPDATE trimtab.sessions SET leased_until = $3 + ",
                time_or_now!("$2"),
                " WHERE name = ANY($1)"
            );
            let updated = connection.execute(update, &[&names, &now, &time]).await;
            updated.map(|_| ()).map_err(from_postgres)
        })
    }

    fn claim(&self, session: &SessionId, purpose: &'static str, time: Duration) -> Result<bool> {
        let (session, holder) = (session.clone(), self.holder);
        self.database.call(move |connection| async move {
            // The clock of the database decides, because those of the machines differ.
            let insert = "INSERT INTO trimtab.claims (session, purpose, holder, until)
                 VALUES ($1, $2, $3, clock_timestamp() + make_interval(secs => $4))
                 ON CONFLICT (session, purpose) DO UPDATE
                     SET holder = excluded.holder, until = excluded.until
                     WHERE claims.until < clock_timestamp() OR claims.holder = excluded.holder
                 RETURNING true";
            let (name, holder) = (session.as_str().as_bytes(), holder.as_slice());
            let values: rows::SqlValues<'_> = &[&name, &purpose, &holder, &time.as_secs_f64()];
            Ok(query_one(&connection, insert, values).await?.is_some())
        })
    }

    fn release(&self, session: &SessionId, purpose: &'static str) -> Result<()> {
        let (session, holder) = (session.clone(), self.holder);
        self.database.call(move |connection| async move {
            // Also removes expired claims of others: a killed process cannot remove its own.
            let delete = "DELETE FROM trimtab.claims
                 WHERE session = $1 AND purpose = $2 AND holder = $3 OR until < clock_timestamp()";
            let (name, holder) = (session.as_str().as_bytes(), holder.as_slice());
            let deleted = connection
                .execute(delete, &[&name, &purpose, &holder])
                .await;
            deleted.map(|_| ()).map_err(from_postgres)
        })
    }

    fn restore_secret(&self, secret: &[u8; 32]) -> Result<()> {
        let secret = *secret;
        let is_set = self.database.call(move |connection| async move {
            let update = "UPDATE trimtab.store SET secret = $1
                 WHERE secret = $1 OR NOT EXISTS (SELECT FROM trimtab.sessions) RETURNING true";
            query_one(&connection, update, &[&secret.as_slice()]).await
        })?;
        is_set.map(|_| ()).ok_or(Error::NotEmpty)
    }

    fn restore_session(&self, info: &SessionInfo, minter: &RefMinter) -> Result<()> {
        let (name, secret) = (info.session.clone(), *minter.secret().as_bytes());
        let (created, used) = (signed(info.created), signed(info.used));
        let restored = self.database.call(move |connection| async move {
            let (name, secret) = (name.as_str().as_bytes(), secret.as_slice());
            // The secret is also given as the known one, so an existing session with another secret
            // is an error.
            let create = "SELECT trimtab.use_session($1, $2, $2, $3)";
            query_one(&connection, create, &[&name, &secret, &used]).await?;
            let update = "UPDATE trimtab.sessions SET created = $2, used = $3 WHERE name = $1";
            query_all(&connection, update, &[&name, &created, &used]).await
        });
        match restored {
            Err(Error::NotFound) => Err(Error::OtherSession {
                session: info.session.to_string(),
            }),
            restored => restored.map(|_| ()),
        }
    }

    fn collect(&self, request: &CollectOptions) -> Result<CollectReport> {
        self.collect_garbage(request)
    }

    fn spill(&self, session: &SessionId, id: &str) -> Result<SpilledFile> {
        self.metadata(session, id)?;
        Err(Error::Unsupported(
            "write an output to a file: it has no folder",
        ))
    }

    fn ref_minter(&self, session: &SessionId) -> Result<Option<RefMinter>> {
        Ok(self.session_secret(session)?.map(RefMinter::new))
    }

    fn write(&self, session: &SessionId, writes: &[Write]) -> Result<()> {
        self.execute_writes(session, writes)
    }
}
