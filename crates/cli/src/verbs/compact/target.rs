//! The output file of a compaction.

use std::io::Write;
use std::path::Path;

use crate::exit::Failure;
use crate::out_file;
use crate::ui::Terminal;

/// True if the transcript goes to standard output.
pub(super) fn is_stdout(output: &Path) -> bool {
    output.as_os_str() == "-"
}

/// Fails if the transcript would be overwritten without `--force`.
pub(super) fn check(file: &Path, output: &Path, force: bool) -> Result<(), Failure> {
    if out_file::is_same(file, output) && !force {
        return Err(Failure::input(
            format!("{} is the transcript itself", output.display()),
            "give another file with -o, or --force to overwrite it: the store keeps the original",
        ));
    }
    if output.is_dir() {
        return Err(Failure::input(
            format!("{}: cannot write: it is a folder", output.display()),
            "name a file in it with -o",
        ));
    }
    let folder = output
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(Failure::input(
            format!("{}: the folder does not exist", folder.display()),
            "create it, or name another file with -o",
        ));
    }
    Ok(())
}

/// Writes the transcript atomically. If it replaces the `original`, that must not have changed.
pub(super) fn write(
    output: &Path,
    bytes: &[u8],
    original: Option<&[u8]>,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    if is_stdout(output) {
        terminal.data().write_all(bytes)?;
        return Ok(());
    }
    // A rename would put a plain file in place of a pipe or a device.
    if out_file::is_special(output) {
        return out_file::write(output, bytes);
    }
    // A link stays, because clients may find their logs through it.
    let target = output.canonicalize().unwrap_or_else(|_| output.to_owned());
    let folder = target
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    // In the same folder, because a file cannot be renamed across file systems.
    let written = tempfile::NamedTempFile::new_in(folder).and_then(|mut file| {
        file.write_all(bytes)?;
        // A replaced file stays readable for those who could read it.
        if let Ok(old) = target.metadata() {
            file.as_file().set_permissions(old.permissions())?;
        }
        file.as_file().sync_all()?;
        // As late as possible: a client that still runs appends its messages here.
        if original.is_some_and(|original| !has_bytes(&target, original)) {
            return Ok(false);
        }
        file.persist(&target).map_err(|error| error.error)?;
        Ok(true)
    });
    if matches!(written, Ok(false)) {
        return Err(Failure::WithHint {
            message: format!(
                "{} has changed meanwhile, and is left as it is",
                output.display()
            ),
            hint: Some("quit the client that writes it, and compact it again".to_owned()),
        });
    }
    written.map(drop).map_err(|error| Failure::WithHint {
        message: format!("{}: cannot write: {error}", output.display()),
        hint: None,
    })
}

/// True if a file has these bytes.
fn has_bytes(path: &Path, bytes: &[u8]) -> bool {
    std::fs::read(path).is_ok_and(|found| found == bytes)
}
