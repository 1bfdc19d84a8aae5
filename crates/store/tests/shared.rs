//! What only the shared store has to do: several processes, and bytes in two places.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may fail"
)]

use std::io::{self, Read};
use std::time::Duration;

use trimtab_store::{
    CollectOptions, Error, FolderStore, Put, SessionId, SharedOptions, SharedStore, Store, Stream,
    copy_store, now_millis,
};
use trimtab_testkit::servers::{ObjectServer, PostgresServer};

fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

fn database() -> Option<String> {
    Some(PostgresServer::shared()?.new_database().unwrap())
}

/// A store whose large outputs are in a new bucket of a server.
fn store_with_bucket() -> Option<(SharedStore, &'static ObjectServer, String)> {
    let (url, objects) = (database()?, ObjectServer::shared()?);
    let bucket = objects.new_bucket().unwrap();
    let blobs = ObjectServer::url(&bucket, objects.address());
    let store = SharedOptions::new(&url).blobs(&blobs).open().unwrap();
    Some((store, objects, bucket))
}

/// Bytes that do not compress, so that they are too large for a row.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = std::iter::from_fn(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Some(state.to_le_bytes()[3])
    });
    next.take(len).collect()
}

#[test]
fn stores_that_open_at_the_same_time_share_one_schema_and_one_secret() {
    let Some(url) = database() else { return };
    let opened: Vec<_> = std::thread::scope(|threads| {
        let open = || threads.spawn(|| SharedStore::open(&url).unwrap().secret().unwrap());
        let opening: Vec<_> = (0..8).map(|_| open()).collect();
        let joined = opening.into_iter().map(|thread| thread.join().unwrap());
        joined.collect()
    });
    assert!(opened.iter().all(|secret| *secret == opened[0]));
}

#[test]
fn claim_excludes_other_processes_until_it_is_released_or_expires() {
    let Some(url) = database() else { return };
    let (one, other) = (
        SharedStore::open(&url).unwrap(),
        SharedStore::open(&url).unwrap(),
    );
    let (hot, long) = (session("hot"), Duration::from_mins(1));
    assert!(one.claim(&hot, "summary", long).unwrap());
    assert!(
        one.claim(&hot, "summary", long).unwrap(),
        "the holder may renew it"
    );
    assert!(!other.claim(&hot, "summary", long).unwrap());
    assert!(other.claim(&session("cold"), "summary", long).unwrap());
    other.release(&hot, "summary").unwrap();
    assert!(
        !other.claim(&hot, "summary", long).unwrap(),
        "only the holder releases it"
    );
    one.release(&hot, "summary").unwrap();
    assert!(
        other
            .claim(&hot, "summary", Duration::from_millis(1))
            .unwrap()
    );
    std::thread::sleep(Duration::from_millis(200));
    assert!(one.claim(&hot, "summary", long).unwrap(), "it expired");
}

#[test]
fn bytes_without_a_row_are_removed_after_an_hour() {
    let Some(url) = database() else { return };
    let (Some(server), Some(objects)) = (PostgresServer::shared(), ObjectServer::shared()) else {
        return;
    };
    let bucket = objects.new_bucket().unwrap();
    let blobs = ObjectServer::url(&bucket, objects.address());
    let store = SharedOptions::new(&url).blobs(&blobs).open().unwrap();
    let s = session("s");
    store.put(&s, Put::new("kept", &noise(300_000))).unwrap();
    store.put(&s, Put::new("lost", &noise(400_000))).unwrap();
    assert_eq!(objects.object_count(&bucket).unwrap(), 2);
    // As if a process had been killed before it could name its bytes.
    let name = url.rsplit('/').next().unwrap();
    let delete = "DELETE FROM trimtab.outputs WHERE call = 'lost';
        DELETE FROM trimtab.blobs WHERE byte_size = 400000;
        INSERT INTO trimtab.chunks VALUES ('stray', 0, 0, 'x')";
    server.sql(name, delete).unwrap();
    let young = store.collect(&CollectOptions::default()).unwrap();
    assert_eq!(young.stray_files, 1, "only the old chunk");
    assert_eq!(objects.object_count(&bucket).unwrap(), 2);
    let later = SharedOptions::new(&url)
        .blobs(&blobs)
        .clock(|| now_millis() + 2 * 60 * 60 * 1000)
        .open()
        .unwrap();
    assert_eq!(
        later
            .collect(&CollectOptions::default())
            .unwrap()
            .stray_files,
        1
    );
    assert_eq!(objects.object_count(&bucket).unwrap(), 1);
    let kept = store.list(&s).unwrap();
    assert_eq!(
        store.get(&s, kept[0].reference.id()).unwrap(),
        noise(300_000)
    );
}

#[test]
fn equal_large_outputs_leave_one_object() {
    let Some((store, objects, bucket)) = store_with_bucket() else {
        return;
    };
    for call in ["one", "two", "one"] {
        store
            .put(&session("s"), Put::new(call, &noise(300_000)))
            .unwrap();
    }
    assert_eq!(objects.object_count(&bucket).unwrap(), 1);
    store.delete_session(&session("s")).unwrap();
    assert_eq!(objects.object_count(&bucket).unwrap(), 0);
}

#[test]
fn upload_whose_source_fails_is_aborted() {
    let Some((store, objects, bucket)) = store_with_bucket() else {
        return;
    };
    let bytes = noise(20 << 20);
    let mut seen = 0;
    let mut source = bytes.as_slice().chain(FailingSource(|| {
        seen = objects.open_upload_count(&bucket).unwrap();
    }));
    let put = Put::from_reader("c", &mut source);
    assert!(matches!(
        store.put(&session("s"), put),
        Err(Error::Input(_))
    ));
    assert_eq!(seen, 1, "the upload had begun");
    assert_eq!(objects.open_upload_count(&bucket).unwrap(), 0);
}

/// A source that fails when it is read, after it has called its function.
struct FailingSource<F>(F);

impl<F: FnMut()> Read for FailingSource<F> {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        (self.0)();
        Err(io::Error::other("gone"))
    }
}

#[test]
fn copy_from_a_folder_to_a_database_and_back_keeps_refs_and_entries() {
    let Some(url) = database() else { return };
    let home = tempfile::tempdir().unwrap();
    let folder = FolderStore::open(home.path().join("one")).unwrap();
    let (child, parent) = (session("child"), session("a\0strange/name"));
    folder.link(&child, &parent).unwrap();
    let large = folder
        .put(&parent, Put::new("c\0", &noise(300_000)))
        .unwrap();
    folder
        .append(&child, Stream::Log, 0, &[b"one", b"two"])
        .unwrap();
    let shared = SharedStore::open(&url).unwrap();
    let back = FolderStore::open(home.path().join("two")).unwrap();
    copy_store(&folder, &shared, &mut |_| {}).unwrap();
    copy_store(&shared, &back, &mut |_| {}).unwrap();
    for store in [&shared as &dyn Store, &back] {
        assert_eq!(store.get(&child, large.id()).unwrap(), noise(300_000));
        assert_eq!(
            store.read(&child, Stream::Log, 0, 9).unwrap(),
            [b"one", b"two"]
        );
        assert_eq!(store.secret().unwrap(), folder.secret().unwrap());
        assert_eq!(store.sessions().unwrap(), folder.sessions().unwrap());
        let again = store
            .put(&parent, Put::new("c\0", &noise(300_000)))
            .unwrap();
        assert_eq!(again.id(), large.id(), "the copy generates the same refs");
    }
}

#[test]
fn position_that_another_process_advanced_is_a_conflict() {
    let Some(url) = database() else { return };
    let (one, other) = (
        SharedStore::open(&url).unwrap(),
        SharedStore::open(&url).unwrap(),
    );
    let s = session("s");
    one.append(&s, Stream::Journal, 0, &[b"plan"]).unwrap();
    let refused = other.append(&s, Stream::Journal, 0, &[b"other plan"]);
    let expected = matches!(
        refused,
        Err(Error::Conflict {
            stream: "journal",
            expected: 0,
            actual: 1
        })
    );
    assert!(expected, "{refused:?}");
    let (status, positions) = other.positions(&[session("none"), s]).unwrap();
    assert_eq!((status.removals, positions), (0, vec![(0, 0), (0, 1)]));
}

#[test]
fn session_that_another_process_uses_during_a_collection_stays() {
    let Some(url) = database() else { return };
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let hour = Duration::from_hours(1);
    let (used, unused) = (session("used"), session("unused"));
    let store = SharedStore::open(&url).unwrap();
    for session in [&used, &unused] {
        store.append(session, Stream::Log, 0, &[b"entry"]).unwrap();
    }
    let later = SharedOptions::new(&url)
        .clock(|| now_millis() + 10 * 60 * 60 * 1000)
        .open()
        .unwrap();
    let name = url.rsplit('/').next().unwrap();
    let report = std::thread::scope(|threads| {
        // The other process has used the session, and commits while the collection runs.
        let use_session = "BEGIN;
            UPDATE trimtab.sessions SET used = used + 36000000 WHERE name = 'used';
            SELECT pg_sleep(1.5);
            COMMIT";
        let using = threads.spawn(move || server.sql(name, use_session).unwrap());
        let sleeping = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event = 'PgSleep'";
        // On a slow machine it may have committed already.
        while !using.is_finished() && server.sql(name, sleeping).unwrap() == "0" {}
        let request = CollectOptions {
            older_than: Some(5 * hour),
            ..CollectOptions::default()
        };
        later.collect(&request).unwrap()
    });
    assert_eq!(report.sessions, [unused]);
    assert_eq!(store.position(&used, Stream::Log).unwrap(), 1);
}

/// Changes the clock of a database for all connections that are opened later.
fn shift_clock(server: &PostgresServer, name: &str, by: &str) {
    let shift = format!(
        "CREATE SCHEMA shifted;
         CREATE FUNCTION shifted.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
             AS $$ SELECT pg_catalog.clock_timestamp() + interval '{by}' $$;
         ALTER DATABASE {name} SET search_path = shifted, pg_catalog"
    );
    server.sql(name, &shift).unwrap();
}

#[test]
fn machine_whose_clock_is_ahead_removes_nothing_that_is_in_use() {
    let Some(url) = database() else { return };
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let name = url.rsplit('/').next().unwrap();
    // The clock of this machine is ten hours ahead of that of the database.
    shift_clock(server, name, "-10 hours");
    let store = SharedStore::open(&url).unwrap();
    let (used, leased, own) = (session("used"), session("leased"), session("own"));
    for session in [&used, &leased, &own] {
        store.append(session, Stream::Log, 0, &[b"entry"]).unwrap();
    }
    // Machines with another clock use one session, have another in memory, and upload an output.
    let now = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let others = format!(
        "UPDATE trimtab.sessions SET used = {now} WHERE name = 'used';
         UPDATE trimtab.sessions SET used = 0, leased_until = {now} + 900000 WHERE name = 'leased';
         INSERT INTO trimtab.chunks VALUES ('uploaded', 0, {now}, 'x')"
    );
    server.sql(name, &others).unwrap();
    let request = CollectOptions {
        older_than: Some(Duration::from_hours(5)),
        ..CollectOptions::default()
    };
    let report = store.collect(&request).unwrap();
    assert_eq!((report.sessions, report.stray_files), (vec![], 0));
    store.lease(&[own], Duration::from_mins(15)).unwrap();
    let differences = format!(
        "SELECT abs(used - {now}) < 3600000 AND leased_until BETWEEN {now} AND {now} + 3600000
         FROM trimtab.sessions WHERE name = 'own'"
    );
    assert_eq!(server.sql(name, &differences).unwrap(), "t");
}

#[test]
fn collection_leaves_the_objects_of_another_store_in_the_same_bucket() {
    let Some((one, objects, bucket)) = store_with_bucket() else {
        return;
    };
    let Some(url) = database() else { return };
    let later = SharedOptions::new(&url)
        .blobs(ObjectServer::url(&bucket, objects.address()))
        .clock(|| now_millis() + 2 * 60 * 60 * 1000)
        .open()
        .unwrap();
    let s = session("s");
    let output = one.put(&s, Put::new("c", &noise(300_000))).unwrap();
    let collected = later.collect(&CollectOptions::default());
    assert_eq!(one.get(&s, output.id()).unwrap(), noise(300_000));
    assert!(
        matches!(collected, Err(Error::ForeignObjects)),
        "{collected:?}"
    );
    let put = later.put(&s, Put::new("c", &noise(300_000)));
    assert!(matches!(put, Err(Error::ForeignObjects)), "{put:?}");
    later
        .put(&s, Put::new("c", "small outputs stay in the database"))
        .unwrap();
}

#[test]
fn process_without_the_object_store_removes_nothing_that_is_in_it() {
    let Some(url) = database() else { return };
    let Some(objects) = ObjectServer::shared() else {
        return;
    };
    let bucket = objects.new_bucket().unwrap();
    let blobs = ObjectServer::url(&bucket, objects.address());
    let whole = SharedOptions::new(&url).blobs(&blobs).open().unwrap();
    let without = SharedStore::open(&url).unwrap();
    let s = session("s");
    let output = whole.put(&s, Put::new("c", &noise(300_000))).unwrap();
    let named = CollectOptions {
        sessions: [s.clone()].into(),
        ..CollectOptions::default()
    };
    let refused = [
        without.delete(&s, output.id()),
        without.delete_session(&s),
        without.collect(&named).map(|_| ()),
    ];
    for refused in refused {
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("--blobs"), "{text}");
    }
    assert_eq!(whole.get(&s, output.id()).unwrap(), noise(300_000));
    whole.collect(&named).unwrap();
    assert_eq!(objects.object_count(&bucket).unwrap(), 0);
}

#[test]
fn output_that_another_process_erased_is_not_read_from_memory() {
    let Some(url) = database() else { return };
    let Some(objects) = ObjectServer::shared() else {
        return;
    };
    let blobs = ObjectServer::url(&objects.new_bucket().unwrap(), objects.address());
    let open = || SharedOptions::new(&url).blobs(&blobs).open().unwrap();
    let (one, other) = (open(), open());
    let s = session("s");
    let outputs = [
        one.put(&s, Put::new("small", "text")).unwrap(),
        one.put(&s, Put::new("large", &noise(300_000))).unwrap(),
    ];
    for output in &outputs {
        other.get(&s, output.id()).unwrap();
    }
    assert!(one.claim(&s, "summary", Duration::from_hours(1)).unwrap());
    one.delete_session(&s).unwrap();
    for output in &outputs {
        let read = other.get(&s, output.id());
        assert!(matches!(read, Err(Error::NotFound)), "{read:?}");
        let metadata = other.metadata(&s, output.id());
        assert!(matches!(metadata, Err(Error::NotFound)), "{metadata:?}");
    }
    let name = url.rsplit('/').next().unwrap();
    let server = PostgresServer::shared().unwrap();
    let claims = server.sql(name, "SELECT count(*) FROM trimtab.claims");
    assert_eq!(claims.unwrap(), "0", "the name of the session is gone too");
}

#[test]
fn slow_statement_does_not_keep_others_away_from_the_database() {
    let Some(url) = database() else { return };
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let store = SharedStore::open(&url).unwrap();
    let (slow, quick) = (session("slow"), session("quick"));
    for session in [&slow, &quick] {
        store.touch(session).unwrap();
    }
    let name = url.rsplit('/').next().unwrap();
    let sleep = "CREATE FUNCTION trimtab.sleep() RETURNS trigger LANGUAGE plpgsql
            AS $$ BEGIN PERFORM pg_sleep(5); RETURN NEW; END $$;
        CREATE TRIGGER slow BEFORE UPDATE ON trimtab.sessions FOR EACH ROW
            WHEN (OLD.name = 'slow') EXECUTE FUNCTION trimtab.sleep()";
    server.sql(name, sleep).unwrap();
    std::thread::scope(|threads| {
        let slow = threads.spawn(|| store.touch(&slow));
        let mut is_over = false;
        // One more after the slow statement has failed.
        while !std::mem::replace(&mut is_over, slow.is_finished()) {
            store.touch(&quick).unwrap();
            std::thread::sleep(Duration::from_millis(50));
        }
        let slow = slow.join().unwrap();
        assert!(matches!(slow, Err(Error::Busy)), "{slow:?}");
    });
}
