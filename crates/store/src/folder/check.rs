//! Checks which parts of a store are intact.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::Connection;

use super::FolderStore;
use super::disk::Dir;
use super::salvage::{ReportOnly, Salvage, SalvageSink};
use super::schema::{self, DATABASE};
use crate::{Error, Result, SessionId};

/// The maximum number of reported structural faults.
const MOST_FAULTS: usize = 20;

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreCheck {
    /// Readable sessions.
    pub sessions: u64,
    /// Completely readable outputs.
    pub outputs: u64,
    /// Readable entries of logs and journals.
    pub entries: u64,
    /// Unreadable sessions, whose names are unknown.
    pub lost_sessions: u64,
    /// Unreadable parts of readable sessions.
    pub lost: Vec<(SessionId, String)>,
    /// True if the secret of the store is unreadable. Its users will then become new tenants.
    pub secret_lost: bool,
    /// Structural faults of the database, as `SQLite` reports them.
    pub faults: Vec<String>,
}

impl StoreCheck {
    /// True if nothing is lost and there are no faults.
    pub fn is_sound(&self) -> bool {
        self.lost_sessions == 0
            && self.lost.is_empty()
            && self.faults.is_empty()
            && !self.secret_lost
    }
}

impl FolderStore {
    /// Reads everything in the store at `path` and reports what is intact. Changes nothing, and may
    /// run while the store is in use.
    pub fn check(path: impl AsRef<Path>) -> Result<StoreCheck> {
        let dir = Dir::open(path.as_ref(), None)?;
        let blobs = dir.open_folder("blobs").ok();
        salvage_database(&dir, DATABASE, blobs.as_ref(), &mut ReportOnly)
    }
}

/// Reads the database `name` in `dir` and passes everything intact to the sink.
pub(super) fn salvage_database<S: SalvageSink>(
    dir: &Dir,
    name: &str,
    blobs: Option<&Dir>,
    sink: &mut S,
) -> Result<StoreCheck> {
    let mut report = StoreCheck::default();
    if dir.entry(name)?.is_none() {
        report.faults.push(format!("{name} is missing"));
        return Ok(report);
    }
    let db = match schema::open_to_read(dir, name) {
        Ok(db) => db,
        // Neither is damage, so neither is a reason for a repair.
        Err(error @ (Error::NewerFormat { .. } | Error::Busy)) => return Err(error),
        Err(error) => {
            report.secret_lost = true;
            report.faults.push(first_line(&error));
            return Ok(report);
        }
    };
    report.faults = faults(&db);
    let mut salvage = Salvage {
        db: &db,
        blobs,
        sink,
        report: &mut report,
        seen: BTreeMap::new(),
    };
    salvage.run()?;
    Ok(report)
}

/// The result of the integrity check of `SQLite`.
fn faults(db: &Connection) -> Vec<String> {
    let check = format!("PRAGMA integrity_check({MOST_FAULTS})");
    let said = db.prepare(&check).and_then(|mut check| {
        let rows = check.query_map([], |row| row.get::<_, String>(0))?;
        rows.collect::<rusqlite::Result<Vec<_>>>()
    });
    match said {
        Ok(said) => said.into_iter().filter(|line| line != "ok").collect(),
        Err(error) => vec![error.to_string()],
    }
}

fn first_line(error: &Error) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().to_owned()
}
