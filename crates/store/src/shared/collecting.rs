//! Removing outputs and sessions, and the bytes that nobody holds any more.
//!
//! Rows go first, then bodies: a body that outlives its row is found later, a row that outlived
//! its body would be a loss.

use std::collections::{BTreeMap, BTreeSet};

use super::SharedStore;
use super::body::BodyName;
use super::connect::from_postgres;
use super::rows::{millis, unsigned};
use crate::collect::{self, Picture, PictureOutput, PictureSession};
use crate::refs::well_formed;
use crate::{Collect, Collected, Error, Result, SessionId};

/// Chunks that no row names may belong to a put on its way; after an hour they do not.
const STRAY_AFTER: u64 = 60 * 60 * 1000;
/// Rows that one step removes, so that nobody waits long for a lock.
const STEP: i64 = 256;

impl SharedStore {
    pub(super) fn delete_output(&self, session: &SessionId, id: &str) -> Result<()> {
        if !well_formed(id) {
            return Err(Error::NotFound);
        }
        if self.remove_outputs(vec![(session.clone(), id.to_owned())])? == 0 {
            return Err(Error::NotFound);
        }
        self.remove_unheld()
    }

    /// Removes sessions of which `may_go` says so; gives how many went.
    pub(super) fn remove_sessions(
        &self,
        sessions: &[SessionId],
        may_go: &dyn Fn(&SessionId) -> bool,
    ) -> Result<u64> {
        let names = sessions.iter().filter(|session| may_go(session));
        let names: Vec<String> = names.map(ToString::to_string).collect();
        self.count_removal(
            "DELETE FROM sessions WHERE name = ANY($1)".to_owned(),
            names,
            Vec::new(),
        )
    }

    fn remove_outputs(&self, outputs: Vec<(SessionId, String)>) -> Result<u64> {
        let (sessions, ids) = outputs
            .into_iter()
            .map(|(session, id)| (session.to_string(), id))
            .unzip();
        let delete = "DELETE FROM outputs USING sessions,
                 unnest($1::text[], $2::text[]) AS gone (session, id)
             WHERE sessions.name = gone.session AND outputs.session = sessions.id
                 AND outputs.id = gone.id";
        self.count_removal(delete.to_owned(), sessions, ids)
    }

    /// Runs a delete, and counts it as one removal if anything went.
    fn count_removal(&self, delete: String, names: Vec<String>, ids: Vec<String>) -> Result<u64> {
        self.database.ask(move |mut connection| async move {
            let transaction = connection.transaction().await.map_err(from_postgres)?;
            let deleted = if ids.is_empty() {
                transaction.execute(&delete, &[&names]).await
            } else {
                transaction.execute(&delete, &[&names, &ids]).await
            };
            let deleted = deleted.map_err(from_postgres)?;
            if deleted > 0 {
                let count = "UPDATE store SET removals = removals + 1";
                transaction
                    .batch_execute(count)
                    .await
                    .map_err(from_postgres)?;
            }
            transaction.commit().await.map_err(from_postgres)?;
            Ok(deleted)
        })
    }

    /// Removes bytes that no output holds, step by step.
    pub(super) fn remove_unheld(&self) -> Result<()> {
        loop {
            let gone = self.database.ask(|connection| async move {
                // A blob that an output is about to name is locked, and skipped.
                let delete = "DELETE FROM blobs WHERE id IN (
                         SELECT id FROM blobs
                         WHERE NOT EXISTS (SELECT FROM outputs WHERE whole = blobs.id)
                             AND NOT EXISTS (SELECT FROM outputs WHERE text = blobs.id)
                         LIMIT $1 FOR UPDATE SKIP LOCKED
                     ) RETURNING body, in_object_store";
                let rows = connection
                    .query(delete, &[&STEP])
                    .await
                    .map_err(from_postgres)?;
                let name = |row: &tokio_postgres::Row| BodyName {
                    name: row.get(0),
                    in_object_store: row.get(1),
                };
                Ok(rows.iter().map(name).collect::<Vec<_>>())
            })?;
            if gone.is_empty() {
                return Ok(());
            }
            self.bodies.remove(gone)?;
        }
    }

    /// Decides without keeping others from writing. A session that came into use since then
    /// stays, unless it is named.
    pub(super) fn collect_garbage(&self, request: &Collect) -> Result<Collected> {
        let now = self.now();
        let picture = self.picture(now)?;
        let mut removal = collect::decide(&picture, request, now);
        if request.dry_run {
            removal.report.stray_files = self.strays(now)?.len() as u64;
            return Ok(removal.report);
        }
        let staying = self.in_use_again(&picture, request, &removal.sessions, now)?;
        removal.keep(&picture, &staying);
        self.remove_sessions(&removal.sessions, &|_| true)?;
        if !removal.outputs.is_empty() {
            self.remove_outputs(removal.outputs)?;
        }
        self.remove_unheld()?;
        let strays = self.strays(now)?;
        removal.report.stray_files = strays.len() as u64;
        self.bodies.remove(strays)?;
        Ok(removal.report)
    }

    /// Those of `sessions` that were used or leased since the picture was made.
    fn in_use_again(
        &self,
        picture: &Picture,
        request: &Collect,
        sessions: &[SessionId],
        now: u64,
    ) -> Result<Vec<SessionId>> {
        let known: BTreeMap<&SessionId, u64> = picture
            .sessions
            .iter()
            .map(|session| (&session.id, session.used))
            .collect();
        let names: Vec<String> = sessions.iter().map(ToString::to_string).collect();
        let found = self.database.ask(move |connection| async move {
            let select = "SELECT name, used, leased_until FROM sessions WHERE name = ANY($1)";
            let rows = connection
                .query(select, &[&names])
                .await
                .map_err(from_postgres)?;
            let times = |row: &tokio_postgres::Row| {
                let name = SessionId::known(row.get(0));
                (name, unsigned(row.get(1)), unsigned(row.get(2)))
            };
            Ok(rows.iter().map(times).collect::<Vec<_>>())
        })?;
        let in_use = found.into_iter().filter(|(name, used, leased_until)| {
            let is_unused = known.get(name) == Some(used) && *leased_until <= now;
            !request.sessions.contains(name) && !is_unused
        });
        Ok(in_use.map(|(name, ..)| name).collect())
    }

    /// Bodies that no row names, and that nobody is writing any more.
    fn strays(&self, now: u64) -> Result<Vec<BodyName>> {
        let before = millis(now.saturating_sub(STRAY_AFTER));
        self.database.ask(move |connection| async move {
            let select = "SELECT DISTINCT body FROM chunks
                 WHERE created < $1 AND NOT EXISTS (SELECT FROM blobs WHERE blobs.body = chunks.body)";
            let rows = connection.query(select, &[&before]).await.map_err(from_postgres)?;
            let name = |row: &tokio_postgres::Row| BodyName {
                name: row.get(0),
                in_object_store: false,
            };
            Ok(rows.iter().map(name).collect())
        })
    }

    fn picture(&self, now: u64) -> Result<Picture> {
        let now = millis(now);
        self.database.ask(move |connection| async move {
            let sessions = "SELECT sessions.id, sessions.name, above.name, sessions.used,
                     sessions.leased_until > $1, coalesce((
                         SELECT sum(octet_length(bytes)) FROM entries
                         WHERE entries.session = sessions.id
                     ), 0)::bigint
                 FROM sessions LEFT JOIN sessions AS above ON above.id = sessions.parent";
            let sessions = connection
                .query(sessions, &[&now])
                .await
                .map_err(from_postgres)?;
            let outputs = "SELECT session, id, whole, text FROM outputs";
            let outputs = connection
                .query(outputs, &[])
                .await
                .map_err(from_postgres)?;
            let blobs = "SELECT id, stored_size FROM blobs";
            let blobs = connection.query(blobs, &[]).await.map_err(from_postgres)?;
            let mut held: BTreeMap<i64, Vec<PictureOutput>> = BTreeMap::new();
            for row in &outputs {
                let (whole, text): (i64, Option<i64>) = (row.get(2), row.get(3));
                let blobs = std::iter::once(whole).chain(text).map(unsigned);
                held.entry(row.get(0)).or_default().push(PictureOutput {
                    id: row.get(1),
                    blobs: blobs.collect(),
                });
            }
            let sessions = sessions.iter().map(|row| {
                let parent: Option<String> = row.get(2);
                PictureSession {
                    id: SessionId::known(row.get(1)),
                    parent: parent.map(SessionId::known),
                    used: unsigned(row.get(3)),
                    leased: row.get(4),
                    stream_bytes: unsigned(row.get(5)),
                    outputs: held.remove(&row.get(0)).unwrap_or_default(),
                }
            });
            let sessions = sessions.collect();
            let blobs = blobs
                .iter()
                .map(|row| (unsigned(row.get(0)), unsigned(row.get(1))));
            Ok(Picture {
                sessions,
                blobs: blobs.collect(),
            })
        })
    }
}
