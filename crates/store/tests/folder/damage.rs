//! Flipped bits and truncated files: stored data is returned correctly or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use trimtab_store::{FolderStore, LineRange, OutputForm, Query, SessionId, Store, Stream};

use super::{Home, Random, files, put, rounds, session};

/// A store with a bit of everything, and what must come back from it.
struct Filled {
    home: Home,
    outputs: BTreeMap<String, Vec<u8>>,
    log: Vec<Vec<u8>>,
    intact: Vec<(PathBuf, Vec<u8>)>,
}

fn filled() -> Filled {
    let home = Home::new();
    let store = home.open();
    let s = session("s");
    let mut random = Random(42);
    let mut outputs = BTreeMap::new();
    let sizes = [0, 10, 3_000, 60_000, 70_000, 200_000, 700_000];
    for (n, size) in sizes.into_iter().cycle().take(21).enumerate() {
        let bytes = random.bytes(size + n);
        outputs.insert(put(&store, &s, &format!("c{n}"), &bytes), bytes);
    }
    let log: Vec<Vec<u8>> = (0..40).map(|n| random.bytes(n * n * 10)).collect();
    let entries: Vec<&[u8]> = log.iter().map(Vec::as_slice).collect();
    store.append(&s, Stream::Log, 0, &entries).unwrap();
    drop(store);
    let intact = files(&home.store);
    let intact = intact
        .into_iter()
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    Filled {
        home,
        outputs,
        log,
        intact,
    }
}

/// How many answers were right and how many were errors.
#[derive(Debug, Default)]
struct Answers {
    right: u64,
    errors: u64,
}

impl Answers {
    fn note<T: PartialEq>(&mut self, answer: trimtab_store::Result<T>, expected: &T, what: &str) {
        match answer {
            Ok(answer) => {
                assert!(answer == *expected, "wrong bytes: {what}");
                self.right += 1;
            }
            Err(_) => self.errors += 1,
        }
    }
}

impl Filled {
    fn ask(&self, store: &FolderStore, answers: &mut Answers) {
        let s = session("s");
        for (id, bytes) in &self.outputs {
            answers.note(store.get(&s, id), bytes, id);
            answers.note(last_line(store, &s, id), &expected_last_line(bytes), id);
        }
        let unknown = store.sessions().is_ok_and(|sessions| sessions.is_empty());
        if !unknown {
            answers.note(
                store.read(&s, Stream::Log, 0, usize::MAX),
                &self.log,
                "the log",
            );
            // A search never fails as a whole because of one damaged output.
            let _ = store.grep(&s, None, &Query::literal("says 77"));
        }
    }

    fn restore(&self) {
        for file in files(&self.home.store) {
            if !self.intact.iter().any(|(path, _)| *path == file) {
                fs::remove_file(file).unwrap();
            }
        }
        for (path, bytes) in &self.intact {
            fs::write(path, bytes).unwrap();
        }
    }
}

fn last_line(store: &FolderStore, s: &SessionId, id: &str) -> trimtab_store::Result<Vec<u8>> {
    let stored = store.open(s, id, OutputForm::Text)?;
    let lines = stored.lines(LineRange::new(stored.line_count() - 1, 1))?;
    Ok(lines.lines[0].bytes.clone())
}

fn expected_last_line(bytes: &[u8]) -> Vec<u8> {
    let last = bytes.split(|b| *b == b'\n').next_back().unwrap_or_default();
    last[..last.len().min(trimtab_store::FRAME)].to_vec()
}

#[test]
fn corruption_never_yields_wrong_bytes() {
    let filled = filled();
    let mut random = Random(99);
    let mut answers = Answers::default();
    filled.ask(&filled.home.open(), &mut answers);
    assert_eq!(answers.errors, 0, "intact, everything is right");
    let mut unopenable = 0;
    for _ in 0..rounds(250, 20_000) {
        // Files by size, so that the database gets its share.
        let (path, bytes) = {
            let total: u64 = filled
                .intact
                .iter()
                .map(|(_, bytes)| bytes.len() as u64)
                .sum();
            let mut at = random.below(total);
            filled.intact.iter().find(|(_, bytes)| {
                let here = at < bytes.len() as u64;
                at = at.wrapping_sub(if here { 0 } else { bytes.len() as u64 });
                here
            })
        }
        .unwrap();
        let mut changed = bytes.clone();
        if random.below(10) == 0 {
            changed.truncate(usize::try_from(random.below(bytes.len() as u64)).unwrap());
        } else {
            for _ in 0..=random.below(3) {
                let at = usize::try_from(random.below(bytes.len() as u64)).unwrap();
                changed[at] ^= 1 << random.below(8);
            }
        }
        fs::write(path, &changed).unwrap();
        match FolderStore::open(&filled.home.store) {
            Ok(store) => filled.ask(&store, &mut answers),
            Err(_) => unopenable += 1,
        }
        filled.restore();
    }
    println!("{answers:?}, {unopenable} stores would not open");
    assert!(answers.errors > 100, "the damage was seen: {answers:?}");
}

#[test]
fn storing_a_damaged_output_again_repairs_it() {
    let home = Home::new();
    let store = home.open();
    let s = session("s");
    let mut random = Random(5);
    // One in a file, one in the database.
    for size in [600_000, 20_000] {
        let bytes = random.bytes(size);
        let id = put(&store, &s, "c1", &bytes);
        if size > 500_000 {
            let file = files(&home.store.join("blobs")).pop().unwrap();
            let mut stored = fs::read(&file).unwrap();
            stored[70_000] ^= 4;
            fs::write(&file, stored).unwrap();
            let error = store.get(&s, &id).unwrap_err();
            assert!(error.is_damaged(), "{error}");
            let first = store
                .open(&s, &id, OutputForm::Whole)
                .unwrap()
                .read_at(0, 100)
                .unwrap();
            assert_eq!(first, bytes[..100], "what is whole can be had");
            let found = store
                .grep(&s, None, &Query::literal("no such text"))
                .unwrap();
            assert_eq!(found.damaged, [id.as_str()]);
        }
        assert_eq!(put(&store, &s, "c1", &bytes), id);
        assert_eq!(store.get(&s, &id).unwrap(), bytes);
    }
}
