//! The secret of a store lives as long as its data.

use std::fs;

use trimtab_store::{Error, FolderStore, Put, Store, Stream};

use super::{Home, put, session};

#[test]
fn concurrent_opens_of_a_store_without_a_secret_agree_on_it() {
    let home = Home::new();
    drop(home.open());
    let db = rusqlite::Connection::open(home.store.join("trimtab.db")).unwrap();
    db.execute_batch("DROP TABLE meta; DROP TABLE leases;")
        .unwrap();
    drop(db);
    let secrets: Vec<[u8; 32]> = std::thread::scope(|scope| {
        let opened: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| home.open().secret().unwrap()))
            .collect();
        opened
            .into_iter()
            .map(|opened| opened.join().unwrap())
            .collect()
    });
    assert!(secrets.iter().all(|secret| *secret == secrets[0]));
}

#[test]
fn damaged_secret_is_not_replaced() {
    let home = Home::new();
    let store = home.open();
    drop(store);
    let db = rusqlite::Connection::open(home.store.join("trimtab.db")).unwrap();
    db.execute(
        "UPDATE meta SET value = zeroblob(32) WHERE name = 'secret'",
        [],
    )
    .unwrap();
    drop(db);
    for _ in 0..2 {
        let error = home.open().secret().unwrap_err();
        assert!(error.is_damaged(), "{error}");
    }
}

#[test]
fn vanished_store_acknowledges_no_writes() {
    let home = Home::new();
    let store = home.open();
    let s = session("s");
    let id = put(&store, &s, "c1", b"bytes");
    fs::remove_dir_all(&home.store).unwrap();
    let vanished = |error: Error| assert!(matches!(error, Error::Vanished { .. }), "{error}");
    vanished(store.put(&s, Put::new("c2", "more")).unwrap_err());
    vanished(store.append(&s, Stream::Log, 0, &[b"entry"]).unwrap_err());
    vanished(store.status().unwrap_err());
    assert_eq!(store.get(&s, &id).unwrap(), b"bytes", "still readable");
    // Another one in its place is not it either.
    let other = FolderStore::open(&home.store).unwrap();
    vanished(store.put(&s, Put::new("c2", "more")).unwrap_err());
    assert!(other.get(&s, &id).unwrap_err().is_not_found());
    assert_ne!(other.secret().unwrap(), store.secret().unwrap());
}
