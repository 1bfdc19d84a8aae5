//! Removes outputs and sessions, and bytes that no output needs.
//!
//! Rows are removed first, then bodies. A body without a row is found later; a row without a body
//! would be a loss.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Transaction};

use super::SharedStore;
use super::bodies::BodyName;
use super::database::from_postgres;
use super::rows::{self, signed};
use super::stray_bodies;
use crate::collect::{self, StoreSnapshot};
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

    /// Removes sessions in batches. Returns their number.
    pub(super) fn remove_sessions(&self, sessions: &[SessionId]) -> Result<u64> {
        let mut removed = 0;
        for batch in sessions.chunks(BATCH) {
            let names = batch.iter().map(|name| name.as_str().as_bytes().to_vec());
            let delete = "DELETE FROM trimtab.sessions WHERE name = ANY($1)";
            removed += self.remove_and_count(delete, names.collect(), None)?;
            for session in batch {
                self.secrets().remove(session);
            }
        }
        Ok(removed)
    }

    fn remove_outputs(&self, outputs: &[(SessionId, String)]) -> Result<u64> {
        let delete = "DELETE FROM trimtab.outputs USING trimtab.sessions,
                 unnest($1::bytea[], $2::text[]) AS gone (session, id)
             WHERE sessions.name = gone.session AND outputs.session = sessions.id
                 AND outputs.id = gone.id";
        let mut removed = 0;
        for batch in outputs.chunks(BATCH) {
            let names = batch
                .iter()
                .map(|(session, id)| (session.as_str().as_bytes().to_vec(), id.clone()));
            let (names, ids) = names.unzip();
            removed += self.remove_and_count(delete, names, Some(ids))?;
        }
        Ok(removed)
    }

    /// Executes a delete, and increments the removal counter if it removed something.
    fn remove_and_count(
        &self,
        delete: &'static str,
        names: Vec<Vec<u8>>,
        ids: Option<Vec<String>>,
    ) -> Result<u64> {
        self.database.long_call(move |mut connection| async move {
            let transaction = connection.transaction().await.map_err(from_postgres)?;
            let deleted = match &ids {
                None => transaction.execute(delete, &[&names]).await,
                Some(ids) => transaction.execute(delete, &[&names, ids]).await,
            };
            let deleted = deleted.map_err(from_postgres)?;
            if deleted > 0 {
                count_removal(&transaction).await?;
            }
            transaction.commit().await.map_err(from_postgres)?;
            Ok(deleted)
        })
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
            let staying = self.remove_planned(&snapshot, request, &removal.sessions, now)?;
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

    /// Removes sessions in batches, except those that were used or leased after the snapshot.
    /// Returns those that stay.
    fn remove_planned(
        &self,
        snapshot: &StoreSnapshot,
        request: &CollectOptions,
        sessions: &[SessionId],
        now: u64,
    ) -> Result<Vec<SessionId>> {
        // The delete itself compares the times: a session that another process uses meanwhile would
        // otherwise be removed between a look at it and the delete.
        let delete = "DELETE FROM trimtab.sessions
             USING unnest($1::bytea[], $2::bigint[]) AS gone (name, used)
             WHERE sessions.name = gone.name AND (gone.used IS NULL
                 OR (sessions.used = gone.used AND sessions.leased_until <= $3))
             RETURNING sessions.name";
        let known: BTreeMap<&SessionId, u64> = snapshot
            .sessions
            .iter()
            .map(|session| (&session.id, session.used))
            .collect();
        let mut staying = Vec::new();
        for batch in sessions.chunks(BATCH) {
            let names = batch.iter().map(|name| name.as_str().as_bytes().to_vec());
            let names: Vec<Vec<u8>> = names.collect();
            // No time for those that the request names: they go, used or not.
            let is_named = |name: &SessionId| request.sessions.contains(name);
            let used = batch.iter().map(|name| {
                let used = known.get(name).copied().filter(|_| !is_named(name));
                used.map(signed)
            });
            let used: Vec<Option<i64>> = used.collect();
            let removed = self.database.long_call(move |mut connection| async move {
                let transaction = connection.transaction().await.map_err(from_postgres)?;
                let values: [&(dyn ToSql + Sync); 3] = [&names, &used, &signed(now)];
                let rows = transaction.query(delete, &values).await;
                let rows = rows.map_err(from_postgres)?;
                if !rows.is_empty() {
                    count_removal(&transaction).await?;
                }
                transaction.commit().await.map_err(from_postgres)?;
                let removed = rows.iter().map(|row| rows::session_id(row.get(0)));
                removed.collect::<Result<BTreeSet<SessionId>>>()
            })?;
            for session in batch {
                if removed.contains(session) {
                    self.secrets().remove(session);
                } else {
                    staying.push(session.clone());
                }
            }
        }
        Ok(staying)
    }
}

/// Tells other processes that something was removed.
async fn count_removal(transaction: &Transaction<'_>) -> Result<()> {
    let count = "UPDATE trimtab.store SET removals = removals + 1";
    transaction
        .batch_execute(count)
        .await
        .map_err(from_postgres)
}

/// The body in the first two columns.
pub(super) fn body_name(row: &Row) -> BodyName {
    BodyName {
        name: row.get(0),
        in_object_store: row.get(1),
    }
}
