//! A store that many machines share: PostgreSQL, and an object store for large outputs.
//!
//! Any process may serve any session. Sessions, refs, logs and journals are rows; an append
//! succeeds only if the stream is where the caller believes it to be, so two processes never
//! both extend a session from the same position. Small outputs are rows too. Larger ones are
//! objects if an object store is set, else rows of a bounded size.

mod body;
mod collecting;
mod connect;
mod incoming;
mod migrate;
mod options;
mod outputs;
mod rows;
mod writing;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use trimtab_model::Ref;

use crate::clock::Clock;
use crate::refs::Secret;
use crate::session::may_link;
use crate::write::{Kind, Naming};
use crate::{
    Collect, Collected, Error, Form, Metadata, Put, Result, SessionId, SessionInfo, Spilled, Store,
    StoreStatus, Stored, Stream, Write,
};
use body::Bodies;
use connect::{Database, from_postgres};
pub use options::SharedOptions;
use rows::{millis, unsigned};

/// A store in PostgreSQL that several processes on several machines use at the same time.
pub struct SharedStore {
    clock: Clock,
    database: Arc<Database>,
    bodies: Bodies,
}

impl SharedStore {
    /// Opens the store in the database at `url`. Makes its tables if they are not there.
    pub fn open(url: &str) -> Result<Self> {
        SharedOptions::new(url).open()
    }

    fn now(&self) -> u64 {
        (self.clock)()
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

    fn open(&self, session: &SessionId, id: &str, form: Form) -> Result<Stored> {
        self.open_output(session, id, form)
    }

    fn metadata(&self, session: &SessionId, id: &str) -> Result<Metadata> {
        Ok(self.find_output(session, id)?.metadata()?)
    }

    fn list(&self, session: &SessionId) -> Result<Vec<Metadata>> {
        self.list_outputs(session)
    }

    fn delete(&self, session: &SessionId, id: &str) -> Result<()> {
        self.delete_output(session, id)
    }

    fn delete_session(&self, session: &SessionId) -> Result<()> {
        let removed = self.remove_sessions(&[session.clone()], &|_| true)?;
        if removed == 0 {
            return Err(Error::NotFound);
        }
        self.remove_unheld()
    }

    fn sessions(&self) -> Result<Vec<SessionInfo>> {
        self.database.ask(|connection| async move {
            let rows = connection.query(rows::SESSIONS, &[]).await;
            let rows = rows.map_err(from_postgres)?;
            rows.iter().map(rows::session_info).collect()
        })
    }

    fn touch(&self, session: &SessionId) -> Result<()> {
        self.write_all(session, None, Vec::new())
    }

    fn link(&self, child: &SessionId, parent: &SessionId) -> Result<()> {
        let now = self.now();
        self.touch(parent)?;
        self.touch(child)?;
        let (below, above) = (child.clone(), parent.clone());
        let refused = self.database.ask(move |connection| async move {
            rows::link(connection, below, above, millis(now)).await
        })?;
        match refused {
            None => Ok(()),
            Some((is_ring, has_parent)) => may_link(child, parent, is_ring, has_parent),
        }
    }

    fn parent(&self, session: &SessionId) -> Result<Option<SessionId>> {
        let session = session.clone();
        self.database.ask(|connection| async move {
            let select = "SELECT above.name FROM sessions JOIN sessions AS above
                 ON above.id = sessions.parent WHERE sessions.name = $1";
            let select = connection
                .prepare_cached(select)
                .await
                .map_err(from_postgres)?;
            let found = connection.query_opt(&select, &[&session.as_str()]).await;
            Ok(found
                .map_err(from_postgres)?
                .map(|row| SessionId::known(row.get(0))))
        })
    }

    fn append(
        &self,
        session: &SessionId,
        stream: Stream,
        expected: u64,
        entries: &[&[u8]],
    ) -> Result<u64> {
        let write = Write(Kind::Append {
            stream,
            expected,
            entries: entries.iter().map(|entry| entry.to_vec()).collect(),
        });
        self.write(session, &[write])?;
        Ok(expected + entries.len() as u64)
    }

    fn position(&self, session: &SessionId, stream: Stream) -> Result<u64> {
        let session = session.clone();
        self.database.ask(move |connection| async move {
            let select = "SELECT log, journal FROM sessions WHERE name = $1";
            let select = connection
                .prepare_cached(select)
                .await
                .map_err(from_postgres)?;
            let found = connection.query_opt(&select, &[&session.as_str()]).await;
            let column = usize::from(stream.number());
            Ok(found
                .map_err(from_postgres)?
                .map_or(0, |row| unsigned(row.get(column))))
        })
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
            .ask(move |connection| rows::read_entries(connection, session, stream, from, limit))
    }

    fn secret(&self) -> Result<[u8; 32]> {
        self.database.ask(|connection| async move {
            let row = connection.query_one("SELECT secret FROM store", &[]).await;
            let secret: Vec<u8> = row.map_err(from_postgres)?.get(0);
            secret
                .try_into()
                .map_err(|_| Error::damaged("the secret of the store"))
        })
    }

    fn status(&self) -> Result<StoreStatus> {
        self.database.ask(|connection| async move {
            let select =
                "SELECT removals, current_setting('transaction_read_only') = 'on' FROM store";
            let select = connection
                .prepare_cached(select)
                .await
                .map_err(from_postgres)?;
            let row = connection
                .query_one(&select, &[])
                .await
                .map_err(from_postgres)?;
            Ok(StoreStatus {
                removals: unsigned(row.get(0)),
                read_only: row.get(1),
            })
        })
    }

    fn lease(&self, sessions: &[SessionId], time: Duration) -> Result<()> {
        let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let until = millis(self.now().saturating_add(time));
        let names: Vec<String> = sessions.iter().map(ToString::to_string).collect();
        self.database.ask(move |connection| async move {
            let update = "UPDATE sessions SET leased_until = $2 WHERE name = ANY($1)";
            let updated = connection.execute(update, &[&names, &until]).await;
            updated.map(|_| ()).map_err(from_postgres)
        })
    }

    fn collect(&self, request: &Collect) -> Result<Collected> {
        self.collect_garbage(request)
    }

    fn spill(&self, session: &SessionId, id: &str) -> Result<Spilled> {
        self.metadata(session, id)?;
        Err(Error::Unsupported(
            "write an output to a file: it has no folder",
        ))
    }

    fn naming(&self, session: &SessionId) -> Result<Option<Naming>> {
        Ok(self.session_secret(session)?.map(Naming::new))
    }

    fn write(&self, session: &SessionId, writes: &[Write]) -> Result<()> {
        let secret = self.secret_for(session, writes)?;
        let mut ready = Vec::with_capacity(writes.len());
        for write in writes {
            ready.push(self.make_ready(write, secret.as_ref())?);
        }
        self.write_all(session, secret, ready)
    }
}

impl SharedStore {
    /// The secret of a session, if it is there.
    fn session_secret(&self, session: &SessionId) -> Result<Option<Secret>> {
        let session = session.clone();
        self.database.ask(|connection| async move {
            let select = "SELECT secret FROM sessions WHERE name = $1";
            let select = connection
                .prepare_cached(select)
                .await
                .map_err(from_postgres)?;
            let found = connection.query_opt(&select, &[&session.as_str()]).await;
            found
                .map_err(from_postgres)?
                .map(|row| rows::secret(row.get(0)))
                .transpose()
        })
    }
}
