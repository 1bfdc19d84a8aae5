//! Writes outputs to plain files, for views that name a path.

use std::io::Read;
use std::sync::Arc;

use rusqlite::params;
use sha2::{Digest as _, Sha256};

use super::disk::{Dir, is_random_name, random_name};
use super::{FolderStore, rows};
use crate::frames::FRAME;
use crate::refs::well_formed;
use crate::{Error, OpenOutput, OutputForm, Result, SessionId, SpilledFile, Store};

impl FolderStore {
    pub(super) fn spill_output(&self, session: &SessionId, id: &str) -> Result<SpilledFile> {
        let stored = self.open(session, id, OutputForm::Whole)?;
        // Spills belong to the session that holds the output, so that its children share them.
        let holder = stored.metadata().session.clone();
        if let Some((file, sha256)) = self.spilled(&holder, id)? {
            let there = self.spills.entry(&file)?;
            // The user may have deleted or cut the file. The path in a view must stay valid.
            if there.is_none_or(|entry| entry.byte_size != stored.byte_size()) {
                write(&self.spills, &file, &stored)?;
            }
            let path = self.spills.path().join(file);
            return Ok(SpilledFile { path, sha256 });
        }
        let file = random_name()?;
        let sha256 = write(&self.spills, &file, &stored)?;
        // Inserts nothing if the output was removed meanwhile, or if another process was first.
        let insert = "INSERT INTO spills (session, id, file, sha256)
             SELECT session, id, ?3, ?4 FROM refs WHERE session = ?1 AND id = ?2
             ON CONFLICT DO NOTHING";
        self.writing(|db| {
            let holder = rows::session(db, &holder)?.ok_or(Error::NotFound)?;
            rows::execute(db, insert, params![holder.row, id, file, sha256])
        })?;
        // If another process was first, its path counts.
        let (kept, sha256) = self.spilled(&holder, id)?.ok_or(Error::NotFound)?;
        if kept != file {
            self.spills.remove(&file)?;
        }
        let path = self.spills.path().join(kept);
        Ok(SpilledFile { path, sha256 })
    }

    fn spilled(&self, session: &SessionId, id: &str) -> Result<Option<(String, String)>> {
        if !well_formed(id) {
            return Err(Error::NotFound);
        }
        let select = "SELECT file, sha256 FROM spills WHERE session = ?1 AND id = ?2";
        self.reading(|db| {
            let session = rows::session(db, session)?.ok_or(Error::NotFound)?;
            rows::query_one(db, select, params![session.row, id], |row| {
                let file: String = row.get(0)?;
                let sha256: String = row.get(1)?;
                Ok(is_random_name(&file).then_some((file, sha256)))
            })
        })
    }
}

/// Writes an output to the file `name` and returns its SHA-256.
fn write(dir: &Arc<Dir>, name: &str, stored: &OpenOutput) -> Result<String> {
    let mut file = dir.unfinished()?;
    let mut reader = stored.reader();
    let mut sha256 = Sha256::new();
    let mut bytes = vec![0; FRAME];
    loop {
        let read = reader.read(&mut bytes).map_err(Error::from_read)?;
        let piece = bytes.get(..read).unwrap_or_default();
        if piece.is_empty() {
            break;
        }
        sha256.update(piece);
        file.write(piece)?;
    }
    // Renamed at the end, so that the path never shows a part of the output.
    file.finish(name)?;
    Ok(data_encoding::HEXLOWER.encode(&sha256.finalize()))
}
