//! Space: taken when there is none left, given back when there is.

use std::sync::PoisonError;
use std::time::Duration;

use rusqlite::{Connection, Transaction};

use super::schema::from_sqlite;
use super::{Access, FolderStore};
use crate::{Error, Result};

/// A file whose space is used when there is no other.
pub(super) const RESERVE: &str = "reserve";
/// Enough for the pages that one step of a removal touches.
const RESERVE_BYTES: usize = 1024 * 1024;
/// Rows that one step removes: few enough that nobody waits long for its turn to write.
const STEP_ROWS: usize = 128;
/// Free pages, of 16 KiB each, that one step gives back.
const STEP_PAGES: usize = 256;
/// Between two steps others get their turn to write.
const PAUSE: Duration = Duration::from_millis(1);
/// Databases up to this size are written anew in memory; larger ones take a temporary file.
const SCRUB_IN_MEMORY: u64 = 64 * 1024 * 1024;

impl FolderStore {
    /// Writes what frees space. That takes some space itself: on a full disk, the reserve's.
    pub(super) fn freeing<T>(&self, write: impl Fn(&Transaction<'_>) -> Result<T>) -> Result<T> {
        match self.writing(&write) {
            Err(Error::Full) => {}
            done => return done,
        }
        self.dir.remove(RESERVE)?;
        // The log of writes that are in the database by now takes space, too.
        self.checkpoint()?;
        self.writing(write)
    }

    /// Removes in steps, see [`Steps::run`].
    pub(super) fn steps(&self) -> Steps<'_> {
        let rows = STEP_ROWS;
        Steps { store: self, rows }
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

    /// Gives free pages and the write-ahead log back to the disk, step by step.
    pub(super) fn give_back(&self) -> Result<()> {
        if self.access == Access::Frozen {
            return Ok(());
        }
        let mut free = u64::MAX;
        loop {
            let left = match self.on_writer(vacuum_step) {
                // Others write, or there is no room for the pages that move: the next time.
                Err(Error::Busy | Error::Full) => break,
                left => left?,
            };
            if left == 0 || left >= free {
                break;
            }
            free = left;
            std::thread::sleep(PAUSE);
        }
        self.checkpoint()?;
        Ok(())
    }

    /// Writes the database anew: pages keep copies of rows that were moved within them, which
    /// removing a row does not overwrite. False if that was not possible now.
    pub(super) fn scrub(&self) -> Result<bool> {
        let size = self.dir.entry(super::DATABASE)?;
        let in_memory = size.is_some_and(|entry| entry.byte_size <= SCRUB_IN_MEMORY);
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

    /// Moves all writes from the write-ahead log into the database and empties the log. False
    /// if others were reading it for too long.
    fn checkpoint(&self) -> Result<bool> {
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

/// A removal in steps, each a transaction of its own, so that nobody waits long for its turn
/// to write and a full disk has room for each.
pub(super) struct Steps<'s> {
    store: &'s FolderStore,
    rows: usize,
}

impl Steps<'_> {
    /// Carries out one step, which may remove at most so many rows as it is told.
    pub(super) fn run<T>(
        &mut self,
        step: impl Fn(&Transaction<'_>, usize) -> Result<T>,
    ) -> Result<T> {
        loop {
            let done = self.store.freeing(|db| step(db, self.rows));
            match done {
                // A smaller step takes less space.
                Err(Error::Full) if self.rows > 1 => self.rows = (self.rows / 4).max(1),
                done => {
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

/// Gives some free pages back; gives how many are left.
fn vacuum_step(db: &Connection) -> Result<u64> {
    let vacuum = format!("PRAGMA incremental_vacuum({STEP_PAGES})");
    let mut vacuum = db.prepare(&vacuum).map_err(from_sqlite)?;
    let mut rows = vacuum.query([]).map_err(from_sqlite)?;
    // It frees one page for each row that is asked for.
    while rows.next().map_err(from_sqlite)?.is_some() {}
    drop(rows);
    let left = db.pragma_query_value(None, "freelist_count", |row| row.get::<_, i64>(0));
    left.map(super::rows::unsigned).map_err(from_sqlite)
}
