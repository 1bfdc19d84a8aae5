//! Searches a file outside the store, within the same bounds.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::{Query, SearchResults};
use crate::frames::{FRAME, frame_len};
use crate::source::FrameSource;
use crate::{Error, Result};

impl Query<'_> {
    /// Searches a file, without context lines and without a ref.
    ///
    /// ```
    /// # use trimtab_store::Query;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("notes");
    /// std::fs::write(&path, "alpha\nbeta\n")?;
    /// let found = Query::literal("et").search_file(&std::fs::File::open(&path)?)?;
    /// assert_eq!(found.matches[0].line, 1);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn search_file(&self, file: &File) -> Result<SearchResults> {
        let byte_size = file.metadata().map_err(Error::Input)?.len();
        let alone = self.clone().context(0, 0);
        let mut search = alone.start()?;
        search.source("", &FileSource { file, byte_size })?;
        Ok(search.finish())
    }
}

/// A file as frames. A file that shrinks while it is read ends early.
struct FileSource<'f> {
    file: &'f File,
    byte_size: u64,
}

impl FrameSource for FileSource<'_> {
    fn byte_size(&self) -> u64 {
        self.byte_size
    }

    /// Unknown, and not needed without context.
    fn newlines(&self) -> u64 {
        0
    }

    fn frame(&self, number: u64, into: &mut Vec<u8>) -> Result<()> {
        let start = number.saturating_mul(FRAME as u64);
        into.resize(frame_len(number, self.byte_size), 0);
        let mut read = 0;
        while let Some(rest) = into.get_mut(read..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, start + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::Input(error)),
            }
        }
        into.truncate(read);
        Ok(())
    }

    fn frame_of_newline(&self, _: u64) -> Result<(u64, u64)> {
        Ok((0, 0))
    }
}
