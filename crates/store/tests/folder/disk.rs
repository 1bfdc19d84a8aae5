//! Full and read-only disks: real ones, if the system allows mounting.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use trimtab_store::{CollectOptions, Error, FolderStore, Store, Stream};

use super::{Home, Random, child_argument, put, session};

/// Runs a test of this binary where `mount` gives it a small disk of its own at its argument.
/// False, with a note, if the system does not allow that.
fn on_a_small_disk(test: &str, script: &str, size: &str) -> bool {
    let home = Home::new();
    std::fs::create_dir(&home.store).unwrap();
    let mount = "mount -t tmpfs -o mode=700,size=$SIZE none \"$TRIMTAB_TEST_CHILD\" || exit 77";
    let status = Command::new("unshare")
        .args(["--mount", "sh", "-c", &format!("{mount}; {script}")])
        .env("TRIMTAB_TEST_CHILD", &home.store)
        .env("TEST_BINARY", std::env::current_exe().unwrap())
        .env("TEST_NAME", test)
        .env("SIZE", size)
        .status();
    match status {
        Ok(status) if status.success() => true,
        Ok(status) if status.code() == Some(101) => panic!("{test} failed on the small disk"),
        _ => {
            println!("skipped: no disk can be mounted here");
            false
        }
    }
}

const RUN: &str = "\"$TEST_BINARY\" --exact \"$TEST_NAME\" --nocapture";

#[test]
fn child_on_a_full_disk() {
    let Some(disk) = child_argument() else { return };
    let store = FolderStore::open(disk.join("store")).unwrap();
    let s = session("s");
    let mut random = Random(1);
    let mut kept = Vec::new();
    // Small and large, until neither fits.
    let mut full = 0;
    for n in 0..400_u64 {
        let size = if n.is_multiple_of(2) { 3_000 } else { 300_000 };
        let bytes: Vec<u8> = (0..size).map(|_| random.next().to_le_bytes()[1]).collect();
        match store.put(&s, trimtab_store::Put::new("c", &bytes)) {
            Ok(found) => kept.push((found.id().to_owned(), bytes)),
            Err(Error::Full) => full += 1,
            Err(error) => panic!("{error}"),
        }
        if full > 20 {
            break;
        }
    }
    assert!(full > 20 && kept.len() > 5, "{full} {}", kept.len());
    check(&store, &kept);
    drop(store);
    let store = FolderStore::open(disk.join("store")).unwrap();
    check(&store, &kept);
    // Room again: it goes on.
    let (gone, _) = kept.pop().unwrap();
    store.delete(&s, &gone).unwrap();
    let (gone, _) = kept.remove(1);
    store.delete(&s, &gone).unwrap();
    put(&store, &s, "after", b"small");
    check(&store, &kept);
}

fn check(store: &FolderStore, kept: &[(String, Vec<u8>)]) {
    for (id, bytes) in kept {
        assert!(store.get(&session("s"), id).unwrap() == *bytes);
    }
}

#[test]
fn full_disk_loses_nothing() {
    if child_argument().is_none() {
        on_a_small_disk("disk::child_on_a_full_disk", RUN, "6m");
    }
}

/// Fills the disk: at first our outputs, then a file of somebody else.
fn fill(disk: &Path, store: &FolderStore, size: usize) -> usize {
    let mut random = Random(7);
    let mut sessions = 0;
    while sessions < 600 {
        let bytes: Vec<u8> = (0..size).map(|_| random.next().to_le_bytes()[1]).collect();
        let s = session(&format!("s{sessions}"));
        match store.put(&s, trimtab_store::Put::new("c", &bytes)) {
            Ok(_) => sessions += 1,
            Err(Error::Full) => break,
            Err(error) => panic!("{error}"),
        }
    }
    let mut rest = std::fs::File::create(disk.join("rest")).unwrap();
    let blocks = std::iter::repeat_with(|| rest.write_all(&[1; 4096]));
    assert!(blocks.take(1 << 20).any(|written| written.is_err()));
    sessions
}

#[test]
fn child_frees_a_full_disk() {
    let Some(disk) = child_argument() else { return };
    // In the database, in files, and in a database that another process has open.
    for (size, is_open) in [
        (3_000, false),
        (3_000, true),
        (40_000, true),
        (300_000, false),
    ] {
        let store = FolderStore::open(disk.join("store")).unwrap();
        let sessions = fill(&disk, &store, size);
        assert!(sessions > 20, "{sessions}");
        let running = is_open.then_some(store);
        let store = FolderStore::open(disk.join("store")).unwrap();
        let all = store.sessions().unwrap();
        assert!(all.len() >= sessions, "{}", all.len());
        let request = CollectOptions {
            sessions: all.into_iter().map(|info| info.session).collect(),
            scrub: true,
            ..CollectOptions::default()
        };
        let done = store.collect(&request).unwrap();
        assert!(done.sessions.len() >= sessions);
        let free = rustix::fs::statvfs(&disk).unwrap();
        let free = free.f_bavail * free.f_frsize;
        println!("{sessions} sessions of {size} bytes: {free} bytes are free");
        assert!(free > 4 << 20, "{free} of {size}");
        drop(running);
        std::fs::remove_file(disk.join("rest")).unwrap();
    }
}

#[test]
fn full_disk_can_be_freed() {
    if child_argument().is_none() {
        on_a_small_disk("disk::child_frees_a_full_disk", RUN, "48m");
    }
}

#[test]
fn child_on_a_read_only_disk() {
    let Some(disk) = child_argument() else { return };
    let folder = disk.join("store");
    let s = session("s");
    let large = Random(2).bytes(1_000_000);
    if !folder.exists() {
        let store = FolderStore::open(&folder).unwrap();
        put(&store, &s, "c1", b"small");
        put(&store, &s, "c2", &large);
        store.append(&s, Stream::Log, 0, &[b"entry"]).unwrap();
        return;
    }
    read_only(&folder, &large);
    let elsewhere = FolderStore::open(disk.join("new")).unwrap_err();
    assert!(matches!(elsewhere, Error::ReadOnly), "{elsewhere}");
}

fn read_only(folder: &Path, large: &[u8]) {
    let s = session("s");
    let store = FolderStore::open(folder).unwrap();
    assert!(store.status().unwrap().read_only);
    assert_ne!(store.secret().unwrap(), [0; 32]);
    let outputs = store.list(&s).unwrap();
    assert_eq!(store.get(&s, outputs[0].reference.id()).unwrap(), b"small");
    assert_eq!(store.get(&s, outputs[1].reference.id()).unwrap(), large);
    assert_eq!(store.read(&s, Stream::Log, 0, 9).unwrap(), [b"entry"]);
    for bytes in [&b"new"[..], &Random(3).bytes(1_000_000)] {
        let error = store
            .put(&s, trimtab_store::Put::new("c3", bytes))
            .unwrap_err();
        assert!(matches!(error, Error::ReadOnly), "{error}");
    }
    let error = store.append(&s, Stream::Log, 1, &[b"entry"]).unwrap_err();
    assert!(matches!(error, Error::ReadOnly), "{error}");
}

#[test]
fn read_only_disk_can_be_read() {
    if child_argument().is_none() {
        let remount = "mount -o remount,ro \"$TRIMTAB_TEST_CHILD\" || exit 77";
        let script = format!("{RUN} && {remount}; {RUN}");
        on_a_small_disk("disk::child_on_a_read_only_disk", &script, "6m");
    }
}
