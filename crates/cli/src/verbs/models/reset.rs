//! `trimtab models reset`: restores the built-in catalogue.

use std::fs;
use std::io;

use trimtab_wire::catalogue::Catalogue;

use crate::catalogue;
use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::ui::Terminal;
use crate::ui::number;
use crate::ui::visible::visible;

/// Runs the verb.
pub(super) fn run(common: &CommonArgs, terminal: &mut Terminal) -> Result<(), Failure> {
    let path = catalogue::own_path()?;
    let removed = match fs::remove_file(&path) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(catalogue::unwritable(&path, &error)),
    };
    let models = Catalogue::embedded().ids().count();
    if common.json {
        let report = serde_json::json!({"path": path, "removed": removed, "models": models});
        terminal.json(&report)?;
        return Ok(());
    }
    let shown = path.display().to_string();
    let did = if removed { "removed" } else { "there was no" };
    terminal.note(&format!(
        "{did} {}; the built-in catalogue has {}",
        visible(&shown),
        number::counted(models, "model")
    ));
    Ok(())
}
