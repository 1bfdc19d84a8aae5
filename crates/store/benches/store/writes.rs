//! Durable puts and appends, and what they take on disk.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::rc::Rc;

use rusqlite::Connection;
use trimtab_store::{FolderStore, Put, SessionId, Store, Stream};
use trimtab_testkit::bench::BenchComparison;

/// Text like a build log, never the same twice.
pub(crate) fn text(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed * 2 + 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut text = Vec::with_capacity(len + 128);
    while text.len() < len {
        let (a, b) = (next(), next());
        let line = format!(
            "{:08x} INFO worker-{} handled request {} of crate_{} in {} us, status {}\n",
            a & 0xffff_ffff,
            a % 16,
            b % 100_000,
            b % 300,
            a % 9_973,
            200 + b % 5,
        );
        text.extend(line.as_bytes());
    }
    text.truncate(len);
    text
}

fn plain_file(folder: &Path, bytes: &[u8], n: u64) {
    let temporary = folder.join(format!("new-{n}"));
    let mut file = File::create(&temporary).unwrap();
    file.write_all(bytes).unwrap();
    file.sync_all().unwrap();
    fs::rename(&temporary, folder.join(format!("{n}"))).unwrap();
    File::open(folder).unwrap().sync_all().unwrap();
}

fn database(folder: &Path) -> Connection {
    let database = Connection::open(folder.join("raw.db")).unwrap();
    let setup = "PRAGMA page_size = 16384; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         CREATE TABLE outputs (id INTEGER PRIMARY KEY, bytes BLOB);
         CREATE TABLE log (id INTEGER PRIMARY KEY, bytes BLOB);";
    database.execute_batch(setup).unwrap();
    database
}

fn session() -> SessionId {
    SessionId::new("bench").unwrap()
}

pub(crate) fn puts() {
    for (name, size, rounds) in [
        ("1 KB", 1_000, 300),
        ("64 KB", 64_000, 100),
        ("10 MB", 10_000_000, 7),
    ] {
        let home = Rc::new(tempfile::tempdir().unwrap());
        let store = FolderStore::open(home.path().join("store")).unwrap();
        let database = database(home.path());
        let files = Rc::clone(&home);
        let (mut file, mut row, mut output) = (0, 0, 0);
        // Copying the text is measured too, but it is the same for all three.
        BenchComparison::new(format!("durable put of {name}"), rounds)
            .candidate("plain file: write, sync, rename, sync", move || {
                file += 1;
                plain_file(files.path(), &vary(size, file), file);
            })
            .candidate("the database alone, not compressed", move || {
                row += 1;
                let bytes = vary(size, row);
                database
                    .execute("INSERT INTO outputs (bytes) VALUES (?1)", [bytes])
                    .unwrap();
            })
            .candidate("trimtab: put", move || {
                output += 1;
                let bytes = vary(size, output);
                let _keep = &home;
                store.put(&session(), Put::new("call", &bytes)).unwrap()
            })
            .run();
    }
}

/// The same text each time but for a number in every frame.
fn vary(size: usize, n: u64) -> Vec<u8> {
    thread_local! {
        static BASE: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
    }
    BASE.with_borrow_mut(|base| {
        if base.len() != size {
            *base = text(size, 1);
        }
        let mut bytes = base.clone();
        for frame in bytes.chunks_mut(64 * 1024) {
            let number = format!("{n:016}");
            let len = number.len().min(frame.len());
            frame[..len].copy_from_slice(&number.as_bytes()[..len]);
        }
        bytes
    })
}

pub(crate) fn appends() {
    let home = Rc::new(tempfile::tempdir().unwrap());
    let store = FolderStore::open(home.path().join("store")).unwrap();
    let database = database(home.path());
    let entry = text(400, 3);
    let (line, row) = (entry.clone(), entry.clone());
    let mut file = File::create(home.path().join("log")).unwrap();
    let mut position = 0;
    BenchComparison::new("append 400 bytes to a log", 300)
        .candidate("plain file: write, sync", move || {
            file.write_all(&line).unwrap();
            file.sync_data().unwrap();
        })
        .candidate("the database alone", move || {
            database
                .execute("INSERT INTO log (bytes) VALUES (?1)", [&row])
                .unwrap();
        })
        .candidate("trimtab: append", move || {
            let _keep = &home;
            position = store
                .append(&session(), Stream::Log, position, &[&entry])
                .unwrap();
        })
        .run();
}

/// Disk use of the outputs of recorded sessions, when they are there.
pub(crate) fn corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/public");
    println!("\ndisk use, outputs of recorded sessions");
    let Ok(folder) = fs::read_dir(corpus) else {
        println!("  skipped: no recorded sessions here");
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let store = FolderStore::open(home.path().join("store")).unwrap();
    let (mut raw, mut outputs) = (0, 0);
    for path in folder.map(|entry| entry.unwrap().path()) {
        if path.extension().is_none_or(|kind| kind != "jsonl") {
            continue;
        }
        for line in fs::read_to_string(path).unwrap().lines() {
            let conversation: serde_json::Value = serde_json::from_str(line).unwrap();
            let id = conversation["id"].as_str().unwrap_or("none");
            let session = SessionId::new(id).unwrap();
            for message in conversation["messages"].as_array().into_iter().flatten() {
                if message["role"] != "tool" {
                    continue;
                }
                let content = match &message["content"] {
                    serde_json::Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                let call = message["tool_call_id"].as_str().unwrap_or("none");
                store.put(&session, Put::new(call, &content)).unwrap();
                raw += content.len() as u64;
                outputs += 1;
            }
        }
    }
    drop(store);
    let reserve = fs::metadata(home.path().join("store/reserve")).map_or(0, |file| file.len());
    let used = size_of(&home.path().join("store")) - reserve;
    println!(
        "  {outputs} outputs, {raw} bytes as they came, {used} bytes on disk: {:.2} x",
        used as f64 / raw as f64
    );
    println!("  (and {reserve} bytes kept back once per store)");
}

fn size_of(path: &Path) -> u64 {
    if !path.is_dir() {
        return fs::metadata(path).unwrap().len();
    }
    fs::read_dir(path)
        .unwrap()
        .map(|entry| size_of(&entry.unwrap().path()))
        .sum()
}
