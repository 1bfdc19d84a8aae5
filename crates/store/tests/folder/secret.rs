//! The secret of a store lives as long as its data.

use std::fs;

use trimtab_store::{CollectOptions, Error, FolderStore, Put, Store, Stream};

use super::{Home, put, session};

/// Makes a store as older versions did: no tables for the store as a whole, and the secret, if
/// there is one, in the log of a session.
fn make_old(home: &Home, secret: Option<&[u8]>) {
    let store = home.open();
    put(&store, &session("s"), "c1", b"bytes");
    if let Some(secret) = secret {
        let place = session("trimtab-proxy/secret");
        store.append(&place, Stream::Log, 0, &[secret]).unwrap();
    }
    drop(store);
    let db = rusqlite::Connection::open(home.store.join("trimtab.db")).unwrap();
    db.execute_batch("DROP TABLE meta; DROP TABLE leases;")
        .unwrap();
}

#[test]
fn secret_of_an_older_version_is_migrated() {
    let home = Home::new();
    make_old(&home, Some(&[7; 32]));
    let store = home.open();
    assert_eq!(store.secret().unwrap(), [7; 32]);
    let all = CollectOptions {
        max_bytes: Some(0),
        live_within: std::time::Duration::ZERO,
        ..CollectOptions::default()
    };
    std::thread::sleep(std::time::Duration::from_millis(5));
    assert_eq!(store.collect(&all).unwrap().sessions.len(), 2);
    drop(store);
    assert_eq!(home.open().secret().unwrap(), [7; 32]);
}

#[test]
fn collection_in_an_old_store_migrates_the_secret_first() {
    let home = Home::new();
    make_old(&home, Some(&[9; 32]));
    let store = home.open();
    store
        .delete_session(&session("trimtab-proxy/secret"))
        .unwrap();
    drop(store);
    assert_eq!(home.open().secret().unwrap(), [9; 32]);
}

#[test]
fn concurrent_opens_of_an_old_store_agree_on_the_secret() {
    let home = Home::new();
    make_old(&home, None);
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
