//! Recorded sessions: the binding gives the bytes of the library, under every preset.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;
use serde_json::{Value, json};
use trimtab::engine::policy::PRESETS;
use trimtab::model::Dialect;

use crate::same_bytes::{Library, twin_stores};
use crate::talk::open;

/// How many calls of a session are compared. The long form compares all of them.
const CALLS: usize = 6;

/// A recorded session.
#[derive(serde::Deserialize)]
struct Recorded {
    id: String,
    #[serde(default)]
    format: String,
    system: Option<Box<RawValue>>,
    messages: Vec<Box<RawValue>>,
}

impl Recorded {
    fn dialect(&self) -> (&'static str, Dialect) {
        match self.format.as_str() {
            "anthropic" => ("messages", Dialect::Messages),
            _ => ("chat", Dialect::Chat),
        }
    }

    /// The requests before its answers.
    fn requests(&self) -> Vec<Vec<u8>> {
        let is_answer = |row: &RawValue| {
            let row: Value = serde_json::from_str(row.get()).unwrap();
            row["role"] == "assistant"
        };
        let answers = self.messages.iter().enumerate().skip(1);
        let answers = answers.filter(|(_, row)| is_answer(row));
        let calls: Vec<usize> = answers.map(|(at, _)| at).collect();
        let step = match std::env::var_os("TRIMTAB_LONG") {
            Some(_) => 1,
            None => calls.len().div_ceil(CALLS).max(1),
        };
        let chosen = calls.iter().rev().step_by(step).rev();
        chosen.map(|at| self.request(*at)).collect()
    }

    fn request(&self, count: usize) -> Vec<u8> {
        let rows: Vec<&str> = self
            .messages
            .iter()
            .take(count)
            .map(|row| row.get())
            .collect();
        let system = self.system.as_ref().map_or(String::new(), |system| {
            format!("\"system\":{},", system.get())
        });
        format!("{{{system}\"messages\":[{}]}}", rows.join(",")).into_bytes()
    }
}

fn sessions() -> Option<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/public");
    let Ok(entries) = fs::read_dir(&folder) else {
        println!(
            "SKIPPED: there are no recorded sessions at {}",
            folder.display()
        );
        return None;
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    paths.sort();
    Some(paths)
}

#[test]
fn recorded_session_has_the_bytes_of_the_library_under_every_preset() {
    let Some(paths) = sessions() else { return };
    let mut compared = 0;
    for path in paths {
        for line in fs::read_to_string(path).unwrap().lines() {
            let recorded: Recorded = serde_json::from_str(line).unwrap();
            for preset in PRESETS {
                compared += compare(&recorded, preset.name);
            }
        }
    }
    println!("{compared} windows have the bytes of the library");
    assert!(compared > 0);
}

fn compare(recorded: &Recorded, preset: &str) -> usize {
    let (name, dialect) = recorded.dialect();
    let (_folder, [one, other]) = twin_stores();
    let bound = open(json!({"preset": preset, "dialect": name, "store": one}));
    let mut library = Library::new(&other, preset, dialect);
    let requests = recorded.requests();
    for (call, body) in requests.iter().enumerate() {
        let (ours, expected) = (bound.window(body).unwrap().body, library.window(body));
        // Both are too long to be printed.
        let differs = ours
            .iter()
            .zip(&expected)
            .position(|(one, other)| one != other);
        let is_same = differs.is_none() && ours.len() == expected.len();
        let id = &recorded.id;
        assert!(
            is_same,
            "{id}, preset {preset}, call {call}: differs at {differs:?}"
        );
    }
    requests.len()
}
