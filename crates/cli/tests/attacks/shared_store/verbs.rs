//! The verbs on a store in a database.

use serde_json::Value;
use trimtab_testkit::servers::{ObjectServer, PostgresServer};

use super::{noise, shared_place};
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
    assert!(
        texts(&done)
            .1
            .contains("--blobs needs a store in a database")
    );
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
