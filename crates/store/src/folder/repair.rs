//! Builds a new database from the readable parts of a damaged one.
//!
//! The damaged database first gets a second name and stays under it. The new one is built under
//! another name and finally replaces the old one. A killed repair leaves the store unchanged, and
//! the next repair starts from the same bytes.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, named_params, params};

use super::check::{self, StoreCheck};
use super::disk::{Dir, FileIdentity};
use super::first_page::FirstPageCopy;
use super::rows::{self, BlobRow, RefRow, SessionRow, signed};
use super::salvage::{SalvageSink, SpillRow};
use super::schema::{self, DATABASE, NewDatabase, USERS, from_sqlite};
use super::streams::{self, PackedEntry};
use super::{FolderStore, meta};
use crate::{Error, Result, clock};

/// The prefix of databases that were moved aside.
pub(super) const DAMAGED: &str = "damaged-";

/// The result of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairReport {
    /// What was found and lost.
    pub found: StoreCheck,
    /// The new name of the damaged database; none if nothing was wrong.
    pub moved_to: Option<PathBuf>,
}

impl FolderStore {
    /// Builds a new database from the readable parts of a damaged one. Fails while another process
    /// has the store open.
    pub fn repair(path: impl AsRef<Path>) -> Result<RepairReport> {
        let dir = Dir::open(path.as_ref(), None)?;
        // The lock is held until the repair ends, because every other process takes it when
        // opening.
        let users = dir.open_or_create(USERS)?;
        if users.try_lock().is_err() {
            return Err(Error::InUse {
                path: dir.path().to_owned(),
                why: "another process has it open",
            });
        }
        let blobs = dir.folder("blobs")?;
        let found = Self::check(dir.path())?;
        if found.is_sound() {
            let moved_to = None;
            return Ok(RepairReport { found, moved_to });
        }
        let aside = move_aside(&dir)?;
        let new = NewDatabase::make(&dir)?;
        begin(&new.connection)?;
        let mut sink = DatabaseRebuild {
            db: &new.connection,
        };
        let found = match &aside {
            Some(name) => save(&dir, name, &blobs, &mut sink)?,
            None => found,
        };
        finish(&new.connection)?;
        // The old write-ahead log belongs to the old database and must not be applied to the new
        // one.
        schema::remove_log(&dir)?;
        new.finish(&dir)?;
        let moved_to = aside.map(|name| dir.path().join(name));
        Ok(RepairReport { found, moved_to })
    }
}

/// Gives the damaged database and its write-ahead log a second name; none if there is no database.
/// After an interrupted repair they already have one.
fn move_aside(dir: &Dir) -> Result<Option<String>> {
    if dir.entry(DATABASE)?.is_none() {
        return Ok(None);
    }
    let current = FileIdentity::at(&dir.path().join(DATABASE))?;
    for name in dir.names()? {
        let is_database = name.starts_with(DAMAGED) && name.strip_suffix(".db").is_some();
        if is_database && FileIdentity::at(&dir.path().join(&name))? == current {
            return Ok(Some(name));
        }
    }
    let name = format!("{DAMAGED}{}.db", clock::system()());
    let log = format!("{DATABASE}-wal");
    // The log is linked first: without it the copy of the database would miss its last writes.
    if dir.entry(&log)?.is_some() {
        dir.link(&log, &format!("{name}-wal"))?;
    }
    dir.link(DATABASE, &name)?;
    dir.sync()?;
    Ok(Some(name))
}

/// Copies everything readable and reports the faults.
fn save(dir: &Dir, name: &str, blobs: &Dir, sink: &mut DatabaseRebuild<'_>) -> Result<StoreCheck> {
    let found = check::salvage_database(dir, name, Some(blobs), sink)?;
    // If no session is readable, the first page may be lost. Try with a page of an empty store.
    if found.sessions > 0 {
        return Ok(found);
    }
    let Some(copied) = FirstPageCopy::make(dir, name)? else {
        return Ok(found);
    };
    let again = check::salvage_database(dir, &copied.name, Some(blobs), sink)?;
    Ok(StoreCheck {
        faults: found.faults,
        ..again
    })
}

fn begin(db: &Connection) -> Result<()> {
    db.execute_batch("BEGIN").map_err(from_sqlite)
}

/// Adds a lost secret, and checks the new database.
fn finish(db: &Connection) -> Result<()> {
    meta::complete(db)?;
    // Processes that remember refs of the old database must look them up again.
    meta::note_removal(db)?;
    db.execute_batch("COMMIT").map_err(from_sqlite)?;
    let sound = db.query_row("PRAGMA integrity_check(1)", [], |row| {
        row.get::<_, String>(0)
    });
    if sound.map_err(from_sqlite)? == "ok" {
        Ok(())
    } else {
        Err(Error::damaged("the repaired database"))
    }
}

/// Writes the salvaged rows into a new database, under the same ids.
struct DatabaseRebuild<'a> {
    db: &'a Connection,
}

impl SalvageSink for DatabaseRebuild<'_> {
    fn secret(&mut self, secret: &[u8; 32]) -> Result<()> {
        meta::set_secret(self.db, secret)
    }

    fn session(&mut self, session: &SessionRow) -> Result<()> {
        let insert = "INSERT INTO sessions
             (id, name, secret, created, used, puts, log, journal, seal)
             VALUES (?1, ?2, ?3, 0, 0, 0, 0, 0, x'')";
        let secret = session.secret.as_bytes();
        let values = params![session.row, session.id.as_str(), secret];
        rows::execute(self.db, insert, values)?;
        // Sets all other columns, and the seal that covers them.
        rows::save_session(self.db, session)
    }

    fn entry(&mut self, place: streams::EntryPosition, entry: &PackedEntry) -> Result<()> {
        streams::insert(self.db, place, entry)
    }

    fn blob(&mut self, id: i64, owner: i64, row: &BlobRow, image: Option<&[u8]>) -> Result<()> {
        let insert = "INSERT INTO blobs
             (id, owner, digest, byte_size, newlines, outline, seal, file, image)
             VALUES (:id, :owner, :digest, :byte_size, :newlines, :outline, :seal, :file, :image)";
        let outline = &row.outline;
        let file = row.file.as_deref();
        let values = named_params! {
            ":id": id,
            ":owner": owner,
            ":digest": outline.digest,
            ":byte_size": signed(outline.byte_size),
            ":newlines": signed(outline.newlines),
            ":outline": outline.encode(),
            ":seal": rows::blob_seal(outline, file),
            ":file": file,
            ":image": image,
        };
        rows::execute(self.db, insert, values)
    }

    fn reference(&mut self, reference: &RefRow) -> Result<()> {
        rows::insert_reference(self.db, reference)
    }

    fn spill(&mut self, spill: &SpillRow) -> Result<()> {
        let insert = "INSERT INTO spills (session, id, file, sha256) VALUES (?1, ?2, ?3, ?4)";
        let values = params![spill.session, spill.id, spill.file, spill.sha256];
        rows::execute(self.db, insert, values)
    }
}
