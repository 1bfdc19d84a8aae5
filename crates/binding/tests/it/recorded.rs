//! Recorded sessions: the binding gives the bytes of the library, under every preset.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use serde_json::value::RawValue;
use trimtab::engine::policy::PRESETS;
use trimtab::model::Dialect;

use crate::same_bytes::{Spoken, check_same};

/// How many calls of a session are compared, and how many sessions of a file. The long form
/// compares all.
const CALLS: usize = 6;
const SESSIONS: usize = 1;

/// A recorded session.
#[derive(serde::Deserialize)]
struct RecordedSession {
    id: String,
    #[serde(default)]
    format: String,
    system: Option<Box<RawValue>>,
    messages: Vec<Box<RawValue>>,
}

impl RecordedSession {
    fn dialect(&self) -> Spoken {
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
        let step = if is_long() {
            1
        } else {
            calls.len().div_ceil(CALLS).max(1)
        };
        let chosen = calls.iter().rev().step_by(step).rev();
        chosen.map(|at| self.request(*at)).collect()
    }

    fn request(&self, count: usize) -> Vec<u8> {
        let rows = self.messages.iter().take(count);
        let rows: Vec<&str> = rows.map(|row| row.get()).collect();
        let system = self.system.as_ref();
        let system = system.map_or(String::new(), |text| format!("\"system\":{},", text.get()));
        format!("{{{system}\"messages\":[{}]}}", rows.join(",")).into_bytes()
    }
}

fn is_long() -> bool {
    std::env::var_os("TRIMTAB_LONG").is_some()
}

/// The files of sessions; none where there are no recordings.
fn recordings() -> Option<Vec<PathBuf>> {
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
    let Some(paths) = recordings() else { return };
    let (mut sessions, mut windows) = (0, 0);
    for path in paths {
        let text = fs::read_to_string(path).unwrap();
        for line in text
            .lines()
            .take(if is_long() { usize::MAX } else { SESSIONS })
        {
            let recorded: RecordedSession = serde_json::from_str(line).unwrap();
            // The name of a session that fails.
            println!("{}", recorded.id);
            let requests = recorded.requests();
            for preset in PRESETS {
                check_same(preset.name, recorded.dialect(), &requests);
            }
            sessions += 1;
            windows += requests.len() * PRESETS.len();
        }
    }
    println!("{sessions} sessions, {windows} windows: all have the bytes of the library");
    assert!(windows > 0);
}
