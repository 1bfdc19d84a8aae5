//! Properties of the folder store beyond the common suite.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    reason = "a test may fail"
)]

mod damage;
mod disk;
mod erasure;
mod faults;
mod kill;
mod processes;
mod repair;
mod safety;
mod secret;

use std::path::{Path, PathBuf};

use trimtab_store::{FolderStore, Put, SessionId, Store};

/// A folder for a store that is not there yet.
struct Home {
    _temporary: tempfile::TempDir,
    store: PathBuf,
}

impl Home {
    fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let store = temporary.path().join("store");
        Self {
            _temporary: temporary,
            store,
        }
    }

    fn open(&self) -> FolderStore {
        FolderStore::open(&self.store).unwrap()
    }
}

fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

fn put(store: &impl Store, s: &SessionId, call: &str, bytes: &[u8]) -> String {
    store.put(s, Put::new(call, bytes)).unwrap().id().to_owned()
}

/// Repeatable random numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 11) % limit.max(1)
    }

    /// Text or noise, so that some of it compresses.
    fn bytes(&mut self, len: usize) -> Vec<u8> {
        if self.below(2) == 0 {
            return (0..len).map(|_| self.next().to_le_bytes()[2]).collect();
        }
        let mut text = Vec::with_capacity(len + 32);
        while text.len() < len {
            text.extend(format!("{} says {}\n", self.below(50), self.below(1000)).bytes());
        }
        text.truncate(len);
        text
    }
}

/// All files in a folder and below, in a stable order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
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

/// More rounds when the long tests are asked for.
fn rounds(short: u64, long: u64) -> u64 {
    if std::env::var_os("TRIMTAB_LONG").is_some_and(|value| value == "1") {
        long
    } else {
        short
    }
}

/// Runs one test of this binary in a process of its own, with an argument.
fn rerun(test: &str, argument: &Path) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.env("TRIMTAB_TEST_CHILD", argument);
    command
}

/// The argument, in such a process.
fn child_argument() -> Option<PathBuf> {
    std::env::var_os("TRIMTAB_TEST_CHILD").map(PathBuf::from)
}
