//! Erased data is gone: its space, and every copy of its text.

use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use trimtab::store::{FolderOptions, Put, SessionId, Store, Stream};
use trimtab_model::Dialect;
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{ReplySource, Upstream, UpstreamOptions};

use crate::run::{Served, finished, say, texts};
use crate::sockets::{address, status};
use crate::talk::{path, post, with_call, with_output};

/// All files in a folder and below.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// What begins a compressed frame.
const FRAME: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// All bytes in the files of a store, and what every compressed frame in them holds.
fn everything_in(store: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for file in files(store) {
        let bytes = std::fs::read(&file).unwrap();
        for at in memchr::memmem::find_iter(&bytes, &FRAME) {
            let decoder = zstd::stream::read::Decoder::new(&bytes[at..]).unwrap();
            // What follows the frame, or the rest of one that was cut off, is an error.
            decoder.single_frame().read_to_end(&mut all).unwrap_or(0);
        }
        all.extend(bytes);
    }
    all
}

/// Those of the markers that can be found.
fn found(store: &Path, markers: &[String]) -> Vec<String> {
    let all = everything_in(store);
    let is_there = |marker: &&String| memchr::memmem::find(&all, marker.as_bytes()).is_some();
    markers.iter().filter(is_there).cloned().collect()
}

/// Text with a marker in every few lines.
fn marked(name: &str, lines: u64) -> (String, Vec<String>) {
    let (mut text, mut markers) = (String::new(), Vec::new());
    let mut state = 1_u64;
    for line in 0..lines {
        for letter in name.bytes() {
            state = state.wrapping_mul(6_364_136_223_846_793_005) + u64::from(letter);
        }
        let _ = writeln!(text, "{state:016x} {line}");
        if line % 8 == 0 {
            let marker = format!("<<{name}-{line}-{state:016x}>>");
            text.push_str(&marker);
            markers.push(marker);
        }
    }
    (text, markers)
}

#[tokio::test(flavor = "multi_thread")]
async fn erased_tenant_leaves_no_text_while_the_proxy_runs() {
    let options = UpstreamOptions::new(ReplySource::with(|_| ScriptedReply::text("hello")));
    let upstream = Upstream::start(options).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_owned();
    let store = home.join("data/trimtab");
    let served = Served::start_in(folder, &["--upstream", &upstream.url()]);
    let mut markers: Vec<Vec<String>> = Vec::new();
    let mut sessions = Vec::new();
    for (key, name) in [("key-one", "one"), ("key-two", "two")] {
        let mut body = with_output(Dialect::Messages, 1_500);
        let mut of_tenant = Vec::new();
        for round in 0..4 {
            let (text, marked) = marked(&format!("{name}{round}"), [9, 90, 300, 5_000][round]);
            let id = format!("r{round}");
            with_call(Dialect::Messages, &mut body, &id, &text);
            of_tenant.extend(marked);
            let headers = [("x-api-key", key)];
            let path = path(Dialect::Messages);
            let answer = post(&served.url, path, &body, &headers).await;
            assert!(answer.status.is_success());
            sessions.push(answer.header("x-trimtab-session").to_owned());
        }
        let seen = found(&store, &of_tenant);
        assert!(seen.len() > 20, "{} of {}", seen.len(), of_tenant.len());
        markers.push(seen);
    }
    let (stdout, _) = texts(&finished(&home, &["output", "sessions", "--json"]));
    let tenant_of = |session: &str| -> String {
        let line = stdout.lines().find(|line| line.contains(session)).unwrap();
        let info: Value = serde_json::from_str(line).unwrap();
        info["tenant"].as_str().unwrap().to_owned()
    };
    let tenant = tenant_of(&sessions[0]);
    assert_ne!(tenant, tenant_of(&sessions[4]));
    let unasked = finished(&home, &["output", "erase", "--tenant", &tenant]);
    assert_eq!(
        unasked.status.code(),
        Some(2),
        "nobody was there to be asked"
    );
    assert_eq!(found(&store, &markers[0]), markers[0]);
    let erase = ["output", "erase", "--tenant", &tenant, "--yes"];
    let erased = finished(&home, &erase);
    assert!(erased.status.success(), "{:?}", texts(&erased));
    assert_eq!(found(&store, &markers[0]), [""; 0]);
    assert!(!found(&store, &markers[1]).is_empty());
}

#[test]
fn collected_text_is_gone_and_its_space_is_freed() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let store = home.join("data/trimtab");
    let rounds = if crate::is_long_run() { 2_000 } else { 150 };
    let mut markers = Vec::new();
    {
        let opened = trimtab::store::FolderStore::open(&store).unwrap();
        for n in 0..rounds {
            let session = SessionId::new(format!("s{}", n % 30)).unwrap();
            let (text, marked) = marked(&format!("n{n}"), 100 + n % 300);
            let call = format!("c{n}");
            opened.put(&session, Put::new(&call, &text)).unwrap();
            let position = opened.position(&session, Stream::Log).unwrap();
            let entry = [text.as_bytes()];
            opened
                .append(&session, Stream::Log, position, &entry)
                .unwrap();
            markers.extend(marked);
        }
    }
    let size = || -> u64 {
        let sizes = files(&store)
            .into_iter()
            .map(|file| file.metadata().unwrap().len());
        sizes.sum()
    };
    let full = size();
    let markers = found(&store, &markers);
    assert!(markers.len() > 30, "{}", markers.len());
    let gc = finished(home, &["output", "gc", "--older-than", "0s"]);
    assert!(gc.status.success(), "{:?}", texts(&gc));
    assert_eq!(found(&store, &markers), [""; 0]);
    // What is left is an empty database and the reserve.
    let reserve = store.join("reserve").metadata().unwrap().len();
    assert!(
        size() < full && size() < reserve + 400_000,
        "{full} {}",
        size()
    );
}

/// Runs `script` where `$DISK` is a small disk of its own; none if the system allows no mount.
fn on_small_disk(script: &str) -> Option<(String, String)> {
    let folder = tempfile::tempdir().unwrap();
    let mount = "mount -t tmpfs -o size=24m,mode=700 none \"$DISK\" 2>/dev/null || exit 77";
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", &format!("{mount}; {script}")])
        .env("DISK", folder.path())
        .env("TRIMTAB", env!("CARGO_BIN_EXE_trimtab"))
        .env("TRIMTAB_STORE", folder.path().join("store"))
        .env_remove("TRIMTAB_SESSION");
    match command.output() {
        Ok(output) if output.status.success() => Some(texts(&output)),
        _ => {
            say("skipped: no disk can be mounted here");
            None
        }
    }
}

#[test]
fn first_collection_on_a_full_disk_succeeds() {
    let script = "
        n=0
        while [ $n -lt 60 ]; do
            head -c 90000 /dev/urandom | \"$TRIMTAB\" output put -qs s$n - >/dev/null 2>&1
            head -c 300000 /dev/urandom | \"$TRIMTAB\" output put -qs s$n - >/dev/null 2>&1
            n=$((n + 1))
        done
        dd if=/dev/zero of=\"$DISK/rest\" bs=4096 2>/dev/null
        df \"$DISK\" | tail -1 | awk '{print \"free\", $4}'
        \"$TRIMTAB\" output gc --older-than 0s --json; echo \"code $?\"
        df \"$DISK\" | tail -1 | awk '{print \"then\", $4}'";
    let Some((stdout, stderr)) = on_small_disk(script) else {
        return;
    };
    assert!(stdout.contains("free 0\n"), "{stdout}{stderr}");
    assert!(stdout.contains("code 0\n"), "{stdout}{stderr}");
    let free = stdout.split("then ").nth(1).unwrap();
    let free: u64 = free.trim().parse().unwrap();
    assert!(free > 2_000, "{stdout}{stderr}");
}

/// Stores sessions that were used so many days ago.
fn used_before(store: &Path, sessions: &[(&str, u64)]) {
    let now = trimtab::store::now_millis();
    for (name, days) in sessions {
        let then = now - days * 24 * 60 * 60 * 1000;
        let opened = FolderOptions::new().clock(move || then).open(store);
        let session = SessionId::new(*name).unwrap();
        opened
            .unwrap()
            .put(&session, Put::new("c", "text"))
            .unwrap();
    }
}

/// The names of the sessions in the store of `home`.
fn names(home: &Path) -> String {
    texts(&finished(home, &["output", "sessions", "--json"])).0
}

#[tokio::test(flavor = "multi_thread")]
async fn jump_of_the_clock_removes_nothing() {
    // For this proxy everything is older than it may be: its clock may be wrong.
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_owned();
    let store = home.join("data/trimtab");
    used_before(&store, &[("first", 402), ("second", 400)]);
    let served = Served::start_in(folder, &["--upstream", "http://127.0.0.1:9"]);
    served.wait_for("retention: the clock jumped");
    let status = status(address(&served)).await["retention"].to_string();
    assert!(status.contains("ages_since_ms="), "{status}");
    // What was used since, with that clock, proves nothing.
    let folder = served.killed();
    used_before(&store, &[("third", 0)]);
    let served = Served::start_in(folder, &["--upstream", "http://127.0.0.1:9"]);
    served.wait_for("retention: the clock jumped");
    let left = names(&home);
    for name in ["first", "second", "third"] {
        assert!(left.contains(name), "{name}: {left}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn session_of_a_wrong_clock_has_the_age_of_its_neighbours() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_owned();
    let in_1971 = 55 * 365;
    let sessions = [("old", 40), ("before", 1), ("wrong", in_1971), ("after", 0)];
    used_before(&home.join("data/trimtab"), &sessions);
    let served = Served::start_in(folder, &["--upstream", "http://127.0.0.1:9"]);
    let line = served.wait_for("retention: removed");
    assert!(line.contains("removed 1 sessions"), "{line}");
    let left = names(&home);
    assert!(
        !left.contains("\"old\"") && left.contains("\"wrong\""),
        "{left}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_removes_old_sessions_and_reports_it() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_owned();
    let store = home.join("data/trimtab");
    used_before(&store, &[("old", 31), ("young", 29), ("new", 0)]);
    let served = Served::start_in(folder, &["--upstream", "http://127.0.0.1:9"]);
    let line = served.wait_for("retention: removed");
    assert!(line.contains("removed 1 sessions with 1 outputs"), "{line}");
    let (stdout, _) = texts(&finished(&home, &["output", "sessions", "--json"]));
    assert!(
        stdout.contains("\"young\"") && !stdout.contains("\"old\""),
        "{stdout}"
    );
}
