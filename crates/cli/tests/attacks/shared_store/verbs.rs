//! The verbs on a store in a database.

use serde_json::Value;
use trimtab_testkit::servers::{ObjectServer, PostgresServer};

use super::{noise, shared_place};
use crate::access::write_settings;
use crate::run::{finished, texts};

#[test]
fn verbs_read_and_write_a_database() {
    let Some(place) = shared_place() else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("long.txt"), noise(3, 400)).unwrap();
    let run = |args: &[&str]| {
        let mut all = args.to_vec();
        all.extend(["--store", &place.database, "--blobs", &place.blobs]);
        let done = finished(folder.path(), &all);
        let (out, error) = texts(&done);
        assert!(done.status.success(), "{args:?}: {error}");
        out
    };
    let put = run(&[
        "output",
        "put",
        "--session",
        "s",
        "--call",
        "c",
        "--json",
        "long.txt",
    ]);
    let put: Value = serde_json::from_str(&put).unwrap();
    let id = put["ref"].as_str().unwrap().to_owned();
    let line = noise(3, 400).lines().nth(5).unwrap().to_owned();
    let lines = run(&[
        "output",
        "read",
        "--session",
        "s",
        &id,
        "--offset",
        "5",
        "--limit",
        "1",
    ]);
    assert!(lines.contains(&line), "{lines}");
    let found = run(&["output", "grep", "--session", "s", &id, &line]);
    assert!(found.contains(&line), "{found}");
    assert!(run(&["output", "sessions"]).contains('s'));
    // It fails if the providers cannot be reached from here.
    let doctor = [
        "doctor",
        "--store",
        &place.database,
        "--blobs",
        &place.blobs,
    ];
    let (doctor, _) = texts(&finished(folder.path(), &doctor));
    let checked = doctor.lines().find(|line| line.contains("large outputs"));
    assert!(
        checked.is_some_and(|line| line.starts_with("ok")),
        "{doctor}"
    );
    run(&["output", "erase", "--session", "s", "--yes"]);
    let server = PostgresServer::shared().unwrap();
    let name = place.database.rsplit('/').next().unwrap();
    let left = "SELECT (SELECT count(*) FROM trimtab.sessions) + (SELECT count(*) FROM
        trimtab.outputs) + (SELECT count(*) FROM trimtab.blobs) + (SELECT count(*) FROM
        trimtab.chunks) + (SELECT count(*) FROM trimtab.entries)";
    assert_eq!(server.sql(name, left).unwrap(), "0", "erased rows are gone");
    if let (Some(bucket), Some(server)) = (&place.bucket, ObjectServer::shared()) {
        assert_eq!(
            server.object_count(bucket).unwrap(),
            0,
            "erased bytes are gone"
        );
    }
}

/// The status and the text of a check of `trimtab doctor`.
fn checked(store: &str, blobs: Option<&str>, name: &str) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let args = ["doctor", "--offline", "--json", "--listen", "127.0.0.1:0"];
    let blobs = blobs.map(|blobs| ["--blobs", blobs]);
    let blobs = blobs.as_ref().map_or(&[][..], |blobs| &blobs[..]);
    let args = [&args[..], &["--store", store], blobs].concat();
    let (report, error) = texts(&finished(folder.path(), &args));
    let report: Value = serde_json::from_str(&report).unwrap_or_else(|_| panic!("{error}"));
    let checks = report["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == name);
    let check = check.unwrap_or_else(|| panic!("no check '{name}': {report}"));
    let status = check["state"].as_str().unwrap().to_owned();
    (status, check.to_string())
}

#[test]
fn doctor_checks_a_store_before_it_exists() {
    let Some(place) = shared_place() else { return };
    let (store, blobs) = (place.database.as_str(), place.blobs.as_str());
    assert_eq!(checked(store, Some(blobs), "store").0, "ok");
    let server = PostgresServer::shared().unwrap();
    let name = place.database.rsplit('/').next().unwrap();
    server.sql(name, "CREATE ROLE reader LOGIN").unwrap();
    let reader = place.database.replace("postgres@", "reader@");
    let (status, text) = checked(&reader, Some(blobs), "store");
    assert_eq!(status, "problem");
    assert!(
        text.contains("user 'reader' may not create tables") && text.contains("grant"),
        "{text}"
    );
    let Some(objects) = ObjectServer::shared() else {
        return;
    };
    let missing = ObjectServer::url("no-such-bucket", objects.address());
    let (status, text) = checked(store, Some(&missing), "store");
    assert_eq!(status, "problem");
    assert!(
        text.contains("bucket or container does not exist"),
        "{text}"
    );
    let count = "SELECT count(*) FROM pg_namespace WHERE nspname = 'trimtab'";
    assert_eq!(server.sql(name, count).unwrap(), "0", "nothing was created");
}

#[test]
fn doctor_does_not_call_outputs_damaged_that_it_cannot_reach() {
    let Some(place) = shared_place() else { return };
    let (Some(objects), Some(_)) = (ObjectServer::shared(), &place.bucket) else {
        return;
    };
    let (store, blobs) = (place.database.as_str(), place.blobs.as_str());
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("long.txt"), noise(4, 400)).unwrap();
    let put = ["output", "put", "--session", "s", "--call", "c", "long.txt"];
    let put = [&put[..], &["--store", store, "--blobs", blobs]].concat();
    assert!(finished(folder.path(), &put).status.success());
    assert_eq!(checked(store, Some(blobs), "stored outputs").0, "ok");
    let missing = ObjectServer::url("no-such-bucket", objects.address());
    let others = [
        (None, "the setting `blobs` is missing"),
        (Some(missing.as_str()), "bucket or container does not exist"),
        (
            Some("s3://bucket?endpoint=http://127.0.0.1:1&allow_http=true"),
            "cannot be reached",
        ),
    ];
    for (blobs, expected) in others {
        let (status, text) = checked(store, blobs, "stored outputs");
        assert_eq!(status, "problem", "{blobs:?}");
        let is_clear = text.contains(expected) && !text.contains("damaged");
        assert!(is_clear, "{blobs:?}: {text}");
    }
}

#[test]
fn errors_of_a_database_name_it_without_its_password() {
    let folder = tempfile::tempdir().unwrap();
    let fails = |store: &str, text: &str| {
        let done = finished(folder.path(), &["output", "sessions", "--store", store]);
        let (_, error) = texts(&done);
        assert!(!done.status.success(), "{store}");
        assert!(
            error.contains(text) && error.contains("hint:"),
            "{store}: {error}"
        );
        assert!(!error.contains("secret"), "{error}");
    };
    fails("postgres://me:secret@127.0.0.1:1/none", "cannot be reached");
    fails(
        "postgres://me:secret@127.0.0.1:port/none",
        "bad URL of the database",
    );
    fails(
        "postgres://me:secret@127.0.0.1/none?sslmode=always",
        "sslmode 'always' is not one of disable, prefer, require, verify-ca, verify-full",
    );
    fails("mysql://me:secret@127.0.0.1/none", "not a store");
    let database = ["--store", "postgres://127.0.0.1/none"];
    let objects = ["output", "sessions", "--blobs", "ftp://secret@host/folder"];
    let (_, error) = texts(&finished(
        folder.path(),
        &[&objects[..], &database].concat(),
    ));
    assert!(
        error.contains("object store") && error.contains("gs://") && !error.contains("secret"),
        "{error}"
    );
    let done = finished(
        folder.path(),
        &[
            "output",
            "sessions",
            "--blobs",
            "s3://bucket",
            "--store",
            "folder",
        ],
    );
    let (_, error) = texts(&done);
    assert!(error.contains("needs a store in a database"), "{error}");
}

#[test]
fn folder_is_used_although_the_settings_name_an_object_store() {
    let folder = tempfile::tempdir().unwrap();
    let settings = "store = \"postgres://127.0.0.1:1/none\"\nblobs = \"s3://bucket\"\n";
    write_settings(folder.path(), settings);
    std::fs::write(folder.path().join("text"), "text").unwrap();
    let put = ["output", "put", "--session", "s", "--call", "c", "text"];
    let done = finished(folder.path(), &[&put[..], &["--store", "own"]].concat());
    assert!(done.status.success(), "{}", texts(&done).1);
    write_settings(folder.path(), "blobs = \"s3://bucket\"\n");
    let (_, error) = texts(&finished(folder.path(), &put));
    assert!(
        error.contains("needs a store in a database") && error.contains("hint:"),
        "no store is named at all: {error}"
    );
}

#[test]
fn copy_refuses_stores_that_would_disturb_each_other() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("text"), "text").unwrap();
    let put = ["output", "put", "--session", "s", "--call", "c", "text"];
    let put = [&put[..], &["--store", "one"]].concat();
    assert!(finished(folder.path(), &put).status.success());
    let (database, other) = ("postgres://127.0.0.1:1/a", "postgres://127.0.0.1:1/b");
    let refused: [(&[&str], &str); 4] = [
        (&["one", "./one"], "both the source and the target"),
        (&[database, database], "both the source and the target"),
        (
            &["one", "two", "--to-blobs", "s3://bucket"],
            "--to-blobs needs a store in a database, and two is a folder",
        ),
        (
            &[
                database,
                other,
                "--from-blobs",
                "s3://bucket/a?region=x",
                "--to-blobs",
                "s3://bucket/a/",
            ],
            "the same object store",
        ),
    ];
    for (args, expected) in refused {
        let done = finished(folder.path(), &[&["store", "copy"][..], args].concat());
        let (_, error) = texts(&done);
        assert_eq!(done.status.code(), Some(2), "{args:?}: {error}");
        assert!(
            error.contains(expected) && error.contains("hint:"),
            "{args:?}: {error}"
        );
    }
    assert!(!folder.path().join("two").exists(), "nothing was created");
}

#[test]
fn erasure_without_the_object_store_is_refused() {
    let Some(place) = shared_place() else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("long.txt"), noise(5, 400)).unwrap();
    let stores = ["--store", &place.database, "--blobs", &place.blobs];
    let put = ["output", "put", "--session", "s", "--call", "c", "long.txt"];
    let put = finished(folder.path(), &[&put[..], &stores].concat());
    assert!(put.status.success(), "{}", texts(&put).1);
    let erase = ["output", "erase", "--session", "s", "--yes"];
    let done = finished(folder.path(), &[&erase[..], &stores[..2]].concat());
    let (_, error) = texts(&done);
    assert!(
        !done.status.success() && error.contains("--blobs"),
        "{error}"
    );
    let done = finished(folder.path(), &[&erase[..], &stores].concat());
    assert!(done.status.success(), "{}", texts(&done).1);
    if let (Some(bucket), Some(server)) = (&place.bucket, ObjectServer::shared()) {
        assert_eq!(server.object_count(bucket).unwrap(), 0);
    }
}

#[test]
fn newer_schema_is_refused() {
    let Some(place) = shared_place() else { return };
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let args = ["output", "sessions", "--store", &place.database];
    let missing = finished(folder.path(), &args);
    assert!(!missing.status.success(), "reading creates no store");
    std::fs::write(folder.path().join("text"), "text").unwrap();
    let put = ["output", "put", "--session", "s", "--call", "c", "text"];
    let put = [&put[..], &["--store", &place.database]].concat();
    let put = finished(folder.path(), &put);
    assert!(put.status.success(), "{}", texts(&put).1);
    assert!(finished(folder.path(), &args).status.success());
    let name = place.database.rsplit('/').next().unwrap();
    server
        .sql(name, "INSERT INTO trimtab.schema_version VALUES (99)")
        .unwrap();
    let (_, error) = texts(&finished(folder.path(), &args));
    assert!(
        error.contains("format 99") && error.contains("upgrade"),
        "{error}"
    );
}
