//! Reading and searching one large output.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::process::Command;
use std::rc::Rc;

use trimtab_store::{FolderStore, LineRange, Put, Query, SessionId, Store};
use trimtab_testkit::bench::BenchComparison;

use crate::writes::text;

const NEEDLE: &str = "NEEDLE in the haystack";

struct Large {
    home: tempfile::TempDir,
    store: FolderStore,
    session: SessionId,
    id: String,
    lines: u64,
    /// Where the last 200 lines begin in the plain file.
    tail: u64,
}

impl Large {
    fn new(make: impl Fn(u64) -> Vec<u8>, megabytes: u64) -> Self {
        let home = tempfile::tempdir().unwrap();
        let plain = home.path().join("plain");
        let mut file = File::create(&plain).unwrap();
        for n in 0..megabytes {
            file.write_all(&make(n)).unwrap();
            if n % 32 == 31 {
                writeln!(file, "\n{NEEDLE} {n}").unwrap();
            }
        }
        let store = FolderStore::open(home.path().join("store")).unwrap();
        let session = SessionId::new("bench").unwrap();
        let mut reader = File::open(&plain).unwrap();
        let start = std::time::Instant::now();
        let found = store
            .put(&session, Put::from_reader("call", &mut reader))
            .unwrap();
        let stored = store.metadata(&session, found.id()).unwrap();
        println!(
            "\nstored {} bytes in {:?} as {} bytes ({:.2} x)",
            stored.byte_size,
            start.elapsed(),
            stored.stored_size,
            stored.stored_size as f64 / stored.byte_size as f64
        );
        let lines = stored.line_count;
        let range = LineRange::new(lines - 200, 1);
        let tail = store.lines(&session, found.id(), range).unwrap().lines[0].start;
        let id = found.id().to_owned();
        Self {
            home,
            store,
            session,
            id,
            lines,
            tail,
        }
    }

    fn plain(&self) -> std::path::PathBuf {
        self.home.path().join("plain")
    }

    fn grep(&self, query: &Query<'_>) -> usize {
        self.store
            .grep(&self.session, Some(&self.id), query)
            .unwrap()
            .matches
            .len()
    }
}

pub(crate) fn large_outputs() {
    let megabytes = std::env::var("TRIMTAB_BENCH_MB");
    let megabytes = megabytes
        .ok()
        .and_then(|value| value.parse().ok())
        .unwrap_or(256);
    let logs = Large::new(|n| text(1_000_000, n + 1), megabytes);
    compare("a log, stored compressed", logs);
    let noise = Large::new(|n| noise(1_000_000, n + 1), megabytes);
    compare("noise, stored raw", noise);
}

/// Bytes that do not compress.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed * 2 + 1;
    let words = std::iter::from_fn(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Some(state.to_le_bytes())
    });
    words.take(len / 8).flatten().collect()
}

fn compare(what: &str, large: Large) {
    let large = Rc::new(large);
    tail(what, &large);
    let query = Query::literal(NEEDLE).max_matches(100_000);
    reset_peak();
    let before = peak();
    let matches = large.grep(&query);
    println!(
        "\ngrep, {what}: {matches} matches, peak memory {} MiB ({before} before)",
        peak()
    );
    search(
        &format!("{what}: search for a literal"),
        &large,
        query,
        &["-F", NEEDLE],
    );
    let pattern = "NEEDLE in [a-z]+ hay";
    let query = Query::regex(pattern).max_matches(100_000);
    search(
        &format!("{what}: search for a regex"),
        &large,
        query,
        &[pattern],
    );
}

fn tail(what: &str, large: &Rc<Large>) {
    let (plain, large_a, large_b) = (large.plain(), Rc::clone(large), Rc::clone(large));
    BenchComparison::new(format!("{what}: the last 200 lines"), 50)
        .candidate("seek and read, knowing where", move || {
            let mut file = File::open(&plain).unwrap();
            file.seek(SeekFrom::Start(large_a.tail)).unwrap();
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).unwrap();
            bytes
        })
        .candidate("trimtab: lines", move || {
            let mut range = LineRange::new(large_b.lines - 200, 200);
            range.max_bytes = usize::MAX;
            range.max_line_bytes = usize::MAX;
            large_b
                .store
                .lines(&large_b.session, &large_b.id, range)
                .unwrap()
        })
        .run();
}

fn search(title: &str, large: &Rc<Large>, query: Query<'static>, arguments: &[&str]) {
    let (rg, own) = (ripgrep(), Rc::clone(large));
    let Some(rg) = rg else {
        println!("\n{title}: skipped, ripgrep is not installed");
        BenchComparison::new(title, 5)
            .candidate("trimtab: grep", move || own.grep(&query))
            .run();
        return;
    };
    let plain = large.plain();
    let arguments: Vec<String> = arguments
        .iter()
        .map(|&argument| argument.to_owned())
        .collect();
    let medians = BenchComparison::new(title, 5)
        .candidate("ripgrep, one thread, on the plain file", move || {
            let mut command = Command::new(&rg);
            command
                .args(["-a", "-n", "-j1", "--no-config"])
                .args(&arguments)
                .arg(&plain);
            command.output().unwrap().stdout.len()
        })
        .candidate("trimtab: grep", move || own.grep(&query))
        .run();
    if let [rg, own] = medians[..] {
        println!(
            "  trimtab has {:.2} of ripgrep's speed",
            rg.as_secs_f64() / own.as_secs_f64()
        );
    }
}

fn ripgrep() -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join("rg"))
        .find(|rg| rg.is_file())
}

/// Highest memory use so far, in mebibytes; 0 where the system does not say.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) / 1024
}

/// Forgets the peak, where the system can.
fn reset_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}
