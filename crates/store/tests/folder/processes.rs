//! Several processes on one store.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use trimtab_store::{Error, FolderStore, Store, Stream};

use super::{Home, Random, child_argument, put, rerun, session};

const OUTPUTS: usize = 60;

fn output(n: usize) -> Vec<u8> {
    Random(n as u64 + 1).bytes(n * n * 100)
}

/// Run by the test below in a process of its own: stores outputs and says so.
#[test]
fn child_that_writes() {
    let Some(folder) = child_argument() else {
        return;
    };
    let store = FolderStore::open(folder).unwrap();
    println!();
    for n in 0..OUTPUTS {
        let id = put(&store, &session("s"), &format!("c{n}"), &output(n));
        println!("stored {n} {id}");
    }
}

#[test]
fn readers_work_while_another_process_writes() {
    let home = Home::new();
    let readers: Vec<FolderStore> = (0..3).map(|_| home.open()).collect();
    let mut writer = rerun("processes::child_that_writes", &home.store)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    let mut seen = 0;
    for line in lines.map(Result::unwrap) {
        let Some((n, id)) = line
            .strip_prefix("stored ")
            .and_then(|rest| rest.split_once(' '))
        else {
            continue;
        };
        let expected = output(n.parse().unwrap());
        for reader in &readers {
            assert_eq!(
                reader.get(&session("s"), id).unwrap(),
                expected,
                "output {n}"
            );
        }
        seen += 1;
    }
    assert!(writer.wait().unwrap().success());
    assert_eq!(seen, OUTPUTS);
}

/// Run by the test below in processes of their own: append wherever the log is.
#[test]
fn child_that_appends() {
    let Some(folder) = child_argument() else {
        return;
    };
    let store = FolderStore::open(folder).unwrap();
    let s = session("s");
    let mut won = 0;
    while won < 25 {
        let position = store.position(&s, Stream::Log).unwrap();
        match store.append(
            &s,
            Stream::Log,
            position,
            &[&std::process::id().to_le_bytes()],
        ) {
            Ok(_) => won += 1,
            Err(Error::Conflict { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn writers_in_several_processes_do_not_conflict() {
    let home = Home::new();
    let start = || {
        rerun("processes::child_that_appends", &home.store)
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = (0..3).map(|_| start()).collect();
    let ids: Vec<u32> = children.iter().map(std::process::Child::id).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let log = home
        .open()
        .read(&session("s"), Stream::Log, 0, usize::MAX)
        .unwrap();
    for id in ids {
        let own = log.iter().filter(|entry| ***entry == id.to_le_bytes());
        assert_eq!(own.count(), 25);
    }
    assert_eq!(log.len(), 75);
}
