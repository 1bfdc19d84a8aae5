//! Repair of damaged stores: losses are reported, and intact data is saved.

use std::collections::BTreeMap;
use std::fs;

use trimtab_store::{CollectOptions, Error, FolderStore, Store, Stream};

use super::{Home, Random, files, put, rounds, session};

/// Sessions with outputs and logs, and what must come back.
struct Filled {
    home: Home,
    outputs: BTreeMap<(String, String), Vec<u8>>,
    logs: BTreeMap<String, Vec<Vec<u8>>>,
    secret: [u8; 32],
}

fn filled() -> Filled {
    let home = Home::new();
    let store = home.open();
    let mut random = Random(21);
    let (mut outputs, mut logs) = (BTreeMap::new(), BTreeMap::new());
    for name in (0..30).map(|n| format!("s{n}")) {
        let s = session(&name);
        for (n, size) in [10, 3_000, 20_000, 200_000].into_iter().enumerate() {
            let bytes = random.bytes(size);
            let id = put(&store, &s, &format!("c{n}"), &bytes);
            outputs.insert((name.clone(), id), bytes);
        }
        let log: Vec<Vec<u8>> = (0..10).map(|n| random.bytes(n * 100)).collect();
        let entries: Vec<&[u8]> = log.iter().map(Vec::as_slice).collect();
        store.append(&s, Stream::Log, 0, &entries).unwrap();
        logs.insert(name, log);
    }
    let secret = store.secret().unwrap();
    Filled {
        home,
        outputs,
        logs,
        secret,
    }
}

impl Filled {
    /// How many outputs and logs come back; none may come back wrong.
    fn whole(&self) -> (usize, usize) {
        let store = self.home.open();
        let outputs = self.outputs.iter().filter(|((name, id), bytes)| {
            let read = store.get(&session(name), id);
            read.inspect(|read| assert!(read == *bytes)).is_ok()
        });
        let logs = self.logs.iter().filter(|(name, log)| {
            let read = store.read(&session(name), Stream::Log, 0, 100).unwrap();
            assert!(read.is_empty() || read == **log);
            !read.is_empty()
        });
        (outputs.count(), logs.count())
    }
}

#[test]
fn repair_leaves_an_intact_store_unchanged() {
    let filled = filled();
    let before = fs::read(filled.home.store.join("trimtab.db")).unwrap();
    let found = FolderStore::check(&filled.home.store).unwrap();
    assert!(found.is_sound(), "{found:?}");
    assert_eq!(
        (found.sessions, found.outputs, found.entries),
        (30, 120, 300)
    );
    let repaired = FolderStore::repair(&filled.home.store).unwrap();
    assert_eq!((repaired.found, repaired.moved_to), (found, None));
    let after = fs::read(filled.home.store.join("trimtab.db")).unwrap();
    assert!(before == after);
}

#[test]
fn repair_refuses_a_store_in_use() {
    let filled = filled();
    let store = filled.home.open();
    let error = FolderStore::repair(&filled.home.store).unwrap_err();
    assert!(matches!(error, Error::InUse { .. }), "{error}");
    drop(store);
    FolderStore::repair(&filled.home.store).unwrap();
}

#[test]
fn repair_loses_only_rows_on_damaged_pages() {
    let filled = filled();
    let path = filled.home.store.join("trimtab.db");
    let intact = fs::read(&path).unwrap();
    let pages = intact.len() / 16_384;
    let mut random = Random(22);
    let rounds = rounds(12, 150);
    let mut lost_all = 0_u64;
    for _ in 0..rounds {
        let mut bytes = intact.clone();
        let page = usize::try_from(random.below(pages as u64)).unwrap();
        for byte in &mut bytes[page * 16_384..][..16_384] {
            *byte = random.next().to_le_bytes()[1];
        }
        fs::write(&path, &bytes).unwrap();
        let found = FolderStore::check(&filled.home.store).unwrap();
        let repaired = FolderStore::repair(&filled.home.store).unwrap();
        if let Some(aside) = &repaired.moved_to {
            assert!(fs::read(aside).unwrap() == bytes, "it is kept as it was");
        }
        let sound = FolderStore::check(&filled.home.store).unwrap();
        assert!(sound.is_sound(), "{sound:?}");
        assert_eq!(sound.outputs, repaired.found.outputs);
        let (outputs, logs) = filled.whole();
        assert_eq!(outputs as u64, sound.outputs, "page {page}: {found:?}");
        assert!(logs <= 30);
        lost_all += u64::from(outputs == 0);
        if !repaired.found.secret_lost {
            assert_eq!(filled.home.open().secret().unwrap(), filled.secret);
        }
        for file in files(&filled.home.store) {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            if name.starts_with("damaged-") || name.starts_with("trimtab.db-") {
                fs::remove_file(file).unwrap();
            }
        }
    }
    // The rows about all these outputs are small, so one or two pages have them all.
    assert!(lost_all * 10 <= rounds, "{lost_all} of {rounds}");
}

#[test]
fn repair_recovers_from_a_lost_first_page() {
    let filled = filled();
    let path = filled.home.store.join("trimtab.db");
    // Also after the database was written anew.
    for scrub in [false, true] {
        let request = CollectOptions {
            scrub,
            ..CollectOptions::default()
        };
        filled.home.open().collect(&request).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        bytes[..16_384].fill(0);
        fs::write(&path, &bytes).unwrap();
        assert!(!FolderStore::check(&filled.home.store).unwrap().is_sound());
        let repaired = FolderStore::repair(&filled.home.store).unwrap();
        assert_eq!(repaired.found.outputs, 120, "{:?}", repaired.found);
        assert!(!repaired.found.secret_lost);
        assert_eq!(filled.whole(), (120, 30));
        assert_eq!(filled.home.open().secret().unwrap(), filled.secret);
    }
}

#[test]
fn repair_of_a_lost_database_gives_an_empty_store() {
    let filled = filled();
    fs::remove_file(filled.home.store.join("trimtab.db")).unwrap();
    let found = FolderStore::check(&filled.home.store).unwrap();
    assert!(!found.is_sound());
    FolderStore::repair(&filled.home.store).unwrap();
    assert_eq!(filled.whole(), (0, 0));
}

#[test]
fn interrupted_repair_can_be_repeated() {
    let filled = filled();
    let path = filled.home.store.join("trimtab.db");
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.len() - 20_000;
    bytes[at..at + 9_000].fill(0xa5);
    fs::write(&path, &bytes).unwrap();
    // As far as a repair comes before the new database is in place.
    fs::hard_link(&path, filled.home.store.join("damaged-1.db")).unwrap();
    fs::write(filled.home.store.join("new-half"), b"half").unwrap();
    let repaired = FolderStore::repair(&filled.home.store).unwrap();
    let aside = repaired.moved_to.unwrap();
    assert!(aside.ends_with("damaged-1.db"), "{}", aside.display());
    assert!(FolderStore::check(&filled.home.store).unwrap().is_sound());
}

#[test]
fn check_does_not_create_missing_folders() {
    let home = Home::new();
    drop(home.open());
    let blobs = home.store.join("blobs");
    fs::remove_dir(&blobs).unwrap();
    FolderStore::check(&home.store).unwrap();
    assert!(!blobs.exists());
}

#[test]
fn check_ends_when_the_highest_session_number_is_damaged() {
    let filled = filled();
    let db = rusqlite::Connection::open(filled.home.store.join("trimtab.db")).unwrap();
    let damage = "UPDATE sqlite_sequence SET seq = 1000000000000 WHERE name = 'sessions'";
    db.execute(damage, []).unwrap();
    drop(db);
    let found = FolderStore::check(&filled.home.store).unwrap();
    assert_eq!((found.sessions, found.outputs), (30, 120));
}
