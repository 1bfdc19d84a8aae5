//! `trimtab store check`.

use std::io::Write;

use trimtab::store::FolderStore;

use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::ui::Terminal;
use crate::ui::visible::visible_json;
use crate::verbs::output::store_location::explain;

/// The first part of `trimtab store check --help`.
pub const ABOUT: &str = "\
Read everything in the store and report what is damaged, lost and readable.

Changes nothing, and may run while a proxy uses the store.";

/// Runs the verb.
pub fn run(common: &CommonArgs, terminal: &mut Terminal) -> Result<(), Failure> {
    let path = common.store.present()?;
    let found = FolderStore::check(&path).map_err(|error| explain(&path.display(), &error))?;
    let report = if common.json {
        visible_json(&super::as_json(&found)) + "\n"
    } else {
        super::text(&found)
    };
    terminal.out().write_all(report.as_bytes())?;
    if found.is_sound() {
        return Ok(());
    }
    if !common.json {
        terminal.note("hint: `trimtab store repair` saves what can be read");
    }
    Err(Failure::ProblemsFound)
}
