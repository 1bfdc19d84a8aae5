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
use super::rows::{self, signed, unsigned};
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
        self.check_reach(std::iter::once(session))?;
        let (name, id) = (session.as_str().as_bytes().to_vec(), id.to_owned());
        let removed = self.database.long_call(move |connection| async move {
            let delete = "DELETE FROM trimtab.outputs USING trimtab.sessions
                 WHERE sessions.name = $1 AND outputs.session = sessions.id AND outputs.id = $2
                 RETURNING outputs.id";
            delete_and_count(connection, delete, &[&name, &id]).await
        })?;
        if removed.is_empty() {
            return Err(Error::NotFound);
        }
        self.remove_unheld()
    }

    /// Removes a session, whether it is in use or not.
    pub(super) fn delete_whole_session(&self, session: &SessionId) -> Result<()> {
        self.check_reach(std::iter::once(session))?;
        if self.remove_sessions(&[(session, None)])?.is_empty() {
            return Err(Error::NotFound);
        }
        self.remove_unheld()
    }

    /// Fails if outputs of the sessions are in an object store that this process does not know:
    /// their rows would be removed, and their bytes would stay.
    fn check_reach<'s>(&self, sessions: impl Iterator<Item = &'s SessionId>) -> Result<()> {
        if self.bodies.objects.is_some() {
            return Ok(());
        }
        let names = sessions.map(|session| session.as_str().as_bytes().to_vec());
        let names: Vec<Vec<u8>> = names.collect();
        let has_objects = self.database.long_call(move |connection| async move {
            let select = "SELECT FROM trimtab.sessions
                 JOIN trimtab.outputs ON outputs.session = sessions.id
                 JOIN trimtab.blobs ON blobs.id IN (outputs.whole, outputs.text)
                 WHERE sessions.name = ANY($1) AND blobs.in_object_store LIMIT 1";
            let found = rows::query_one(&connection, select, &[&names]).await?;
            Ok(found.is_some())
        })?;
        if has_objects {
            return Err(Error::Unsupported(
                "remove outputs from the object store: the setting `blobs` is missing\nhint: set the object store with --blobs or TRIMTAB_BLOBS",
            ));
        }
        Ok(())
    }

    /// Removes sessions in batches, and returns those that were removed. A session with a time of
    /// its last use stays if it was used later, or if it is leased.
    fn remove_sessions(
        &self,
        sessions: &[(&SessionId, Option<u64>)],
    ) -> Result<BTreeSet<SessionId>> {
        // The delete itself compares the times: a session that another process uses meanwhile would
        // otherwise be removed between a look at it and the delete.
        let delete = concat!(
            "WITH removed AS (
                 DELETE FROM trimtab.sessions
                 USING unnest($1::bytea[], $2::bigint[]) AS gone (name, used)
                 WHERE sessions.name = gone.name AND (gone.used IS NULL
                     OR (sessions.used = gone.used AND sessions.leased_until <= ",
            time_or_now!("$3"),
            ")) RETURNING sessions.name
             ), unclaimed AS (
                 DELETE FROM trimtab.claims USING removed WHERE claims.session = removed.name
             )
             SELECT name FROM removed"
        );
        let now = self.now();
        let mut removed = BTreeSet::new();
        for batch in sessions.chunks(BATCH) {
            let values = batch
                .iter()
                .map(|(name, used)| (name.as_str().as_bytes().to_vec(), used.map(signed)));
            let (names, used): (Vec<Vec<u8>>, Vec<Option<i64>>) = values.unzip();
            let names = self.database.long_call(move |connection| async move {
                let values: [&(dyn ToSql + Sync); 3] = [&names, &used, &now];
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

    /// Removes blobs that no output needs, in batches, and their bodies.
    pub(super) fn remove_unheld(&self) -> Result<()> {
        loop {
            let may_remove_objects = self.bodies.objects.is_some();
            let gone = self.database.long_call(move |connection| async move {
                // A blob that an output is about to name is locked, and skipped.
                let delete = "DELETE FROM trimtab.blobs WHERE id IN (
                         SELECT id FROM trimtab.blobs
                         WHERE NOT EXISTS (SELECT FROM trimtab.outputs WHERE whole = blobs.id)
                             AND NOT EXISTS (SELECT FROM trimtab.outputs WHERE text = blobs.id)
                             AND ($2 OR NOT in_object_store)
                         LIMIT $1 FOR UPDATE SKIP LOCKED
                     ) RETURNING body, in_object_store";
                let rows = connection
                    .query(delete, &[&signed(BATCH as u64), &may_remove_objects])
                    .await;
                match rows {
                    // An output named one of them after the query had started. The next query sees
                    // that output.
                    Err(error) if error.code() == Some(&SqlState::FOREIGN_KEY_VIOLATION) => {
                        Ok(None)
                    }
                    rows => {
                        let rows = rows.map_err(from_postgres)?;
                        Ok(Some(rows.iter().map(body_name).collect::<Vec<_>>()))
                    }
                }
            })?;
            match gone {
                None => {}
                Some(gone) if gone.is_empty() => return Ok(()),
                Some(gone) => self.bodies.remove(gone)?,
            }
        }
    }

    /// Decides without a lock. A session that came into use after the snapshot stays, unless the
    /// request names it.
    pub(super) fn collect_garbage(&self, request: &CollectOptions) -> Result<CollectReport> {
        let asked = self.now();
        let (now, snapshot) = self.database.long_call(move |connection| async move {
            let select = concat!("SELECT ", time_or_now!("$1"));
            let now = rows::query_one(&connection, select, &[&asked]).await?;
            let now = now.map_or(0, |row| row.get(0));
            let snapshot = super::snapshot::take(connection, now).await?;
            Ok((unsigned(now), snapshot))
        })?;
        let mut removal = collect::decide(&snapshot, request, now);
        if !request.dry_run {
            self.check_reach(removal.sessions.iter())?;
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
            let removed = self.remove_sessions(&planned)?;
            let mut staying = removal.sessions.clone();
            staying.retain(|name| !removed.contains(name));
            removal.retain_sessions(&snapshot, &staying);
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
