//! Files for results that a flag names, such as `--html OUT`.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use crate::exit::Failure;

const HINT: &str = "give a path in a folder that you may write to";

/// Checks that a file can be written, without changing it: the work before that may take long.
/// It must not be one of the files that are read.
pub fn check(path: &Path, inputs: &[PathBuf]) -> Result<(), Failure> {
    if inputs.iter().any(|input| is_same(input, path)) {
        return Err(Failure::input(
            format!("{} is the transcript itself", path.display()),
            "give another file for the result",
        ));
    }
    // Opening a pipe would wait for its reader.
    if is_special(path) {
        return Ok(());
    }
    // A link to a file that does not exist yet is not new, and stays.
    let is_new = path.symlink_metadata().is_err();
    let opened = File::options().append(true).create(true).open(path);
    opened.map_err(|error| Failure::input(unwritable(path, &error), HINT))?;
    if is_new {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

/// True if both paths lead to the same file. Links and relative paths may name it differently.
pub fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// True for pipes and devices, such as /dev/null.
pub fn is_special(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Creates a file, or empties it.
pub fn create(path: &Path) -> Result<BufWriter<File>, Failure> {
    let file =
        File::create(path).map_err(|error| Failure::input(unwritable(path, &error), HINT))?;
    Ok(BufWriter::new(file))
}

/// Writes a whole file.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
    std::fs::write(path, bytes).map_err(|error| Failure::WithHint {
        message: unwritable(path, &error),
        hint: Some(HINT.to_owned()),
    })
}

/// Replaces a file with a rename, so that nobody reads half of it. Links lead to the file, which
/// keeps its permissions; only the user can read a new one. Returns false, and changes nothing, if
/// the file no longer has the bytes of the `original`.
pub fn replace(path: &Path, bytes: &[u8], original: Option<&[u8]>) -> io::Result<bool> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = target
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    // In the same folder, because a file cannot be renamed across file systems. Created for us: a
    // link that somebody planted is never followed.
    let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(bytes)?;
    if let Ok(old) = target.metadata() {
        file.as_file().set_permissions(old.permissions())?;
    }
    // The rename must not become durable before the bytes.
    file.as_file().sync_all()?;
    // As late as possible: another program may write to the file meanwhile.
    if let Some(original) = original
        && std::fs::read(&target)? != original
    {
        return Ok(false);
    }
    file.persist(&target).map_err(|error| error.error)?;
    Ok(true)
}

fn unwritable(path: &Path, error: &io::Error) -> String {
    format!("{}: cannot write: {error}", path.display())
}
