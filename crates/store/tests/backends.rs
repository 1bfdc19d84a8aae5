//! One suite over every backend.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    reason = "a test may fail"
)]

mod suite;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use suite::World;
use trimtab_store::MemoryStore;

fn memory() -> World {
    let time = Arc::new(AtomicU64::new(suite::START));
    let clock = Arc::clone(&time);
    let store = MemoryStore::with_clock(move || clock.load(Ordering::Relaxed));
    World {
        store: Box::new(store),
        time,
        keeps_files: false,
        folder: None,
    }
}

#[cfg(unix)]
fn folder() -> World {
    let time = Arc::new(AtomicU64::new(suite::START));
    let clock = Arc::clone(&time);
    let folder = tempfile::tempdir().unwrap();
    let store = trimtab_store::FolderOptions::new()
        .clock(move || clock.load(Ordering::Relaxed))
        .open(folder.path().join("store"))
        .unwrap();
    World {
        store: Box::new(store),
        time,
        keeps_files: true,
        folder: Some(folder),
    }
}

suite::over!(in_memory, memory);
#[cfg(unix)]
suite::over!(in_a_folder, folder);
