//! Replaces the lost first page of a database.
//!
//! The first page identifies a database and contains the positions of its tables. All stores are
//! created by the same statements, so their tables start at the same pages, and the first page of
//! an empty store fits any other.

use std::io::{Read, Seek, SeekFrom, Write};

use super::disk::{Dir, UNFINISHED, random_name};
use super::schema::NewDatabase;
use crate::{Error, Result};

/// The page size.
const PAGE: usize = 16_384;
/// Offsets in the first page that differ between stores, from the file format of `SQLite`.
const READ_AND_WRITE_VERSION: usize = 18;
const PAGE_COUNT: usize = 28;
const FREE_PAGES: usize = 32;
/// Selects the write-ahead log.
const WAL_VERSION: u8 = 2;

/// A copy of a database with a new first page. It is removed when dropped.
pub(super) struct FirstPageCopy<'d> {
    dir: &'d Dir,
    pub(super) name: String,
}

impl<'d> FirstPageCopy<'d> {
    /// Copies the database `from` and its write-ahead log; none if it has no second page.
    pub(super) fn make(dir: &'d Dir, from: &str) -> Result<Option<Self>> {
        let name = format!("{UNFINISHED}{}", random_name()?);
        let copied = Self { dir, name };
        let byte_size = copied.copy(from, &copied.name)?;
        let pages = byte_size / PAGE as u64;
        if pages < 2 {
            return Ok(None);
        }
        let log = format!("{from}-wal");
        if dir.entry(&log)?.is_some() {
            copied.copy(&log, &format!("{}-wal", copied.name))?;
        }
        let first_page = first_page(dir, u32::try_from(pages).unwrap_or(u32::MAX))?;
        let mut file = dir.open_or_create(&copied.name)?;
        let written = file
            .seek(SeekFrom::Start(0))
            .and_then(|_| file.write_all(&first_page));
        written.map_err(|error| Error::io("write", dir.path(), error))?;
        Ok(Some(copied))
    }

    fn copy(&self, from: &str, to: &str) -> Result<u64> {
        let missing = || Error::damaged("the database");
        let mut input = self.dir.open_file(from)?.ok_or_else(missing)?;
        let mut output = self.dir.create(to)?;
        let copied = std::io::copy(&mut input, &mut output);
        copied.map_err(|error| Error::io("copy", self.dir.path(), error))
    }
}

impl Drop for FirstPageCopy<'_> {
    fn drop(&mut self) {
        for suffix in ["", "-wal", "-shm"] {
            // Collection removes leftovers.
            let _ = self.dir.remove(&format!("{}{suffix}", self.name));
        }
    }
}

/// The first page of an empty store, for a database of `pages` pages.
fn first_page(dir: &Dir, pages: u32) -> Result<Vec<u8>> {
    let template = NewDatabase::make(dir)?;
    let mut first_page = vec![0; PAGE];
    let read = template.read_first_page(&mut first_page);
    template.discard(dir)?;
    read.map_err(|error| Error::io("read", dir.path(), error))?;
    let mut set = |at: usize, bytes: &[u8]| {
        if let Some(place) = first_page.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    };
    set(READ_AND_WRITE_VERSION, &[WAL_VERSION, WAL_VERSION]);
    set(PAGE_COUNT, &pages.to_be_bytes());
    // The positions of free pages are unknown. Nothing will be written, so an empty list is enough.
    set(FREE_PAGES, &[0; 8]);
    Ok(first_page)
}

impl NewDatabase {
    fn read_first_page(&self, into: &mut [u8]) -> std::io::Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0))?;
        file.read_exact(into)
    }
}
