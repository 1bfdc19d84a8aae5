//! Writes the window of each call, one per line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Mutex;

use serde::Serialize;
use serde_json::value::RawValue;
use trimtab::replay::ReplayStep;
use trimtab_wire::chat;

/// Writes the windows of conversations in their order, independent of which is replayed first.
pub struct WindowWriter(Mutex<WindowWriterState>);

struct WindowWriterState {
    file: BufWriter<File>,
    /// The conversation to write next.
    next: usize,
    /// Conversations that were replayed before their turn.
    waiting: BTreeMap<usize, Vec<u8>>,
    failed: Option<io::Error>,
}

impl WindowWriter {
    /// Writes to `file`.
    pub fn new(file: BufWriter<File>) -> Self {
        Self(Mutex::new(WindowWriterState {
            file,
            next: 0,
            waiting: BTreeMap::new(),
            failed: None,
        }))
    }

    /// Adds the lines of the conversation at `place`.
    pub fn write(&self, place: usize, lines: Vec<u8>) {
        if let Ok(mut state) = self.0.lock() {
            state.waiting.insert(place, lines);
            state.write();
        }
    }

    /// Completes the file. Fails if any part of it could not be written.
    pub fn finish(self) -> io::Result<()> {
        let mut state = self
            .0
            .into_inner()
            .map_err(|_| io::Error::other("a writer failed"))?;
        match state.failed.take() {
            Some(error) => Err(error),
            None => state.file.flush(),
        }
    }
}

impl WindowWriterState {
    fn write(&mut self) {
        while let Some(lines) = self.waiting.remove(&self.next) {
            self.next += 1;
            if let Err(error) = self.file.write_all(&lines) {
                self.failed.get_or_insert(error);
            }
        }
    }
}

#[derive(Serialize)]
struct WindowLine<'a> {
    id: &'a str,
    call: usize,
    messages: Vec<Box<RawValue>>,
    tokens: u64,
    refs: BTreeMap<&'a str, &'a str>,
}

/// The line of one call.
pub fn line(id: &str, step: &ReplayStep<'_>) -> String {
    let messages = step.messages.iter();
    let written = messages.flat_map(|message| chat::write_message(message));
    let refs = step.refs();
    let line = WindowLine {
        id,
        call: step.call,
        messages: written
            .filter_map(|message| RawValue::from_string(message.as_str().to_owned()).ok())
            .collect(),
        tokens: step.tokens,
        refs: refs
            .iter()
            .map(|shown| (shown.call_id.as_str(), shown.stored.id()))
            .collect(),
    };
    let mut text = serde_json::to_string(&line).unwrap_or_default();
    text.push('\n');
    text
}
