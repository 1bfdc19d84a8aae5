//! With a damaged store the proxy starts, passes traffic through, and reports what is lost.

use std::fs;
use std::path::Path;

use serde_json::Value;
use trimtab::store::{FolderStore, Put, SessionId, Store, Stream};
use trimtab_model::Dialect;
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{ReplySource, Upstream, UpstreamOptions};

use crate::run::{Served, finished, texts};
use crate::talk::{log, path, post, with_output};

/// Repeatable random numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 20).unwrap() % limit
    }
}

fn fill(store: &Path) {
    let store = FolderStore::open(store).unwrap();
    for n in 0..20_u64 {
        let session = SessionId::new(format!("s{n}")).unwrap();
        let text = log(usize::try_from(n).unwrap() * 40);
        store.put(&session, Put::new("c", &text)).unwrap();
        let entry = [text.as_bytes()];
        store.append(&session, Stream::Log, 0, &entry).unwrap();
    }
}

/// Damages the database: some bits, a stretch of noise, a lost end, nothing but zeros.
fn damage(intact: &[u8], round: usize, numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = intact.to_vec();
    match round % 5 {
        0 => {
            for _ in 0..20 {
                let at = numbers.below(bytes.len());
                bytes[at] ^= 1 << numbers.below(8);
            }
        }
        1 => {
            let at = numbers.below(bytes.len() - 9_000);
            for byte in &mut bytes[at..at + 9_000] {
                *byte = u8::try_from(numbers.below(256)).unwrap();
            }
        }
        2 => bytes.truncate(numbers.below(intact.len())),
        // The beginning says what the rest is.
        3 => {
            let at = numbers.below(4_000);
            bytes[at..at + 200].fill(0x5a);
        }
        _ => bytes.fill(0),
    }
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_store_passes_traffic_and_can_be_repaired() {
    let options = UpstreamOptions::new(ReplySource::with(|_| ScriptedReply::text("hello")));
    let upstream = Upstream::start(options).await.unwrap();
    let home = tempfile::tempdir().unwrap();
    let kept = home.path().join("kept");
    fill(&kept);
    let intact = fs::read(kept.join("trimtab.db")).unwrap();
    let rounds = if crate::is_long_run() { 150 } else { 10 };
    let mut numbers = Numbers(7);
    for round in 0..rounds {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("data/trimtab");
        fs::create_dir_all(store.join("blobs")).unwrap();
        fs::create_dir_all(store.join("spills")).unwrap();
        let damaged = damage(&intact, round, &mut numbers);
        fs::write(store.join("trimtab.db"), &damaged).unwrap();
        let served = Served::start_in(folder, &["--upstream", &upstream.url()]);
        let body = with_output(Dialect::Chat, 3_000);
        let answer = post(&served.url, path(Dialect::Chat), &body, &[]).await;
        assert!(answer.status.is_success(), "round {round}");
        if answer.header("x-trimtab-action") == "passed" {
            let received = upstream.requests().last().unwrap().clone();
            assert_eq!(received.body, body.to_string().as_bytes(), "round {round}");
        }
        let folder = served.killed();
        repaired(folder.path(), round);
        let served = Served::start_in(folder, &["--upstream", &upstream.url()]);
        let answer = post(&served.url, path(Dialect::Chat), &body, &[]).await;
        let action = answer.header("x-trimtab-action").to_owned();
        assert_eq!(action, "edited", "round {round}");
    }
}

/// Checks and repairs the store, and sees that it is whole then.
fn repaired(home: &Path, round: usize) {
    let check = || {
        let output = finished(home, &["store", "check", "--json"]);
        let (stdout, stderr) = texts(&output);
        let found: Value = serde_json::from_str(&stdout)
            .unwrap_or_else(|_| panic!("round {round}: {stdout}{stderr}"));
        let sound = found["sound"].as_bool().unwrap();
        assert_eq!(
            output.status.code(),
            Some(i32::from(!sound)),
            "round {round}"
        );
        (sound, found)
    };
    let (sound, _) = check();
    let repair = finished(home, &["store", "repair", "--json"]);
    let (stdout, stderr) = texts(&repair);
    assert!(repair.status.success(), "round {round}: {stdout}{stderr}");
    let done: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(done["repaired"], !sound, "round {round}: {stdout}");
    if !sound {
        let aside = done["moved_to"].as_str().unwrap();
        assert!(aside.contains("damaged-") && Path::new(aside).is_file());
    }
    let (sound, found) = check();
    assert!(sound, "round {round}: {found}");
    assert_eq!(found["outputs"], done["found"]["outputs"], "round {round}");
}

#[tokio::test(flavor = "multi_thread")]
async fn store_in_use_is_not_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_owned();
    fill(&home.join("data/trimtab"));
    let served = Served::start_in(folder, &["--upstream", "http://127.0.0.1:9"]);
    let repair = finished(&home, &["store", "repair"]);
    let (_, stderr) = texts(&repair);
    assert_eq!(repair.status.code(), Some(1));
    assert!(stderr.contains("another process has it open"), "{stderr}");
    assert!(stderr.contains("hint: stop the proxy"), "{stderr}");
    let folder = served.killed();
    let repair = finished(folder.path(), &["store", "repair"]);
    let (stdout, _) = texts(&repair);
    assert!(
        repair.status.success() && stdout.contains("nothing to repair"),
        "{stdout}"
    );
}

#[test]
fn missing_store_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    for verb in ["check", "repair"] {
        let output = finished(folder.path(), &["store", verb]);
        let (_, stderr) = texts(&output);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr.contains("no store at"), "{stderr}");
    }
}
