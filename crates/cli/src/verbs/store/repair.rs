//! `trimtab store repair`.

use serde_json::json;
use trimtab::store::{FolderStore, RepairReport};

use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::ui::Terminal;
use crate::verbs::output::store_location::explain;

/// The first part of `trimtab store repair --help`.
pub const ABOUT: &str = "\
Build a new database from the readable parts of a damaged one, and report what is lost.

Everything that is copied is verified by its digest. The damaged database is kept in the store's \
folder, under a name that begins with damaged-. An intact store is left unchanged. A store that \
another process has open cannot be repaired: stop the proxy first. An interrupted repair leaves \
the store unchanged; run it again.";

/// Runs the verb.
pub fn run(common: &CommonArgs, terminal: &mut Terminal) -> Result<(), Failure> {
    let path = common.store.present()?;
    let done = FolderStore::repair(&path).map_err(|error| explain(&path.display(), &error))?;
    terminal.report(common.json, &as_json(&done), &text(&done))?;
    Ok(())
}

fn as_json(done: &RepairReport) -> serde_json::Value {
    let moved_to = done.moved_to.as_ref();
    json!({
        "repaired": !done.found.is_sound(),
        "moved_to": moved_to.map(|path| path.display().to_string()),
        "found": super::as_json(&done.found),
    })
}

fn text(done: &RepairReport) -> String {
    let mut text = super::text(&done.found);
    match &done.moved_to {
        Some(path) => {
            text.push_str("repaired; the damaged database is now ");
            text.push_str(&path.display().to_string());
            text.push('\n');
        }
        None if done.found.is_sound() => text.push_str("nothing to repair\n"),
        None => text.push_str("repaired; there was no database, so the store is empty\n"),
    }
    text
}
