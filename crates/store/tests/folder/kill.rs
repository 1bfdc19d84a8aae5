//! Killed processes: nothing acknowledged is lost, and the store opens.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;
use std::time::Duration;

use trimtab_store::{CollectOptions, FolderStore, Store, Stream};

use super::{Home, Random, child_argument, files, put, rerun, rounds, session};

fn output(n: u64) -> Vec<u8> {
    let mut random = Random(n * 7 + 1);
    let limit = if n.is_multiple_of(5) { 600_000 } else { 30_000 };
    let size = usize::try_from(random.below(limit)).unwrap();
    random.bytes(size)
}

/// Run by the tests below in a process of its own, until it is killed: stores outputs, appends
/// to the log, removes and collects; says what it has been given an answer for.
#[test]
fn child_that_is_killed() {
    let Some(folder) = child_argument() else {
        return;
    };
    let store = FolderStore::open(folder).unwrap();
    let s = session("s");
    let first = store.position(&s, Stream::Log).unwrap();
    println!();
    for n in first.. {
        let id = put(&store, &s, &format!("c{n}"), &output(n));
        println!("stored {n} {id}");
        store.append(&s, Stream::Log, n, &[id.as_bytes()]).unwrap();
        println!("logged {n} {id}");
        if n.is_multiple_of(3) {
            let brief = session("brief");
            put(&store, &brief, "c", &output(n + 1_000_000));
            store.delete_session(&brief).unwrap();
            store.collect(&CollectOptions::default()).unwrap();
        }
    }
}

/// Starts the child, kills it after `life`, and gives what it said. If `once_stored` is set, its
/// life begins when it has stored something, however slow the machine is.
fn run_and_kill(home: &Home, once_stored: bool, life: Duration) -> String {
    let mut child = rerun("kill::child_that_is_killed", &home.store)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut said = String::new();
    while once_stored && !said.contains("stored ") {
        assert!(stdout.read_line(&mut said).unwrap() > 0, "it ended: {said}");
    }
    std::thread::sleep(life);
    // SIGKILL: it cannot be caught.
    child.kill().unwrap();
    stdout.read_to_string(&mut said).unwrap();
    let mut complaints = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut complaints)
        .unwrap();
    child.wait().unwrap();
    assert!(!complaints.contains("panicked"), "{complaints}");
    said
}

/// Remembers what was acknowledged; a line cut off by the kill was not.
fn note(said: &str, kind: &str, acknowledged: &mut BTreeMap<u64, String>) {
    let whole = said.rfind('\n').map_or("", |end| &said[..end]);
    for line in whole.lines() {
        if let Some((n, id)) = line
            .strip_prefix(kind)
            .and_then(|rest| rest.split_once(' '))
        {
            acknowledged.insert(n.parse().unwrap(), id.to_owned());
        }
    }
}

fn check(store: &FolderStore, stored: &BTreeMap<u64, String>, logged: &BTreeMap<u64, String>) {
    let s = session("s");
    for (n, id) in stored {
        let bytes = store.get(&s, id);
        let bytes = bytes.unwrap_or_else(|error| panic!("output {n} ({id}): {error}"));
        assert!(bytes == output(*n), "output {n} has wrong bytes");
    }
    let log = store.read(&s, Stream::Log, 0, usize::MAX).unwrap();
    for (n, id) in logged {
        assert_eq!(log[usize::try_from(*n).unwrap()], id.as_bytes());
    }
    // Also what was not acknowledged must be whole, if it is there.
    for metadata in store.list(&s).unwrap() {
        store.get(&s, metadata.reference.id()).unwrap();
    }
}

#[test]
fn kill_loses_nothing_acknowledged() {
    let kills = rounds(50, 500);
    let mut random = Random(11);
    let mut home = Home::new();
    let (mut stored, mut logged) = (BTreeMap::new(), BTreeMap::new());
    let mut acknowledged = 0;
    for kill in 0..kills {
        // A fresh store now and then, so that checking stays quick.
        if kill.is_multiple_of(10) {
            acknowledged += stored.len() + logged.len();
            (home, stored, logged) = (Home::new(), BTreeMap::new(), BTreeMap::new());
        }
        // Every other one may be killed while it opens the store.
        let once_stored = kill.is_multiple_of(2);
        let life = Duration::from_micros(random.below(60_000));
        let said = run_and_kill(&home, once_stored, life);
        note(&said, "stored ", &mut stored);
        note(&said, "logged ", &mut logged);
        check(&home.open(), &stored, &logged);
    }
    acknowledged += stored.len() + logged.len();
    println!("{kills} kills, {acknowledged} acknowledged, none lost");
    assert!(
        acknowledged as u64 >= kills / 2,
        "half of them stored something"
    );
}

#[test]
fn interrupted_creation_leaves_an_openable_store() {
    let kills = rounds(50, 500);
    let mut random = Random(12);
    let (mut early, mut empty) = (0, 0);
    for _ in 0..kills {
        let home = Home::new();
        let said = run_and_kill(&home, false, Duration::from_micros(random.below(20_000)));
        let made = home.store.join("trimtab.db").exists();
        early += u64::from(!made);
        empty += u64::from(home.store.exists() && !made);
        let (mut stored, mut logged) = (BTreeMap::new(), BTreeMap::new());
        note(&said, "stored ", &mut stored);
        note(&said, "logged ", &mut logged);
        let store = home.open();
        check(&store, &stored, &logged);
        put(&store, &session("s"), "after", b"it works");
        let left: Vec<_> = files(&home.store)
            .into_iter()
            .filter(|path| path.parent() == Some(&home.store))
            .filter(|path| path.to_string_lossy().contains("new-"))
            .collect();
        assert!(made || left.is_empty(), "leftovers are cleared: {left:?}");
    }
    println!("{kills} kills, {early} before there was a database, {empty} of them in the making");
}
