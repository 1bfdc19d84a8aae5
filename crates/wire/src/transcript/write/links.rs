//! Re-links units that name their parent, after removals and insertions.

use std::collections::{HashMap, HashSet};

use super::patch::JsonPatch;
use crate::json::{JsonFields, quoted, string};

/// A unit of the new file.
pub(super) struct LinkedUnit {
    pub(super) text: String,
    pub(super) is_new: bool,
}

/// The newest unit of a thread.
struct LastUnit {
    name: String,
    is_new: bool,
}

/// The id of a unit.
pub(super) fn name_of(unit: &str, name: &str) -> Option<String> {
    let fields = serde_json::from_str::<JsonFields<'_>>(unit).ok()?;
    fields.string(name)
}

/// The parents that no line has, if a line is broken: then one of these was its id.
pub(super) fn missing_parents(lines: &[&str], (name, parent): (&str, &str)) -> HashSet<String> {
    if !lines.contains(&"") {
        return HashSet::new();
    }
    let ids: HashSet<String> = lines
        .iter()
        .filter_map(|line| name_of(line, name))
        .collect();
    let parents = lines.iter().filter_map(|line| name_of(line, parent));
    parents.filter(|parent| !ids.contains(parent)).collect()
}

/// Re-links parent ids after removals and insertions: a unit whose parent is gone, or that follows
/// a new unit, names the unit before it.
pub(super) fn mend(
    pieces: &mut [LinkedUnit],
    gone: &HashSet<String>,
    (name, parent): (&str, &str),
) {
    let mut threads: HashMap<String, LastUnit> = HashMap::new();
    for piece in pieces {
        let Ok(fields) = serde_json::from_str::<JsonFields<'_>>(&piece.text) else {
            continue;
        };
        let Some(own) = fields.string(name) else {
            continue;
        };
        let thread = thread(&fields);
        let last = threads.get(&thread);
        let Some(value) = fields.get(parent) else {
            continue;
        };
        let named = string(value);
        let gone = named.is_some_and(|named| gone.contains(&named));
        let is_new = piece.is_new;
        // A unit behind a new one must name it, or the new one would be on no path and the client
        // would skip it.
        if gone || is_new || last.is_some_and(|last| last.is_new) {
            let now = last.map_or_else(|| "null".to_owned(), |last| quoted(&last.name));
            let mut patch = JsonPatch::new(&piece.text);
            patch.replace(value, &now);
            let text = patch.end();
            drop(fields);
            piece.text = text;
        }
        threads.insert(thread, LastUnit { name: own, is_new });
    }
}

/// The fields that identify the thread of a unit.
fn thread(fields: &JsonFields<'_>) -> String {
    let side = fields.is_true("isSidechain").then(|| {
        let agent = fields.text("agentId").unwrap_or_default();
        format!("side {agent}")
    });
    let data = fields.fields("data");
    let parent = data.and_then(|data| data.string("parentToolCallId"));
    side.or(parent).unwrap_or_default()
}
