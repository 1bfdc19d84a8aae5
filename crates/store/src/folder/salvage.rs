//! Reads everything readable from a database that may be damaged.
//!
//! Rows are looked up one by one, so that a damaged page costs only the rows on it. Everything is
//! verified: rows by their seals, outputs and entries by their digests.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};

use super::disk::{Dir, is_random_name};
use super::rows::{self, BlobRow, RefRow, SessionRow};
use super::streams::{self, PackedEntry};
use super::{check::StoreCheck, meta};
use crate::image::{ImageBytes, StoredImage};
use crate::{Error, Result, SessionId, Stream};

/// Receives intact data.
pub(super) trait SalvageSink {
    fn secret(&mut self, secret: &[u8; 32]) -> Result<()>;
    /// A session, with the positions of its intact streams.
    fn session(&mut self, session: &SessionRow) -> Result<()>;
    fn entry(&mut self, place: streams::EntryPosition, entry: &PackedEntry) -> Result<()>;
    /// A blob, with its owner, and with its image unless that is a file.
    fn blob(&mut self, id: i64, owner: i64, row: &BlobRow, image: Option<&[u8]>) -> Result<()>;
    fn reference(&mut self, reference: &RefRow) -> Result<()>;
    fn spill(&mut self, spill: &SpillRow) -> Result<()>;
}

/// The row of a spilled file.
pub(super) struct SpillRow {
    pub session: i64,
    pub id: String,
    pub file: String,
    pub sha256: String,
}

/// Reads the database `db`, whose larger outputs are files in `blobs`.
pub(super) struct Salvage<'a, S> {
    pub db: &'a Connection,
    pub blobs: Option<&'a Dir>,
    pub sink: &'a mut S,
    pub report: &'a mut StoreCheck,
    /// The visited blobs, and whether they are intact.
    pub seen: BTreeMap<i64, bool>,
}

impl<S: SalvageSink> Salvage<'_, S> {
    /// Reads everything. Fails only if the sink fails.
    pub(super) fn run(&mut self) -> Result<()> {
        match meta::secret(self.db) {
            Ok(Some(secret)) => self.sink.secret(&secret)?,
            Ok(None) => {}
            Err(_) => self.report.secret_lost = true,
        }
        let last = self.last_session();
        let mut previous = 0;
        while let Some(id) = self.next_session(previous, last) {
            previous = id;
            match rows::session_by_row(self.db, id) {
                Ok(Some(session)) => self.session(session)?,
                Ok(None) => {}
                Err(_) => self.report.lost_sessions += 1,
            }
        }
        Ok(())
    }

    /// The next possible session number after `previous`.
    fn next_session(&self, previous: i64, last: i64) -> Option<i64> {
        let select = "SELECT id FROM sessions WHERE id > ?1 ORDER BY id LIMIT 1";
        match rows::query_one(self.db, select, [previous], |row| row.get(0).map(Some)) {
            // Trying every number up to the last would be endless if that one is damaged.
            Ok(next) => next,
            // The row is in a damaged page. Numbers in other pages can still be found one by one.
            Err(_) => (previous < last).then_some(previous + 1),
        }
    }

    /// The highest possible session number.
    fn last_session(&self) -> i64 {
        // Any of these tables may be damaged, and a session may have rows in only some of them.
        let highest = [
            "SELECT seq FROM sqlite_sequence WHERE name = 'sessions'",
            "SELECT max(id) FROM sessions",
            "SELECT max(session) FROM refs",
            "SELECT max(session) FROM entries",
        ];
        let found = highest.into_iter().filter_map(|select| {
            let found = rows::query_one(self.db, select, [], |row| row.get::<_, Option<i64>>(0));
            found.ok().flatten()
        });
        found.max().unwrap_or(0)
    }

    fn session(&mut self, mut session: SessionRow) -> Result<()> {
        let [logged, planned] = session.positions;
        let log = self.entries(&session, Stream::Log, logged);
        let journal = self.entries(&session, Stream::Journal, planned);
        // A log without its journal, or the reverse, is useless. The outputs are not.
        if let (Some(log), Some(journal)) = (&log, &journal) {
            for (place, entry) in log.iter().chain(journal) {
                self.sink.entry(*place, entry)?;
            }
            self.report.entries += (log.len() + journal.len()) as u64;
        } else {
            session.positions = [0, 0];
            self.report
                .lose(&session.id, "its log and journal".to_owned());
        }
        self.sink.session(&session)?;
        self.report.sessions += 1;
        for reference in self.references(&session) {
            self.reference(&session, &reference)?;
        }
        Ok(())
    }

    /// All entries of a stream; none if one of them is damaged.
    fn entries(
        &self,
        session: &SessionRow,
        stream: Stream,
        count: i64,
    ) -> Option<Vec<(streams::EntryPosition, PackedEntry)>> {
        let entry = |position| {
            let place = (session.row, stream, position);
            let entry = streams::entry(self.db, place).ok().flatten()?;
            Some((place, entry))
        };
        (0..count).map(entry).collect()
    }

    /// The ids of a session's refs, searched from both ends: a damaged page in the middle hides
    /// only the rows on it.
    fn references(&mut self, session: &SessionRow) -> Vec<String> {
        let mut ids = Vec::new();
        let up = "SELECT id FROM refs WHERE session = ?1 AND id > ?2 ORDER BY id LIMIT 1";
        let down = "SELECT id FROM refs WHERE session = ?1 AND id < ?2 ORDER BY id DESC LIMIT 1";
        let next = |select, from: &str| {
            let values = params![session.row, from];
            rows::query_one(self.db, select, values, |row| {
                row.get::<_, String>(0).map(Some)
            })
        };
        let mut last = String::new();
        let broken = loop {
            match next(up, &last) {
                Ok(Some(id)) => last.clone_from(&id),
                Ok(None) => break false,
                Err(_) => break true,
            }
            ids.push(last.clone());
        };
        if broken {
            self.report
                .lose(&session.id, "some of its outputs".to_owned());
            // Sorts after all ids.
            let mut first = "~".to_owned();
            while let Ok(Some(id)) = next(down, &first) {
                if id <= last {
                    break;
                }
                first.clone_from(&id);
                ids.push(id);
            }
        }
        ids
    }

    fn reference(&mut self, session: &SessionRow, id: &str) -> Result<()> {
        let row = rows::reference(self.db, session.row, id);
        let whole = match row {
            Ok(Some(row)) if self.output(session, &row)? => Some(row),
            _ => None,
        };
        let Some(row) = whole else {
            self.report.lose(&session.id, format!("output {id}"));
            return Ok(());
        };
        self.sink.reference(&row)?;
        self.report.outputs += 1;
        match self.spill(session.row, id) {
            Some(spill) => self.sink.spill(&spill),
            None => Ok(()),
        }
    }

    /// True if the bytes of an output are intact and match its ref.
    fn output(&mut self, session: &SessionRow, reference: &RefRow) -> Result<bool> {
        let blobs = std::iter::once(reference.blob).chain(reference.text);
        for blob in blobs {
            if !self.blob(blob)? {
                return Ok(false);
            }
        }
        let named = rows::blob(self.db, reference.blob).is_ok_and(|row| {
            let id = session
                .secret
                .ref_id(&reference.labels.call, &row.outline.digest);
            id == reference.id
        });
        Ok(named)
    }

    /// True if a blob is intact; passes it on the first time.
    fn blob(&mut self, id: i64) -> Result<bool> {
        if let Some(whole) = self.seen.get(&id) {
            return Ok(*whole);
        }
        let read = self.read_blob(id);
        // Many refs may share a blob, and a large one takes long to verify.
        self.seen.insert(id, read.is_ok());
        let Ok((owner, row, image)) = read else {
            return Ok(false);
        };
        self.sink.blob(id, owner, &row, image.as_deref())?;
        Ok(true)
    }

    fn read_blob(&self, id: i64) -> Result<(i64, BlobRow, Option<Vec<u8>>)> {
        let row = rows::blob(self.db, id)?;
        let missing = || Error::damaged("an output");
        let owner = "SELECT owner FROM blobs WHERE id = ?1";
        let owner = rows::query_one(self.db, owner, [id], |row| row.get(0).map(Some))?;
        let image = match &row.file {
            None => Some(rows::image(self.db, id)?),
            Some(_) => None,
        };
        let place = match (&row.file, &image) {
            (Some(name), _) => {
                let blobs = self.blobs.ok_or_else(missing)?;
                Box::new(blobs.open_file(name)?.ok_or_else(missing)?) as Box<dyn ImageBytes>
            }
            (None, image) => Box::new(image.clone().unwrap_or_default()),
        };
        StoredImage::new(row.outline.clone(), place).verify()?;
        Ok((owner.ok_or_else(missing)?, row, image))
    }

    fn spill(&self, session: i64, id: &str) -> Option<SpillRow> {
        let select = "SELECT file, sha256 FROM spills WHERE session = ?1 AND id = ?2";
        let found = rows::query_one(self.db, select, params![session, id], |row| {
            Ok(Some((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))
        });
        let (file, sha256) = found.ok().flatten()?;
        is_random_name(&file).then(|| SpillRow {
            session,
            id: id.to_owned(),
            file,
            sha256,
        })
    }
}

/// Ignores the data, for a check.
pub(super) struct ReportOnly;

impl SalvageSink for ReportOnly {
    fn secret(&mut self, _: &[u8; 32]) -> Result<()> {
        Ok(())
    }

    fn session(&mut self, _: &SessionRow) -> Result<()> {
        Ok(())
    }

    fn entry(&mut self, _: streams::EntryPosition, _: &PackedEntry) -> Result<()> {
        Ok(())
    }

    fn blob(&mut self, _: i64, _: i64, _: &BlobRow, _: Option<&[u8]>) -> Result<()> {
        Ok(())
    }

    fn reference(&mut self, _: &RefRow) -> Result<()> {
        Ok(())
    }

    fn spill(&mut self, _: &SpillRow) -> Result<()> {
        Ok(())
    }
}

impl StoreCheck {
    fn lose(&mut self, session: &SessionId, what: String) {
        self.lost.push((session.clone(), what));
    }
}
