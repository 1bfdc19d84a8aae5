//! The official SDKs of the providers, in Python and for Node, through `trimtab serve`.
//!
//! They are installed once into the user's cache folder. If that is not possible, the test says
//! that it was skipped, and why.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use trimtab::store::{FolderStore, Store};
use trimtab_testkit::upstream::Upstream;

use crate::install::{NODE_SDKS, PYTHON_SDKS};
use crate::model::{LAST, LONG, RETRIEVED, SHORT, Work, options};
use crate::run::{Served, say, texts, user_file};
use crate::windows::{self, Windows};

/// A machine that runs many tests at once is slow.
const PATIENT: &str = "[proxy.limits]\nplan_ms = 60000\n";
/// Every way in which they are used: the flow, what the model does, and the window in tokens. The
/// streams pass switch points, the others do not.
const FLOWS: [(&str, Work, &str); 6] = [
    ("messages", SHORT, "50000"),
    ("messages-stream", LONG, "24000"),
    ("chat", SHORT, "50000"),
    ("chat-stream", LONG, "24000"),
    ("responses", SHORT, "50000"),
    ("responses-stream", LONG, "24000"),
];

#[tokio::test(flavor = "multi_thread")]
async fn python_sdks_run_to_the_end() {
    match PYTHON_SDKS.installed() {
        Ok(folder) => {
            let python = folder.join("bin/python");
            all_flows("Python", || Command::new(&python), "sdk.py", None).await;
        }
        Err(why) => say(&format!("SKIPPED: the Python SDKs: {why}")),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn node_sdks_run_to_the_end() {
    match NODE_SDKS.installed() {
        Ok(folder) => {
            all_flows("Node", || Command::new("node"), "sdk.mjs", Some(&folder)).await;
        }
        Err(why) => say(&format!("SKIPPED: the Node SDKs: {why}")),
    }
}

/// Every way of using the SDKs of one language; `folder` is where they are, if that is said.
async fn all_flows(
    language: &str,
    runs: impl Fn() -> Command,
    script: &str,
    folder: Option<&Path>,
) {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/proxy/clients");
    for (flow, work, window) in FLOWS {
        let options = options(window.parse().ok(), work);
        let upstream = Upstream::start(options).await.unwrap();
        let place = tempfile::tempdir().unwrap();
        std::fs::write(user_file(place.path()), PATIENT).unwrap();
        let args = ["--upstream", &upstream.url(), "--window", window];
        let served = Served::start_in(place, &args);
        let mut command = runs();
        command.arg(scripts.join(script));
        command
            .args([&served.url, flow, &work.output.to_string()])
            .args(folder);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap())
            .await
            .unwrap();
        let (stdout, wrong) = texts(&output);
        assert!(output.status.success(), "{language} {flow}: {wrong}");
        assert_eq!(stdout.trim(), LAST, "{language} {flow}");
        let name = format!("{language} {flow}");
        let windows = windows::judge(&name, &upstream, |received| {
            received.tools.iter().any(|tool| tool == "read_log")
        });
        check(&name, work, &windows);
        lossless(&name, work, &served.killed());
        say(&format!("{name}: {windows}, to the end"));
    }
}

/// All calls were made, what went was asked for, and long work was rewritten.
fn check(name: &str, work: Work, windows: &Windows) {
    assert!(windows.calls > work.rounds, "{name}: {windows}");
    assert!(
        windows.switches > 0 || work.rounds <= SHORT.rounds,
        "{name}: {windows}"
    );
    assert_eq!(
        windows.retrieved.len(),
        work.asks_at.len(),
        "{name}: {windows}"
    );
    for retrieved in &windows.retrieved {
        assert!(retrieved.contains(RETRIEVED), "{name}: {windows:?}");
    }
}

/// Every output that the client sent is in the store, byte for byte.
fn lossless(name: &str, work: Work, folder: &TempDir) {
    let store = FolderStore::open(folder.path().join("data/trimtab")).unwrap();
    let mut kept = HashSet::new();
    for found in store.sessions().unwrap() {
        for output in store.list(&found.session).unwrap() {
            kept.insert(store.get(&found.session, output.reference.id()).unwrap());
        }
    }
    for number in 0..work.rounds {
        let came = text(number, work.output).into_bytes();
        assert!(
            kept.contains(&came),
            "{name}: output {number} is not in the store"
        );
    }
}

/// What a client sends as output `number`, of so many bytes.
fn text(number: usize, bytes: usize) -> String {
    let (mut lines, mut size) = (Vec::new(), 0);
    while size < bytes {
        let at = lines.len();
        let (worker, took) = (at * 7919 % 97, at * 31 % 1009);
        let line = format!("{number:02}:{at:06} worker {worker} took {took} ms");
        size += line.len() + 1;
        lines.push(line);
    }
    lines.join("\n")
}
