//! Manages disk space: uses the reserve on a full disk, and returns free pages.

use std::sync::PoisonError;
use std::time::Duration;

use rusqlite::{Connection, Transaction};

use super::schema::from_sqlite;
use super::{DatabaseAccess, FolderStore};
use crate::{Error, Result};

/// A file whose space is released when the disk is full.
pub(super) const RESERVE: &str = "reserve";
/// Enough for a write-ahead log that has to go into the database first, and for the pages that
/// one step of a removal touches.
const RESERVE_BYTES: u64 = 8 << 20;
/// A smaller reserve is worth nothing.
const LEAST_RESERVE: u64 = 1 << 20;
/// Rows per step, few enough that other writers never wait long.
const STEP_ROWS: usize = 128;
/// Free pages, of 16 KiB each, that one step returns to the disk.
const STEP_PAGES: usize = 256;
/// The pause between two steps, in which others can write.
const PAUSE: Duration = Duration::from_millis(1);
/// Databases up to this size are rewritten in memory; larger ones need a temporary file.
const SCRUB_IN_MEMORY: u64 = 64 * 1024 * 1024;

impl FolderStore {
    /// Runs a transaction that frees space. It needs some space itself, on a full disk that of the
    /// reserve.
    pub(super) fn with_reserve<T>(
        &self,
        write: impl Fn(&Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        match self.writing(&write) {
            Err(Error::Full) => {}
            done => return done,
        }
        // The reserve gives the transaction just enough room.
        self.dir.remove(RESERVE)?;
        // The write-ahead log also occupies space for writes that are already in the database.
        self.checkpoint()?;
        self.writing(write)
    }

    /// Removes in steps, see [`RemovalSteps::run`].
    pub(super) fn steps(&self) -> RemovalSteps<'_> {
        let rows = STEP_ROWS;
        RemovalSteps { store: self, rows }
    }

    /// Reserves space for [`with_reserve`](Self::with_reserve). Best effort: a disk without room
    /// has a smaller reserve, and may have room later.
    pub(super) fn keep_reserve(&self) {
        let Ok(reserve) = self.dir.entry(RESERVE) else {
            return;
        };
        let has = reserve.map_or(0, |reserve| reserve.byte_size);
        let sizes = std::iter::successors(Some(RESERVE_BYTES), |bytes| Some(bytes / 2));
        let larger = sizes.take_while(|bytes| *bytes > has && *bytes >= LEAST_RESERVE);
        let allocate = |bytes| {
            let mut file = self.dir.unfinished()?;
            file.allocate(bytes)?;
            file.finish(RESERVE)
        };
        // The first size for which there is room.
        larger.into_iter().any(|bytes| allocate(bytes).is_ok());
    }

    /// Returns free pages and the write-ahead log to the disk, step by step.
    pub(super) fn give_back(&self) -> Result<()> {
        if self.access == DatabaseAccess::Frozen {
            return Ok(());
        }
        let (mut free, mut pages) = (u64::MAX, STEP_PAGES);
        loop {
            let left = match self.on_writer(|db| vacuum_step(db, pages)) {
                // There is no room to move so many pages. Those of the last steps leave the disk
                // when they leave the write-ahead log.
                Err(Error::Full) if pages > 1 => {
                    pages /= 4;
                    self.checkpoint()?;
                    continue;
                }
                // Others are writing, or there is no room at all. The next collection continues.
                Err(Error::Busy | Error::Full) => break,
                left => left?,
            };
            if pages < STEP_PAGES {
                self.checkpoint()?;
            }
            // No progress means that the rest cannot be freed now.
            if left == 0 || left >= free {
                break;
            }
            free = left;
            std::thread::sleep(PAUSE);
        }
        self.checkpoint()?;
        Ok(())
    }

    /// Rewrites the database, because pages keep copies of moved rows that a removal does not
    /// overwrite. False if that was not possible now.
    pub(super) fn scrub(&self) -> Result<bool> {
        let size = self.dir.entry(super::DATABASE)?;
        let in_memory = size.is_some_and(|entry| entry.byte_size <= SCRUB_IN_MEMORY);
        // A temporary file would leave a copy of the text on disk, so prefer memory.
        let place = if in_memory { "MEMORY" } else { "FILE" };
        let scrub = format!("PRAGMA temp_store = {place}; VACUUM; PRAGMA temp_store = DEFAULT;");
        let done = self.on_writer(|db| db.execute_batch(&scrub).map_err(from_sqlite));
        match done {
            Err(Error::Busy | Error::Full) => {
                self.checkpoint()?;
                Ok(false)
            }
            Err(error) => Err(error),
            Ok(()) => self.checkpoint(),
        }
    }

    /// Moves all writes from the write-ahead log into the database and truncates the log. False if
    /// readers held it for too long.
    pub(super) fn checkpoint(&self) -> Result<bool> {
        let busy = self.on_writer(|db| {
            let row = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
                row.get::<_, i64>(0)
            });
            row.map_err(from_sqlite)
        });
        match busy {
            Ok(busy) => Ok(busy == 0),
            Err(Error::Busy | Error::Full) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn on_writer<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let connection = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        work(&connection)
    }
}

/// A removal in steps. Each step is a transaction, so that other writers never wait long and a full
/// disk has room for each.
pub(super) struct RemovalSteps<'s> {
    store: &'s FolderStore,
    rows: usize,
}

impl RemovalSteps<'_> {
    /// Runs one step, which may remove at most the given number of rows.
    pub(super) fn run<T>(
        &mut self,
        step: impl Fn(&Transaction<'_>, usize) -> Result<T>,
    ) -> Result<T> {
        loop {
            let done = self.store.with_reserve(|db| step(db, self.rows));
            match done {
                // A smaller step needs less space.
                Err(Error::Full) if self.rows > 1 => self.rows = (self.rows / 4).max(1),
                done => {
                    // The disk is nearly full, so free the write-ahead log after each step.
                    if self.rows < STEP_ROWS {
                        self.store.checkpoint()?;
                    }
                    std::thread::sleep(PAUSE);
                    return done;
                }
            }
        }
    }
}

/// Returns some free pages to the disk, and the number of remaining ones.
fn vacuum_step(db: &Connection, pages: usize) -> Result<u64> {
    let vacuum = format!("PRAGMA incremental_vacuum({pages})");
    let mut vacuum = db.prepare(&vacuum).map_err(from_sqlite)?;
    let mut rows = vacuum.query([]).map_err(from_sqlite)?;
    // Each row of the result frees one page.
    while rows.next().map_err(from_sqlite)?.is_some() {}
    drop(rows);
    let left = db.pragma_query_value(None, "freelist_count", |row| row.get::<_, i64>(0));
    left.map(super::rows::unsigned).map_err(from_sqlite)
}
