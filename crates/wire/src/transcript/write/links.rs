//! Re-links the lines of Claude Code, which name their parent, after removals and insertions.

use std::collections::{HashMap, HashSet};

use super::patch::JsonPatch;
use crate::json::{JsonFields, quoted, string};

/// The id of a unit.
const ID: &str = "uuid";
/// The id of the unit before it.
const PARENT: &str = "parentUuid";

/// A unit of the new file.
pub(super) struct LinkedUnit {
    pub(super) text: String,
    pub(super) is_new: bool,
}

/// The newest unit of a thread.
struct LastUnit {
    id: String,
    is_new: bool,
}

/// The id of a unit.
pub(super) fn id_of(unit: &str) -> Option<String> {
    text_of(unit, ID)
}

fn text_of(unit: &str, name: &str) -> Option<String> {
    let fields = serde_json::from_str::<JsonFields<'_>>(unit).ok()?;
    fields.string(name)
}

/// The parents that no line has, if a line is broken: then one of these was its id.
pub(super) fn missing_parents(lines: &[&str]) -> HashSet<String> {
    if !lines.contains(&"") {
        return HashSet::new();
    }
    let ids: HashSet<String> = lines.iter().filter_map(|line| id_of(line)).collect();
    let parents = lines.iter().filter_map(|line| text_of(line, PARENT));
    parents.filter(|parent| !ids.contains(parent)).collect()
}

/// Re-links parent ids after removals and insertions: a unit whose parent is gone, or that follows
/// a new unit, names the unit before it.
pub(super) fn mend(pieces: &mut [LinkedUnit], gone: &HashSet<String>) {
    let mut threads: HashMap<String, LastUnit> = HashMap::new();
    for piece in pieces {
        let Ok(fields) = serde_json::from_str::<JsonFields<'_>>(&piece.text) else {
            continue;
        };
        let Some(id) = fields.string(ID) else {
            continue;
        };
        let thread = thread(&fields);
        let last = threads.get(&thread);
        let Some(value) = fields.get(PARENT) else {
            continue;
        };
        let named = string(value);
        let gone = named.is_some_and(|named| gone.contains(&named));
        let is_new = piece.is_new;
        // A unit behind a new one must name it, or the new one would be on no path and the client
        // would skip it.
        if gone || is_new || last.is_some_and(|last| last.is_new) {
            let now = last.map_or_else(|| "null".to_owned(), |last| quoted(&last.id));
            let mut patch = JsonPatch::new(&piece.text);
            patch.replace(value, &now);
            let text = patch.end();
            drop(fields);
            piece.text = text;
        }
        threads.insert(thread, LastUnit { id, is_new });
    }
}

/// The fields that identify the thread of a unit.
fn thread(fields: &JsonFields<'_>) -> String {
    if !fields.is_true("isSidechain") {
        return String::new();
    }
    let agent = fields.text("agentId").unwrap_or_default();
    format!("side {agent}")
}
