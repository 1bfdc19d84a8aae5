//! Removes sessions and outputs.
//!
//! A session is removed in two parts. First its row is deleted in one short transaction, which
//! makes it invisible to everybody. Its other rows are then garbage and are removed in small steps.
//! If the process is killed in between, the next collection finds the garbage.

use rusqlite::{Connection, Transaction, params};

use super::disk::is_random_name;
use super::rows::{self, SessionRow, signed};
use super::schema::from_sqlite;
use super::{FolderStore, meta};
use crate::refs::well_formed;
use crate::{Error, Result, SessionId};

// SQLite is built without DELETE ... LIMIT by default, so a subquery limits the rows.
const SOME_REFS: &str = "DELETE FROM refs WHERE session = ?1
     AND id IN (SELECT id FROM refs WHERE session = ?1 LIMIT ?2)";
const SOME_ENTRIES: &str = "DELETE FROM entries WHERE session = ?1 AND (stream, position) IN
     (SELECT stream, position FROM entries WHERE session = ?1 LIMIT ?2)";
impl FolderStore {
    pub(super) fn delete_output(&self, session: &SessionId, id: &str) -> Result<()> {
        let (spills, files) = self.with_reserve(|db| {
            let session = rows::session(db, session)?.ok_or(Error::NotFound)?;
            let found = if well_formed(id) {
                rows::reference(db, session.row, id)?
            } else {
                None
            };
            let reference = found.ok_or(Error::NotFound)?;
            let spills = remove_output(db, session.row, id)?;
            let blobs: Vec<i64> = std::iter::once(reference.blob)
                .chain(reference.text)
                .collect();
            // Count the removal in the same transaction, so that no process can use a removed ref
            // unnoticed.
            meta::note_removal(db)?;
            Ok((spills, remove_unheld(db, &blobs)?))
        })?;
        // Files after rows: a row without its file would be a loss.
        self.remove_spills(&spills)?;
        self.remove_blobs(&files)
    }

    pub(super) fn delete_whole_session(&self, session: &SessionId) -> Result<()> {
        self.with_reserve(|db| {
            let session = rows::session(db, session)?.ok_or(Error::NotFound)?;
            hide(db, &session)?;
            meta::note_removal(db)
        })?;
        self.remove_garbage()
    }

    /// Hides the sessions for which `may_go` returns true; returns the others.
    pub(super) fn hide_sessions(
        &self,
        sessions: &[SessionId],
        may_go: impl Fn(&Connection, &SessionRow) -> Result<bool>,
    ) -> Result<Vec<SessionId>> {
        let mut staying = Vec::new();
        self.in_steps(sessions, |db, sessions| {
            let mut kept = Vec::new();
            for session in sessions {
                let Some(row) = rows::session(db, session)? else {
                    continue;
                };
                if may_go(db, &row)? {
                    hide(db, &row)?;
                } else {
                    kept.push(session.clone());
                }
            }
            // Do not disturb other processes if nothing was removed.
            if kept.len() < sessions.len() {
                meta::note_removal(db)?;
            }
            Ok(kept)
        })
        .try_for_each(|kept| kept.map(|kept| staying.extend(kept)))?;
        Ok(staying)
    }

    /// Removes `all` in steps, each with as many as the disk has room for.
    fn in_steps<'s, A, T>(
        &'s self,
        all: &'s [A],
        remove: impl Fn(&Transaction<'_>, &[A]) -> Result<T> + 's,
    ) -> impl Iterator<Item = Result<T>> + 's {
        let (mut left, mut steps) = (all, self.steps());
        std::iter::from_fn(move || {
            if left.is_empty() {
                return None;
            }
            let step = steps.run(|db, most| {
                let some = left.get(..most).unwrap_or(left);
                Ok((some.len(), remove(db, some)?))
            });
            Some(step.map(|(done, removed)| {
                left = left.get(done..).unwrap_or_default();
                removed
            }))
        })
    }

    /// Removes rows of hidden sessions, unreferenced blobs, and their files. Rows are removed
    /// before files: a file without a row is removed later, but a row without a file would be a
    /// loss.
    pub(super) fn remove_garbage(&self) -> Result<()> {
        for session in self.gone_sessions("spills")? {
            let spills = self.with_reserve(|db| {
                let delete = "DELETE FROM spills WHERE session = ?1 RETURNING file";
                rows::query_all(db, delete, [session], |row| row.get(0).map(Some))
            })?;
            self.remove_spills(&spills)?;
        }
        let mut steps = self.steps();
        for (table, delete) in [("refs", SOME_REFS), ("entries", SOME_ENTRIES)] {
            for session in self.gone_sessions(table)? {
                let some = |db: &Transaction<'_>, most: usize| {
                    // The statement runs in many small steps, so keep it prepared.
                    let mut delete = db.prepare_cached(delete).map_err(from_sqlite)?;
                    delete
                        .execute(params![session, signed(most as u64)])
                        .map_err(from_sqlite)
                };
                while steps.run(some)? > 0 {}
            }
        }
        self.remove_unheld_blobs()
    }

    /// The numbers of hidden sessions that still have rows in `table`. The query jumps from one
    /// session to the next in the index of the table, without reading all rows.
    fn gone_sessions(&self, table: &str) -> Result<Vec<i64>> {
        let select = format!(
            "WITH RECURSIVE held(session) AS (
                 SELECT min(session) FROM {table}
                 UNION ALL
                 SELECT (SELECT min(session) FROM {table} WHERE session > held.session)
                 FROM held WHERE held.session IS NOT NULL
             )
             SELECT session FROM held
             WHERE session IS NOT NULL AND session NOT IN (SELECT id FROM sessions)"
        );
        self.reading(|db| rows::query_all(db, &select, [], |row| row.get(0).map(Some)))
    }

    /// Removes unreferenced blobs. They are searched without a write lock and checked again when
    /// they are removed.
    fn remove_unheld_blobs(&self) -> Result<()> {
        let select = "SELECT id FROM blobs WHERE id NOT IN (
                 SELECT blob FROM refs UNION ALL SELECT text FROM refs WHERE text IS NOT NULL
             )";
        let unheld: Vec<i64> =
            self.reading(|db| rows::query_all(db, select, [], |row| row.get(0).map(Some)))?;
        for files in self.in_steps(&unheld, |db, blobs| remove_unheld(db, blobs)) {
            self.remove_blobs(&files?)?;
        }
        Ok(())
    }

    fn remove_blobs(&self, files: &[String]) -> Result<()> {
        files.iter().try_for_each(|name| self.blobs.remove(name))
    }

    fn remove_spills(&self, files: &[String]) -> Result<()> {
        // The rows may be damaged. A name that we did not generate could be any file.
        let ours = files.iter().filter(|name| is_random_name(name));
        ours.into_iter()
            .try_for_each(|name| self.spills.remove(name))
    }
}

/// Removes the row of a session. Its lease expires: numbers of sessions are never used again.
fn hide(db: &Connection, session: &SessionRow) -> Result<()> {
    for mut child in rows::children(db, session.row)? {
        // The owner stays, because it still identifies the blobs that the tree shares.
        child.parent = None;
        rows::save_session(db, &child)?;
    }
    rows::execute(db, "DELETE FROM sessions WHERE id = ?1", [session.row])
}

/// Removes the row of an output; returns the names of its spilled files.
fn remove_output(db: &Connection, session: i64, id: &str) -> Result<Vec<String>> {
    let spilled = "DELETE FROM spills WHERE session = ?1 AND id = ?2 RETURNING file";
    let files = rows::query_all(db, spilled, params![session, id], |row| {
        row.get(0).map(Some)
    })?;
    let delete = "DELETE FROM refs WHERE session = ?1 AND id = ?2";
    rows::execute(db, delete, params![session, id])?;
    Ok(files)
}

/// Removes unreferenced blobs among `blobs`; returns the names of their files. Only sessions of the
/// owner's tree can reference a blob.
fn remove_unheld(db: &Connection, blobs: &[i64]) -> Result<Vec<String>> {
    let numbers: Vec<String> = blobs.iter().map(ToString::to_string).collect();
    let numbers = format!("[{}]", numbers.join(","));
    let delete = "WITH
             candidates AS (SELECT value AS id FROM json_each(?1)),
             owners AS (
                 SELECT DISTINCT owner FROM blobs WHERE id IN (SELECT id FROM candidates)
             ),
             holders AS (
                 SELECT id FROM sessions
                 WHERE owner IN (SELECT owner FROM owners) OR id IN (SELECT owner FROM owners)
             )
         DELETE FROM blobs WHERE id IN (SELECT id FROM candidates) AND id NOT IN (
             SELECT blob FROM refs WHERE session IN (SELECT id FROM holders)
             UNION ALL
             SELECT text FROM refs
             WHERE session IN (SELECT id FROM holders) AND text IS NOT NULL
         ) RETURNING file";
    let files = rows::query_all(db, delete, [numbers], |row| {
        row.get::<_, Option<String>>(0).map(Some)
    })?;
    let files = files.into_iter().flatten();
    Ok(files.filter(|name| is_random_name(name)).collect())
}
