//! Files for results that a flag names, such as `--html OUT`.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use crate::exit::Failure;

const HINT: &str = "give a path in a folder that you may write to";

/// Checks that a file can be written, without changing it: the work before that may take long.
pub fn check(path: &Path) -> Result<(), Failure> {
    let is_new = !path.exists();
    let opened = File::options().append(true).create(true).open(path);
    opened.map_err(|error| Failure::input(unwritable(path, &error), HINT))?;
    if is_new {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

/// Creates a file, or empties it.
pub fn create(path: &Path) -> Result<BufWriter<File>, Failure> {
    let file =
        File::create(path).map_err(|error| Failure::input(unwritable(path, &error), HINT))?;
    Ok(BufWriter::new(file))
}

/// Writes a whole file.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| Failure::WithHint {
        message: unwritable(path, &error),
        hint: Some(HINT.to_owned()),
    })
}

fn unwritable(path: &Path, error: &std::io::Error) -> String {
    format!("{}: cannot write: {error}", path.display())
}
