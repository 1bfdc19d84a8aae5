//! Recorded sessions: at every call of the model the normalised window is valid.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trimtab_engine::normalise::NormaliseOptions;
use trimtab_engine::window::Projection;
use trimtab_model::{Dialect, Message, Role};
use trimtab_wire::transcript::TranscriptReader;

use crate::run::{root, trimtab};

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The folders with logs in forms that are not read.
const NOT_READ: [&str; 2] = ["copilot-cli", "gemini-cli"];

pub(crate) fn corpus() -> Option<Vec<PathBuf>> {
    let folder = root().join("../shared/corpus/public");
    if folder.is_dir() {
        let mut files = files(&folder);
        let is_read = |path: &Path| !NOT_READ.iter().any(|name| path.ends_with(name));
        files.retain(|path| path.parent().is_some_and(is_read));
        return Some(files);
    }
    println!("skipped: no recorded sessions at {}", folder.display());
    None
}

/// Builds the window before every answer; gives how many there were.
fn calls_are_valid(messages: &[Arc<Message>], dialect: Dialect) -> Result<usize, String> {
    let mut projection = Projection::new(NormaliseOptions::for_dialect(dialect));
    let mut calls = 0;
    for (index, message) in messages.iter().enumerate() {
        if message.role == Role::Assistant && index > 0 {
            let window = projection.window();
            window.map_err(|invalid| format!("{dialect}, call at {index}: {invalid}"))?;
            calls += 1;
        }
        projection.admit(Arc::clone(message));
    }
    Ok(calls)
}

#[test]
fn window_of_every_call_is_valid() {
    let mut paths = corpus().unwrap_or_default();
    // What a model answers is no transcript, and neither is a program.
    let is_transcript = |path: &PathBuf| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        matches!(ending, Some("json" | "jsonl")) && !path.ends_with("script.json")
    };
    let examples = files(&root().join("examples")).into_iter();
    paths.extend(examples.filter(is_transcript));
    let mut calls = 0;
    for path in paths {
        let file = fs::read(&path).unwrap();
        for conversation in TranscriptReader::new(file.as_slice()).map(Result::unwrap) {
            let messages: Vec<Arc<Message>> =
                conversation.messages.into_iter().map(Arc::new).collect();
            for dialect in Dialect::ALL {
                let valid = calls_are_valid(&messages, dialect);
                calls += valid.unwrap_or_else(|why| panic!("{}: {why}", path.display()));
            }
        }
    }
    println!("{calls} windows are valid");
    assert!(calls > 0);
}

#[test]
fn every_recorded_session_is_inspected() {
    let Some(paths) = corpus() else { return };
    for path in paths {
        let outcome = trimtab(&["inspect", "--json", "--quiet", path.to_str().unwrap()]);
        assert_eq!(
            (outcome.code, outcome.stderr.as_str()),
            (0, ""),
            "{}",
            path.display()
        );
        for line in outcome.stdout.lines() {
            let report: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(
                report["window"]["tokens"].as_u64().unwrap() > 1_000,
                "{line}"
            );
        }
    }
}
