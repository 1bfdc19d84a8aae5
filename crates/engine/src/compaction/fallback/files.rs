//! The files that calls named.

use std::borrow::Borrow;
use std::collections::HashMap;

use serde_json::Value;
use trimtab_model::rounds;
use trimtab_model::{Call, Message, Ref};

use super::carried::Carried;
use super::runs::call_at;
use super::section::{Section, Title};
use crate::compaction::room::Room;
use crate::compaction::text::clipped;
use crate::facts::{self, FactKind};

/// The fields of a call's arguments that name a file.
const FIELDS: [&str; 8] = [
    "path",
    "file_path",
    "filePath",
    "file",
    "filename",
    "target_file",
    "notebook_path",
    "absolute_path",
];
/// Parts of the names of tools that write.
const WRITERS: [&str; 9] = [
    "write", "edit", "patch", "create", "replace", "insert", "delete", "move", "update",
];
/// Bytes of other arguments that are searched for paths.
const READ: usize = 2 << 10;
/// Bytes of arguments that are parsed.
const PARSED: usize = 256 << 10;
/// More calls than this are not looked at.
const MOST: usize = 400;
/// Characters of a path.
const LONGEST: usize = 160;

#[derive(Default)]
struct Touched<'m> {
    read: bool,
    written: bool,
    stored: Option<&'m Ref>,
}

/// The files, the one touched last at the end.
pub(super) fn touched<M: Borrow<Message>>(
    replaced: &[M],
    carried: &Carried<'_>,
    room: &Room<'_>,
) -> Section {
    // Newest first.
    let mut order: Vec<String> = Vec::new();
    let mut files: HashMap<String, Touched<'_>> = HashMap::new();
    let rounds = rounds::pair(replaced).rounds;
    let places = rounds.iter().flat_map(|round| &round.calls).rev();
    for place in places.take(MOST) {
        let Some(call) = call_at(replaced, place) else {
            continue;
        };
        let writes = WRITERS
            .iter()
            .any(|word| call.name.to_ascii_lowercase().contains(word));
        let output = place.output.and_then(|place| {
            let message = replaced.get(place.message)?.borrow();
            message.parts.get(place.part)?.as_output()
        });
        for path in paths(call) {
            let file = files.entry(path.clone()).or_insert_with(|| {
                order.push(path);
                Touched::default()
            });
            file.read |= !writes;
            file.written |= writes;
            file.stored = file
                .stored
                .or(output.and_then(|output| output.stored.as_ref()));
        }
    }
    let known = |item: &String| {
        let path = item.split(": ").next().unwrap_or_default();
        files.contains_key(path)
    };
    let before: Vec<String> = carried
        .items(Title::Files)
        .filter(|item| !known(item))
        .collect();
    let lines = order
        .iter()
        .rev()
        .filter_map(|path| Some(line(path, files.get(path)?)));
    Section::newest(Title::Files, before.into_iter().chain(lines), room)
}

fn line(path: &str, file: &Touched<'_>) -> String {
    let how = match (file.read, file.written) {
        (true, true) => "read, written",
        (false, true) => "written",
        _ => "read",
    };
    match file.stored {
        Some(stored) => format!("{path}: {how} ({stored})"),
        None => format!("{path}: {how}"),
    }
}

fn paths(call: &Call) -> Vec<String> {
    let parsed = if call.arguments.len() <= PARSED {
        serde_json::from_str::<Value>(&call.arguments).ok()
    } else {
        None
    };
    let named = FIELDS
        .iter()
        .filter_map(|field| parsed.as_ref()?.get(field)?.as_str());
    let mut paths: Vec<String> = named.map(|path| clipped(path, LONGEST)).collect();
    if paths.is_empty() {
        let head = call
            .arguments
            .get(..call.arguments.floor_char_boundary(READ));
        facts::extract(head.unwrap_or_default(), &mut |fact| {
            if fact.kind == FactKind::Path {
                paths.push(clipped(fact.text, LONGEST));
            }
        });
    }
    paths.retain(|path| !path.is_empty());
    paths
}
