//! Removing: outputs, sessions, and what nothing names any more.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, Transaction, params};

use super::disk::{Dir, UNFINISHED, is_random_name};
use super::rows::{self, unsigned};
use super::schema::from_sqlite;
use super::{Access, FolderStore};
use crate::collect::{self, Picture, PictureOutput, PictureSession, Removal};
use crate::refs::well_formed;
use crate::{Collect, Collected, Error, Result, SessionId, SessionInfo};

/// A file that no row names may belong to a put on its way; after an hour it does not.
const STRAY_AFTER: u64 = 60 * 60 * 1000;

/// A file whose space is used when there is no other.
const RESERVE: &str = "reserve";
/// Enough for the pages that a removal touches.
const RESERVE_BYTES: usize = 1024 * 1024;

/// Names of files whose rows are gone.
#[derive(Default)]
struct Gone {
    blobs: Vec<String>,
    spills: Vec<String>,
}

impl FolderStore {
    pub(super) fn delete_output(&self, session: &SessionId, id: &str) -> Result<()> {
        let gone = self.freeing(|db| {
            let session = rows::session(db, session)?.ok_or(Error::NotFound)?;
            if !well_formed(id) || rows::reference(db, session.row, id)?.is_none() {
                return Err(Error::NotFound);
            }
            let mut gone = Gone::default();
            remove_output(db, session.row, id, &mut gone)?;
            remove_unheld(db, &mut gone)?;
            Ok(gone)
        })?;
        self.remove_files(&gone)
    }

    pub(super) fn delete_whole_session(&self, session: &SessionId) -> Result<()> {
        let gone = self.freeing(|db| {
            let mut gone = Gone::default();
            remove_session(db, session, &mut gone)?;
            remove_unheld(db, &mut gone)?;
            Ok(gone)
        })?;
        self.remove_files(&gone)
    }

    /// Rows first, then files: a file that outlives its row is a stray and is swept up later,
    /// a row that outlived its file would be a loss.
    pub(super) fn sweep(&self, request: &Collect) -> Result<Collected> {
        let now = self.now();
        if request.dry_run {
            let mut report =
                self.reading(|db| Ok(collect::decide(&picture(db)?, request, now).report))?;
            report.stray_files = self.strays(now)?.len() as u64;
            return Ok(report);
        }
        let (mut report, gone) = self.freeing(|db| {
            let removal = collect::decide(&picture(db)?, request, now);
            let gone = carry_out(db, &removal)?;
            Ok((removal.report, gone))
        })?;
        self.remove_files(&gone)?;
        let strays = self.strays(now)?;
        for (dir, name) in &strays {
            dir.remove(name)?;
        }
        report.stray_files = strays.len() as u64;
        self.give_back()?;
        self.keep_reserve();
        Ok(report)
    }

    /// Writes what frees space. That takes some space itself: on a full disk, the reserve's.
    fn freeing<T>(&self, write: impl Fn(&Transaction<'_>) -> Result<T>) -> Result<T> {
        match self.writing(&write) {
            Err(Error::Full) => {}
            done => return done,
        }
        self.dir.remove(RESERVE)?;
        self.writing(write)
    }

    /// Keeps some space back for [`freeing`](Self::freeing). Best effort: a disk that has no
    /// room for it now may have it later.
    pub(super) fn keep_reserve(&self) {
        if matches!(self.dir.entry(RESERVE), Ok(None)) {
            let reserve = self.dir.unfinished();
            let _ = reserve.and_then(|mut file| {
                file.write(&vec![0; RESERVE_BYTES])?;
                file.finish(RESERVE)
            });
        }
    }

    fn remove_files(&self, gone: &Gone) -> Result<()> {
        gone.blobs
            .iter()
            .try_for_each(|name| self.blobs.remove(name))?;
        gone.spills
            .iter()
            .try_for_each(|name| self.spills.remove(name))
    }

    /// Old files that no row names.
    fn strays(&self, now: u64) -> Result<Vec<(&Dir, String)>> {
        let mut strays = Vec::new();
        for dir in [&*self.dir, &*self.blobs, &*self.spills] {
            // Listed before the rows are read: a file named since is not in the list.
            let names = dir.names()?;
            let files = "SELECT file FROM blobs WHERE file IS NOT NULL
                 UNION ALL SELECT file FROM spills";
            let in_use = self.reading(|db| rows::all(db, files, [], |row| row.get(0).map(Some)))?;
            let in_use: BTreeSet<String> = in_use.into_iter().collect();
            for name in names {
                let ours = is_random_name(name.strip_prefix(UNFINISHED).unwrap_or(&name));
                // What is not a plain file is not ours to remove.
                let entry = dir.entry(&name).ok().flatten();
                let old = entry.is_some_and(|entry| entry.changed + STRAY_AFTER < now);
                if ours && old && !in_use.contains(&name) {
                    strays.push((dir, name));
                }
            }
        }
        Ok(strays)
    }

    /// Gives free pages and the write-ahead log back to the disk.
    fn give_back(&self) -> Result<()> {
        if self.access == Access::Frozen {
            return Ok(());
        }
        let connection = self
            .writer
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let vacuum = "PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE);";
        match connection.execute_batch(vacuum).map_err(from_sqlite) {
            // Readers hold it; the next one will.
            Err(Error::Busy) => Ok(()),
            done => done,
        }
    }
}

fn carry_out(db: &Connection, removal: &Removal) -> Result<Gone> {
    let mut gone = Gone::default();
    for session in &removal.sessions {
        remove_session(db, session, &mut gone)?;
    }
    for (session, id) in &removal.outputs {
        let session = rows::session(db, session)?.ok_or(Error::NotFound)?;
        remove_output(db, session.row, id, &mut gone)?;
    }
    remove_unheld(db, &mut gone)?;
    Ok(gone)
}

fn remove_output(db: &Connection, session: i64, id: &str, gone: &mut Gone) -> Result<()> {
    let spilled = "DELETE FROM spills WHERE session = ?1 AND id = ?2 RETURNING file";
    let files = rows::all(db, spilled, params![session, id], |row| {
        row.get(0).map(Some)
    })?;
    gone.spills.extend(files);
    rows::run(
        db,
        "DELETE FROM refs WHERE session = ?1 AND id = ?2",
        params![session, id],
    )
}

fn remove_session(db: &Connection, session: &SessionId, gone: &mut Gone) -> Result<()> {
    let session = rows::session(db, session)?.ok_or(Error::NotFound)?.row;
    let spilled = "DELETE FROM spills WHERE session = ?1 RETURNING file";
    gone.spills.extend(rows::all(db, spilled, [session], |row| {
        row.get(0).map(Some)
    })?);
    rows::run(db, "DELETE FROM refs WHERE session = ?1", [session])?;
    rows::run(db, "DELETE FROM entries WHERE session = ?1", [session])?;
    for mut child in rows::children(db, session)? {
        child.parent = None;
        rows::save_session(db, &child)?;
    }
    rows::run(db, "DELETE FROM sessions WHERE id = ?1", [session])
}

/// Removes blobs that no ref holds.
fn remove_unheld(db: &Connection, gone: &mut Gone) -> Result<()> {
    let delete = "DELETE FROM blobs WHERE id NOT IN (
             SELECT blob FROM refs UNION ALL SELECT text FROM refs WHERE text IS NOT NULL
         ) RETURNING file";
    let files = rows::all(db, delete, [], |row| {
        row.get::<_, Option<String>>(0).map(Some)
    })?;
    gone.blobs.extend(
        files
            .into_iter()
            .flatten()
            .filter(|name| is_random_name(name)),
    );
    Ok(())
}

pub(super) fn session_infos(db: &Transaction<'_>) -> Result<Vec<SessionInfo>> {
    let sessions = rows::sessions(db)?;
    let names: BTreeMap<i64, SessionId> = sessions
        .iter()
        .map(|row| (row.row, row.id.clone()))
        .collect();
    let count = "SELECT count(*), coalesce(sum(blobs.byte_size), 0)
         FROM refs JOIN blobs ON blobs.id = refs.blob WHERE refs.session = ?1";
    let infos = sessions.into_iter().map(|session| {
        let held = rows::one(db, count, [session.row], |row| {
            Ok(Some((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))
        })?;
        let (outputs, byte_size) = held.unwrap_or_default();
        Ok(SessionInfo {
            parent: session.parent.and_then(|row| names.get(&row).cloned()),
            session: session.id,
            created: session.created,
            used: session.used,
            outputs: unsigned(outputs),
            byte_size: unsigned(byte_size),
        })
    });
    infos.collect()
}

fn picture(db: &Connection) -> Result<Picture> {
    let rows = rows::sessions(db)?;
    let names: BTreeMap<i64, SessionId> =
        rows.iter().map(|row| (row.row, row.id.clone())).collect();
    let blobs = rows::all(db, "SELECT id FROM blobs", [], |row| {
        row.get::<_, i64>(0).map(Some)
    })?;
    let blobs = blobs.into_iter().map(|id| {
        // A damaged row frees an unknown size; it must not keep the others from being freed.
        let size = rows::blob(db, id).map_or(0, |row| row.outline.image_size());
        (unsigned(id), size)
    });
    let blobs = blobs.collect();
    let sessions = rows.into_iter().map(|row| {
        let size = "SELECT coalesce(sum(length(bytes)), 0) FROM entries WHERE session = ?1";
        let size = rows::one(db, size, [row.row], |row| row.get::<_, i64>(0).map(Some))?;
        Ok(PictureSession {
            parent: row.parent.and_then(|row| names.get(&row).cloned()),
            id: row.id,
            used: row.used,
            stream_bytes: unsigned(size.unwrap_or(0)),
            outputs: outputs(db, row.row)?,
        })
    });
    let sessions = sessions.collect::<Result<_>>()?;
    Ok(Picture { sessions, blobs })
}

fn outputs(db: &Connection, session: i64) -> Result<Vec<PictureOutput>> {
    let select = "SELECT id, blob, text FROM refs WHERE session = ?1 ORDER BY number";
    rows::all(db, select, [session], |row| {
        let blob: i64 = row.get(1)?;
        let text: Option<i64> = row.get(2)?;
        Ok(Some(PictureOutput {
            id: row.get(0)?,
            blobs: std::iter::once(blob).chain(text).map(unsigned).collect(),
        }))
    })
}
