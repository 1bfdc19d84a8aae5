//! Collection: decides on a snapshot of the store, then removes.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, Transaction};

use super::disk::{Dir, UNFINISHED, is_random_name};
use super::repair::DAMAGED;
use super::rows::{self, SessionRow, unsigned};
use super::{FolderStore, meta};
use crate::collect::{self, SnapshotSession, StoreSnapshot};
use crate::{CollectOptions, CollectReport, Result, SessionId, SessionInfo};

/// A file that no row names may belong to a put in progress, but not after an hour.
const STRAY_AFTER: u64 = 60 * 60 * 1000;
/// The limit if text must be gone now: a put in progress has changed its file within the last
/// minute.
const STRAY_AFTER_SCRUB: u64 = 60 * 1000;

impl FolderStore {
    /// Decides without a write lock. Sessions that came into use since then stay, unless the
    /// request names them.
    pub(super) fn sweep(&self, request: &CollectOptions) -> Result<CollectReport> {
        let now = self.now();
        let stray_after = if request.scrub {
            STRAY_AFTER_SCRUB
        } else {
            STRAY_AFTER
        };
        let before = now.saturating_sub(stray_after);
        let mut snapshot = self.reading(|db| take_snapshot(db, now))?;
        if request.doubts_clock {
            let newest = snapshot.sessions.iter().map(|session| session.used).max();
            let newest = newest.unwrap_or(now);
            snapshot.ages_since = self.with_reserve(|db| meta::look_at_clock(db, now, newest))?;
        }
        // Decide on the snapshot, without a lock: a large store takes a while.
        let mut removal = collect::decide(&snapshot, request, now);
        if request.dry_run {
            removal.report.stray_files = self.strays(before)?.len() as u64;
            return Ok(removal.report);
        }
        let known: BTreeMap<&SessionId, u64> =
            snapshot.sessions.iter().map(|s| (&s.id, s.used)).collect();
        let staying = self.hide_sessions(&removal.sessions, |db, row| {
            // The use time is unchanged since the snapshot, so nobody has used the session.
            let is_unused = known.get(&row.id) == Some(&row.used);
            let is_leased = || Ok(meta::leased(db, now)?.contains(&row.row));
            // A session named in the request is removed even if it is in use.
            Ok(request.sessions.contains(&row.id) || (is_unused && !is_leased()?))
        })?;
        removal.retain_sessions(&snapshot, &staying);
        let mut report = removal.report;
        self.remove_garbage()?;
        let strays = self.strays(before)?;
        strays.iter().try_for_each(|(dir, name)| dir.remove(name))?;
        report.stray_files = strays.len() as u64;
        if !request.sessions.is_empty() {
            report.stray_files += self.remove_damaged_copies()?;
        }
        // Expired leases of killed processes would accumulate.
        self.with_reserve(|db| meta::remove_expired_leases(db, now))?;
        self.give_back()?;
        report.traces_left = request.scrub && !self.scrub()?;
        // Recreate the reserve last, when space has been freed.
        self.keep_reserve();
        Ok(report)
    }

    /// Removes databases that a repair moved aside, because they contain the erased sessions too.
    /// Returns the number of files.
    fn remove_damaged_copies(&self) -> Result<u64> {
        let mut names = self.dir.names()?;
        names.retain(|name| name.starts_with(DAMAGED));
        names.iter().try_for_each(|name| self.dir.remove(name))?;
        Ok(names.len() as u64)
    }

    /// Old files that no row names.
    fn strays(&self, before: u64) -> Result<Vec<(&Dir, String)>> {
        let mut strays = Vec::new();
        for dir in [&*self.dir, &*self.blobs, &*self.spills] {
            // List files before reading rows, so that a file named meanwhile is not in the list.
            let names = dir.names()?;
            let files = "SELECT file FROM blobs WHERE file IS NOT NULL
                 UNION ALL SELECT file FROM spills";
            let in_use =
                self.reading(|db| rows::query_all(db, files, [], |row| row.get(0).map(Some)))?;
            let in_use: BTreeSet<String> = in_use.into_iter().collect();
            for name in names {
                // SQLite creates these files next to an unfinished database.
                let stem = name.strip_suffix("-wal").or(name.strip_suffix("-shm"));
                let stem = stem.unwrap_or(&name);
                let ours = is_random_name(stem.strip_prefix(UNFINISHED).unwrap_or(stem));
                // Anything but a regular file is not ours.
                let entry = dir.entry(&name).ok().flatten();
                let old = entry.is_some_and(|entry| entry.changed < before);
                if ours && old && !in_use.contains(&name) {
                    strays.push((dir, name));
                }
            }
        }
        Ok(strays)
    }
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
        let held = rows::query_one(db, count, [session.row], |row| {
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

fn take_snapshot(db: &Connection, now: u64) -> Result<StoreSnapshot> {
    let rows = rows::sessions(db)?;
    let leased: BTreeSet<i64> = meta::leased(db, now)?.into_iter().collect();
    let names: BTreeMap<i64, SessionId> =
        rows.iter().map(|row| (row.row, row.id.clone())).collect();
    let blobs = blob_sizes(db)?;
    let not_before = earlier_creations(&rows, now);
    let sessions = rows.into_iter().map(|row| {
        let size = "SELECT coalesce(sum(length(bytes)), 0) FROM entries WHERE session = ?1";
        let size = rows::query_one(db, size, [row.row], |row| row.get::<_, i64>(0).map(Some))?;
        Ok(SnapshotSession {
            parent: row.parent.and_then(|row| names.get(&row).cloned()),
            id: row.id,
            used: row.used,
            leased: leased.contains(&row.row),
            stream_bytes: unsigned(size.unwrap_or(0)),
            outputs: outputs(db, row.row)?,
        })
    });
    let sessions = sessions.collect::<Result<_>>()?;
    Ok(StoreSnapshot {
        sessions,
        blobs,
        ages_since: 0,
        not_before,
    })
}

/// The newest creation of a session before each one. Numbers of rows ascend whatever the clock
/// shows; a time that is still to come is wrong.
fn earlier_creations(rows: &[SessionRow], now: u64) -> BTreeMap<SessionId, u64> {
    let mut in_order: Vec<&SessionRow> = rows.iter().filter(|row| row.created <= now).collect();
    in_order.sort_by_key(|row| row.row);
    let newest = in_order.into_iter().scan(0, |newest, row| {
        *newest = row.created.max(*newest);
        Some((row.id.clone(), *newest))
    });
    newest.collect()
}

/// The stored size of each blob, without reading images.
fn blob_sizes(db: &Connection) -> Result<BTreeMap<u64, u64>> {
    let select = "SELECT id, length(image) FROM blobs";
    let sizes = rows::query_all(db, select, [], |row| {
        Ok(Some((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?)))
    })?;
    let sizes = sizes.into_iter().map(|(id, size)| {
        // A damaged row frees an unknown size, and must not prevent freeing others.
        let of_file = || rows::blob(db, id).map_or(0, |row| row.outline.image_size());
        (unsigned(id), size.map_or_else(of_file, unsigned))
    });
    Ok(sizes.collect())
}

fn outputs(db: &Connection, session: i64) -> Result<Vec<Vec<u64>>> {
    let select = "SELECT blob, text FROM refs WHERE session = ?1";
    rows::query_all(db, select, [session], |row| {
        let blob: i64 = row.get(0)?;
        let text: Option<i64> = row.get(1)?;
        let blobs = std::iter::once(blob).chain(text).map(unsigned);
        Ok(Some(blobs.collect()))
    })
}
