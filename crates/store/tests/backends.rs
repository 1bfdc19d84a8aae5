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

#[expect(
    clippy::unnecessary_wraps,
    reason = "servers of other backends may be missing"
)]
fn memory() -> Option<World> {
    let time = Arc::new(AtomicU64::new(suite::START));
    let clock = Arc::clone(&time);
    let store = MemoryStore::with_clock(move || clock.load(Ordering::Relaxed));
    Some(World {
        store: Box::new(store),
        time,
        keeps_files: false,
        folder: None,
    })
}

#[cfg(unix)]
#[expect(
    clippy::unnecessary_wraps,
    reason = "servers of other backends may be missing"
)]
fn folder() -> Option<World> {
    let time = Arc::new(AtomicU64::new(suite::START));
    let clock = Arc::clone(&time);
    let folder = tempfile::tempdir().unwrap();
    let store = trimtab_store::FolderOptions::new()
        .clock(move || clock.load(Ordering::Relaxed))
        .open(folder.path().join("store"))
        .unwrap();
    Some(World {
        store: Box::new(store),
        time,
        keeps_files: true,
        folder: Some(folder),
    })
}

/// A store in a new database, with an object store or without.
#[cfg(unix)]
fn in_database(blobs: Option<String>, folder: Option<tempfile::TempDir>) -> Option<World> {
    let server = trimtab_testkit::servers::PostgresServer::shared()?;
    let time = Arc::new(AtomicU64::new(suite::START));
    let clock = Arc::clone(&time);
    let mut options = trimtab_store::SharedOptions::new(server.new_database().unwrap())
        .clock(move || clock.load(Ordering::Relaxed));
    if let Some(blobs) = blobs {
        options = options.blobs(blobs);
    }
    Some(World {
        store: Box::new(options.open().unwrap()),
        time,
        keeps_files: false,
        folder,
    })
}

/// With a bucket, or with a folder as object store if there is no S3 server.
#[cfg(unix)]
fn shared() -> Option<World> {
    use trimtab_testkit::servers::ObjectServer;
    let folder = tempfile::tempdir().unwrap();
    let blobs = match ObjectServer::shared() {
        Some(server) => ObjectServer::url(&server.new_bucket().unwrap(), server.address()),
        None => format!("file://{}", folder.path().display()),
    };
    in_database(Some(blobs), Some(folder))
}

#[cfg(unix)]
fn database_only() -> Option<World> {
    in_database(None, None)
}

suite::over!(in_memory, memory);
#[cfg(unix)]
suite::over!(in_a_folder, folder);
#[cfg(unix)]
suite::over!(in_postgres_and_s3, shared);
#[cfg(unix)]
suite::over!(in_postgres, database_only);
