//! Permissions of the store, and files that it refuses to touch.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use trimtab_store::{Error, FolderStore, OutputForm, Store, Stream};

use super::{Home, Random, files, put, session};

fn refused(home: &Home) -> Error {
    FolderStore::open(&home.store).map(|_| ()).unwrap_err()
}

#[test]
fn store_is_readable_by_its_owner_only() {
    let home = Home::new();
    let store = home.open();
    let s = session("s");
    let id = put(&store, &s, "c1", &Random(7).bytes(1_000_000));
    store.append(&s, Stream::Log, 0, &[b"entry"]).unwrap();
    store.spill(&s, &id).unwrap();
    for folder in [
        &home.store,
        &home.store.join("blobs"),
        &home.store.join("spills"),
    ] {
        assert_eq!(
            fs::metadata(folder).unwrap().mode() & 0o777,
            0o700,
            "{folder:?}"
        );
    }
    let files = files(&home.store);
    assert!(files.len() >= 5, "{files:?}");
    for file in files {
        assert_eq!(
            fs::metadata(&file).unwrap().mode() & 0o777,
            0o600,
            "{file:?}"
        );
    }
}

#[test]
fn open_folder_is_made_private() {
    let home = Home::new();
    drop(home.open());
    fs::set_permissions(&home.store, fs::Permissions::from_mode(0o755)).unwrap();
    drop(home.open());
    assert_eq!(fs::metadata(&home.store).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn file_names_are_not_derived_from_input() {
    let home = Home::new();
    let store = home.open();
    let evil = "../../evil";
    let s = session(evil);
    let id = put(&store, &s, evil, &Random(7).bytes(1_000_000));
    store.spill(&s, &id).unwrap();
    for path in files(home.store.parent().unwrap()) {
        assert!(path.starts_with(&home.store), "{path:?}");
        assert!(!path.to_string_lossy().contains("evil"), "{path:?}");
    }
}

#[test]
fn store_behind_a_link_is_rejected() {
    let home = Home::new();
    let real = home.store.with_file_name("real");
    fs::create_dir(&real).unwrap();
    symlink(&real, &home.store).unwrap();
    assert!(matches!(refused(&home), Error::NotAStore { .. }));
    assert_eq!(
        fs::read_dir(&real).unwrap().count(),
        0,
        "and nothing was written"
    );
}

#[test]
fn planted_links_are_not_followed() {
    let home = Home::new();
    let outside = home.store.with_file_name("outside");
    fs::create_dir(&outside).unwrap();
    for name in ["trimtab.db", "lock", "blobs", "spills"] {
        fs::remove_dir_all(&home.store).ok();
        fs::create_dir(&home.store).unwrap();
        symlink(outside.join("target"), home.store.join(name)).unwrap();
        let error = refused(&home);
        assert!(
            matches!(error, Error::NotAStore { .. } | Error::Io { .. }),
            "{name}: {error}"
        );
    }
    fs::remove_dir_all(&home.store).unwrap();
    drop(home.open());
    for name in ["blobs", "spills"] {
        fs::remove_dir(home.store.join(name)).unwrap();
        symlink(&outside, home.store.join(name)).unwrap();
        let error = refused(&home);
        assert!(matches!(error, Error::NotAStore { .. }), "{name}: {error}");
        fs::remove_file(home.store.join(name)).unwrap();
    }
    assert_eq!(
        fs::read_dir(&outside).unwrap().count(),
        0,
        "nothing was written there"
    );
}

#[test]
fn output_replaced_by_a_link_is_damaged() {
    let home = Home::new();
    let store = home.open();
    let s = session("s");
    let bytes = Random(3).bytes(1_000_000);
    let id = put(&store, &s, "c1", &bytes);
    let file = files(&home.store.join("blobs")).remove(0);
    let outside = home.store.with_file_name("outside");
    fs::rename(&file, &outside).unwrap();
    symlink(&outside, &file).unwrap();
    let error = store.open(&s, &id, OutputForm::Whole).unwrap_err();
    assert!(
        error.is_damaged(),
        "even if the link leads to the right bytes: {error}"
    );
    // Storing the same bytes again heals it, without writing through the link.
    let before = fs::read(&outside).unwrap();
    assert_eq!(put(&store, &s, "c1", &bytes), id);
    assert_eq!(store.get(&s, &id).unwrap(), bytes);
    assert_eq!(fs::read(&outside).unwrap(), before);
}

#[test]
fn folder_of_another_user_is_left_untouched() {
    let home = Home::new();
    fs::create_dir(&home.store).unwrap();
    fs::set_permissions(&home.store, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(home.store.join("thesis.txt"), "years of work").unwrap();
    let error = refused(&home);
    assert!(error.to_string().contains("thesis.txt"), "{error}");
    assert_eq!(files(&home.store).len(), 1);
    assert_eq!(fs::metadata(&home.store).unwrap().mode() & 0o777, 0o755);
    fs::remove_file(home.store.join("thesis.txt")).unwrap();
    fs::write(home.store.join("trimtab.db"), "not a database at all").unwrap();
    assert!(refused(&home).is_damaged());
    let kept = fs::read(home.store.join("trimtab.db")).unwrap();
    assert_eq!(kept, b"not a database at all");
}

#[test]
fn newer_store_format_is_rejected_and_untouched() {
    let home = Home::new();
    let id = put(&home.open(), &session("s"), "c1", b"kept");
    let database = home.store.join("trimtab.db");
    set_header(&database, 60, 2);
    let before = fs::read(&database).unwrap();
    let error = refused(&home);
    assert!(
        matches!(error, Error::NewerFormat { found: 2, known: 1 }),
        "{error}"
    );
    assert_eq!(fs::read(&database).unwrap(), before);
    set_header(&database, 60, 1);
    assert_eq!(home.open().get(&session("s"), &id).unwrap(), b"kept");
    set_header(&database, 68, 99);
    assert!(
        matches!(refused(&home), Error::NotAStore { .. }),
        "not ours"
    );
}

/// Changes a number in the header of the database, as another program would.
fn set_header(database: &std::path::Path, at: usize, value: u32) {
    let mut bytes = fs::read(database).unwrap();
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
    fs::write(database, bytes).unwrap();
}

#[test]
fn leftovers_of_a_killed_process_are_removed() {
    let home = Home::new();
    let store = home.open();
    let s = session("s");
    let id = put(&store, &s, "c1", &Random(3).bytes(1_000_000));
    let blobs = home.store.join("blobs");
    let name = "0123456789abcdef0123456789abcdef";
    let strays = [blobs.join(name), blobs.join(format!("new-{name}"))];
    let foreign = blobs.join("readme");
    for path in strays.iter().chain([&foreign]) {
        fs::write(path, "left over").unwrap();
    }
    let report = store
        .collect(&trimtab_store::CollectOptions::default())
        .unwrap();
    assert_eq!(report.stray_files, 0, "they may belong to a put on its way");
    let now = std::time::UNIX_EPOCH + trimtab_store::since_epoch();
    let old = now - std::time::Duration::from_hours(2);
    for path in files(&blobs) {
        fs::File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_modified(old)
            .unwrap();
    }
    let report = store
        .collect(&trimtab_store::CollectOptions::default())
        .unwrap();
    assert_eq!(report.stray_files, 2);
    assert!(strays.iter().all(|path| !path.exists()) && foreign.exists());
    assert_eq!(store.get(&s, &id).unwrap().len(), 1_000_000);
}
