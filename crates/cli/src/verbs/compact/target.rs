//! The output file of a compaction.

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
    match out_file::replace(output, bytes, original) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::WithHint {
            message: format!(
                "{} has changed meanwhile, and stays as it is",
                output.display()
            ),
            hint: Some("quit the client that writes it, and compact it again".to_owned()),
        }),
        Err(error) => Err(Failure::WithHint {
            message: format!("{}: cannot write: {error}", output.display()),
            hint: None,
        }),
    }
}
