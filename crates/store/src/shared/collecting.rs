//! Removes outputs and sessions, and bytes that no output needs.
//!
//! Rows are removed first, then bodies. A body without a row is found later; a row without a body
//! would be a loss.

use std::collections::{BTreeMap, BTreeSet};

use deadpool_postgres::Object;
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use super::SharedStore;
use super::bodies::BodyName;
use super::database::from_postgres;
use super::rows::{self, signed};
use super::stray_bodies;
use crate::collect;
use crate::refs::well_formed;
use crate::{CollectOptions, CollectReport, Error, Result, SessionId};

/// The number of sessions or blobs that one transaction removes. Small, so that other writers do
/// not wait long.
const BATCH: usize = 64;

impl SharedStore {
    pub(super) fn delete_output(&self, session: &SessionId, id: &str) -> Result<()> {
        if !well_formed(id) {
            return Err(Error::NotFound);
        }
        if self.remove_outputs(&[(session.clone(), id.to_owned())])? == 0 {
            return Err(Error::NotFound);
        }
        self.remove_unheld()
    }

    /// Removes a session, whether it is in use or not.
    pub(super) fn delete_whole_session(&self, session: &SessionId) -> Result<()> {
        if self
            .remove_sessions(&[(session, None)], self.now())?
            .is_empty()
        {
            return Err(Error::NotFound);
        }
        self.remove_unheld()
    }

    /// Removes sessions in batches, and returns those that were removed. A session with a time of
    /// its last use stays if it was used later, or if it is leased.
    fn remove_sessions(
        &self,
        sessions: &[(&SessionId, Option<u64>)],
        now: u64,
    ) -> Result<BTreeSet<SessionId>> {
        // The delete itself compares the times: a session that another process uses meanwhile would
        // otherwise be removed between a look at it and the delete.
        let delete = "DELETE FROM trimtab.sessions
             USING unnest($1::bytea[], $2::bigint[]) AS gone (name, used)
             WHERE sessions.name = gone.name AND (gone.used IS NULL
                 OR (sessions.used = gone.used AND sessions.leased_until <= $3))
             RETURNING sessions.name";
        let mut removed = BTreeSet::new();
        for batch in sessions.chunks(BATCH) {
            let values = batch
                .iter()
                .map(|(name, used)| (name.as_str().as_bytes().to_vec(), used.map(signed)));
            let (names, used): (Vec<Vec<u8>>, Vec<Option<i64>>) = values.unzip();
            let names = self.database.long_call(move |connection| async move {
                let values: [&(dyn ToSql + Sync); 3] = [&names, &used, &signed(now)];
                let rows = delete_and_count(connection, delete, &values).await?;
                let names = rows.iter().map(|row| rows::session_id(row.get(0)));
                names.collect::<Result<Vec<SessionId>>>()
            })?;
            // Also those that another process has removed: their secrets are read again.
            for (session, _) in batch {
                self.secrets().remove(*session);
            }
            removed.extend(names);
        }
        Ok(removed)
    }

    /// Removes outputs in batches. Returns their number.
    fn remove_outputs(&self, outputs: &[(SessionId, String)]) -> Result<usize> {
        let delete = "DELETE FROM trimtab.outputs USING trimtab.sessions,
                 unnest($1::bytea[], $2::text[]) AS gone (session, id)
             WHERE sessions.name = gone.session AND outputs.session = sessions.id
                 AND outputs.id = gone.id
             RETURNING outputs.id";
        let mut removed = 0;
        for batch in outputs.chunks(BATCH) {
            let names = batch
                .iter()
                .map(|(session, id)| (session.as_str().as_bytes().to_vec(), id.clone()));
            let (names, ids): (Vec<Vec<u8>>, Vec<String>) = names.unzip();
            removed += self.database.long_call(move |connection| async move {
                let rows = delete_and_count(connection, delete, &[&names, &ids]).await?;
                Ok(rows.len())
            })?;
        }
        Ok(removed)
    }

    /// Removes blobs that no output needs, in batches, and their bodies.
    pub(super) fn remove_unheld(&self) -> Result<()> {
        loop {
            let gone = self.database.long_call(|connection| async move {
                // A blob that an output is about to name is locked, and skipped.
                let delete = "DELETE FROM trimtab.blobs WHERE id IN (
                         SELECT id FROM trimtab.blobs
                         WHERE NOT EXISTS (SELECT FROM trimtab.outputs WHERE whole = blobs.id)
                             AND NOT EXISTS (SELECT FROM trimtab.outputs WHERE text = blobs.id)
                         LIMIT $1 FOR UPDATE SKIP LOCKED
                     ) RETURNING body, in_object_store";
                let rows = connection.query(delete, &[&signed(BATCH as u64)]).await;
                match rows {
                    // An output named one of them after the query had started. It stays, and the
                    // next collection removes the others.
                    Err(error) if error.code() == Some(&SqlState::FOREIGN_KEY_VIOLATION) => {
                        Ok(Vec::new())
                    }
                    rows => {
                        let rows = rows.map_err(from_postgres)?;
                        Ok(rows.iter().map(body_name).collect::<Vec<_>>())
                    }
                }
            })?;
            if gone.is_empty() {
                return Ok(());
            }
            self.bodies.remove(gone)?;
        }
    }

    /// Decides without a lock. A session that came into use after the snapshot stays, unless the
    /// request names it.
    pub(super) fn collect_garbage(&self, request: &CollectOptions) -> Result<CollectReport> {
        let now = self.now();
        let snapshot = self
            .database
            .long_call(move |connection| super::snapshot::take(connection, signed(now)))?;
        let mut removal = collect::decide(&snapshot, request, now);
        if !request.dry_run {
            let used: BTreeMap<&SessionId, u64> = snapshot
                .sessions
                .iter()
                .map(|session| (&session.id, session.used))
                .collect();
            // The request names some sessions. They go, used or not.
            let is_named = |name: &SessionId| request.sessions.contains(name);
            let planned = removal.sessions.iter();
            let planned: Vec<(&SessionId, Option<u64>)> = planned
                .map(|name| (name, used.get(name).copied().filter(|_| !is_named(name))))
                .collect();
            let removed = self.remove_sessions(&planned, now)?;
            let mut staying = removal.sessions.clone();
            staying.retain(|name| !removed.contains(name));
            removal.retain_sessions(&snapshot, &staying);
            self.remove_outputs(&removal.outputs)?;
            self.remove_unheld()?;
        }
        let strays = stray_bodies::find(&self.bodies, now)?;
        removal.report.stray_files = strays.len() as u64;
        if !request.dry_run {
            self.bodies.remove(strays)?;
        }
        Ok(removal.report)
    }
}

/// Executes a delete, and tells other processes if it removed something. Returns the removed rows.
async fn delete_and_count(
    mut connection: Object,
    delete: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>> {
    let transaction = connection.transaction().await.map_err(from_postgres)?;
    let rows = transaction.query(delete, values).await;
    let rows = rows.map_err(from_postgres)?;
    if !rows.is_empty() {
        let count = "UPDATE trimtab.store SET removals = removals + 1";
        let counted = transaction.batch_execute(count).await;
        counted.map_err(from_postgres)?;
    }
    transaction.commit().await.map_err(from_postgres)?;
    Ok(rows)
}

/// The body in the first two columns.
pub(super) fn body_name(row: &Row) -> BodyName {
    BodyName {
        name: row.get(0),
        in_object_store: row.get(1),
    }
}
