//! `trimtab models update`: a newer registry becomes the catalogue.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use trimtab_wire::catalogue::Catalogue;

use crate::args::Common;
use crate::catalogue;
use crate::exit::Failure;
use crate::source;
use crate::ui::visible::visible;
use crate::ui::{Terminal, number};

pub(super) fn run(file: &Path, common: &Common, terminal: &mut Terminal) -> Result<(), Failure> {
    let mut json = String::new();
    let read = source::open(file, terminal)?
        .input
        .read_to_string(&mut json);
    read.map_err(|error| refused(file, &error.to_string()))?;
    let import =
        Catalogue::from_registry(&json).map_err(|error| refused(file, &error.to_string()))?;
    let Some(path) = catalogue::path() else {
        return Err(Failure::input(
            "there is no place to keep the catalogue",
            "set HOME, or name a file with TRIMTAB_MODELS",
        ));
    };
    replace(&path, import.catalogue.snapshot())?;
    let (kept, skipped) = (import.kept, import.skipped.len());
    if common.json {
        let report = serde_json::json!({"path": path, "models": kept, "skipped": skipped});
        terminal.json(&report)?;
    } else {
        let models = number::counted(kept, "model");
        writeln!(
            terminal.out(),
            "{models} kept in {}, {skipped} left out",
            visible(&path.display().to_string())
        )?;
    }
    Ok(())
}

fn refused(file: &Path, why: &str) -> Failure {
    let (message, hint) = why.split_once("\nhint: ").unwrap_or((why, ""));
    let message = format!("{}: {message}", source::name(file));
    let hint = Some(hint.to_owned()).filter(|hint| !hint.is_empty());
    Failure::Input { message, hint }
}

/// Writes beside the file and renames: a reader sees the old one or the new one.
fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut written = tempfile::NamedTempFile::new_in(folder)?;
    written.write_all(text.as_bytes())?;
    written.as_file().sync_all()?;
    written.persist(path).map_err(|error| error.error)?;
    Ok(())
}
