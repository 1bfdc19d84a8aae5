//! `trimtab store check`.

use trimtab::store::FolderStore;

use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::ui::Terminal;
use crate::verbs::output::store_location::explain;

/// The first part of `trimtab store check --help`.
pub const ABOUT: &str = "\
Read everything in the store and report what is damaged, lost and readable.

Changes nothing, and may run while a proxy uses the store.";

/// Runs the verb.
pub fn run(common: &CommonArgs, terminal: &mut Terminal) -> Result<(), Failure> {
    let path = common.store.present()?;
    let found = FolderStore::check(&path).map_err(|error| explain(&path.display(), &error))?;
    terminal.report(common.json, &super::as_json(&found), &super::text(&found))?;
    if found.is_sound() {
        return Ok(());
    }
    if !common.json {
        terminal.note("hint: `trimtab store repair` saves what can be read");
    }
    Err(Failure::ProblemsFound)
}
