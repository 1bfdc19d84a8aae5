//! Removed data is gone: its space, and every byte of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use trimtab_store::{CollectOptions, FolderStore, Store, Stream};

use super::{Home, Random, files, put, rounds, session};

fn size(folder: &Path) -> u64 {
    let sizes = files(folder).into_iter().map(|file| {
        let metadata = fs::metadata(file).unwrap();
        metadata.len()
    });
    sizes.sum()
}

fn contains(folder: &Path, marker: &[u8]) -> Option<String> {
    files(folder).into_iter().find_map(|file| {
        let bytes = fs::read(&file).unwrap();
        let found = bytes.windows(marker.len()).any(|window| window == marker);
        found.then(|| file.display().to_string())
    })
}

/// Markers that no compression hides: each stands in noise, which is stored as it came.
fn marked(random: &mut Random, marker: &str, len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len).map(|_| random.next().to_le_bytes()[2]).collect();
    let at = len / 2;
    bytes.splice(at..at, marker.bytes());
    bytes
}

fn fill(store: &FolderStore, name: &str, random: &mut Random, outputs: u64) -> Vec<String> {
    let s = session(name);
    let mut markers = Vec::new();
    for n in 0..outputs {
        let len = [40, 900, 5_000, 30_000, 200_000][usize::try_from(n % 5).unwrap()];
        let marker = format!("<{name} output {n} {}>", random.next());
        put(store, &s, &format!("c{n}"), &marked(random, &marker, len));
        markers.push(marker);
        let marker = format!("<{name} entry {n} {}>", random.next());
        let entry = marked(random, &marker, len / 3);
        store.append(&s, Stream::Log, n, &[&entry]).unwrap();
        markers.push(marker);
    }
    markers
}

#[test]
fn erased_text_is_in_no_file_of_the_store() {
    let home = Home::new();
    let store = home.open();
    let mut random = Random(11);
    // Two sessions in turn, so that their rows share pages.
    let outputs = rounds(40, 400);
    let mut gone = fill(&store, "gone", &mut random, outputs);
    let kept = fill(&store, "kept", &mut random, outputs);
    gone.extend(fill(&store, "gone/too", &mut random, outputs));
    let spilled = store.list(&session("gone")).unwrap();
    store
        .spill(&session("gone"), spilled[3].reference.id())
        .unwrap();
    for marker in gone.iter().chain(&kept) {
        assert!(contains(&home.store, marker.as_bytes()).is_some());
    }
    let request = CollectOptions {
        sessions: BTreeSet::from([session("gone"), session("gone/too")]),
        scrub: true,
        ..CollectOptions::default()
    };
    let report = store.collect(&request).unwrap();
    assert!(!report.traces_left);
    for marker in &gone {
        assert_eq!(contains(&home.store, marker.as_bytes()), None, "{marker}");
    }
    for marker in &kept {
        assert!(contains(&home.store, marker.as_bytes()).is_some());
    }
}

#[test]
fn removing_everything_returns_the_space() {
    let home = Home::new();
    let store = home.open();
    let empty = size(&home.store);
    let mut random = Random(12);
    for n in 0..rounds(4, 40) {
        fill(&store, &format!("s{n}"), &mut random, 50);
    }
    let full = size(&home.store);
    assert!(full > empty + 1_000_000);
    let request = CollectOptions {
        older_than: Some(Duration::ZERO),
        ..CollectOptions::default()
    };
    std::thread::sleep(Duration::from_millis(5));
    // Without writing it anew: this is what runs beside traffic.
    store.collect(&request).unwrap();
    let left = size(&home.store);
    assert!(left <= empty + 200_000, "{empty} {full} {left}");
    assert_eq!(store.sessions().unwrap(), []);
}

#[test]
fn garbage_of_a_killed_process_is_collected() {
    let home = Home::new();
    let store = home.open();
    let mut random = Random(13);
    fill(&store, "cut off", &mut random, 10);
    fill(&store, "kept", &mut random, 10);
    drop(store);
    let db = rusqlite::Connection::open(home.store.join("trimtab.db")).unwrap();
    db.execute("DELETE FROM sessions WHERE name = 'cut off'", [])
        .unwrap();
    drop(db);
    let store = home.open();
    store.collect(&CollectOptions::default()).unwrap();
    drop(store);
    let db = rusqlite::Connection::open(home.store.join("trimtab.db")).unwrap();
    let count = |table: &str| -> i64 {
        let select = format!("SELECT count(*) FROM {table}");
        db.query_row(&select, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(
        (count("refs"), count("blobs"), count("entries")),
        (10, 10, 10)
    );
    drop(db);
    let store = home.open();
    for output in store.list(&session("kept")).unwrap() {
        store.get(&session("kept"), output.reference.id()).unwrap();
    }
}
