//! A killed process: the session continues from where it stopped.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use trimtab_agent::{Agent, AgentSettings, TurnEnd};
use trimtab_model::Dialect;
use trimtab_store::{FolderStore, SessionId};
use trimtab_testkit::is_long;
use trimtab_testkit::upstream::{Count, Upstream, UpstreamOptions};

use super::common::{
    Sizes, WINDOW, all_is_redeemable, all_was_well, busy, http, preset, settings, window,
};

/// Tells the child where to work: folder, base URL, preset, dialect.
const WHERE: &str = "TRIMTAB_AGENT_CHILD";

const SIZES: Sizes = Sizes {
    largest: 60_000,
    large: 60_000,
};

fn dialect(name: &str) -> Dialect {
    let named = Dialect::ALL
        .into_iter()
        .find(|dialect| dialect.to_string() == name);
    named.unwrap()
}

fn settings_for(
    base: &str,
    name: &str,
    dialect: Dialect,
    folder: &tempfile::TempDir,
) -> AgentSettings {
    let mut settings = settings(http(dialect, base), folder);
    settings.policy = preset(name);
    settings
}

fn open(store: &Path, settings: AgentSettings) -> Agent {
    let store = Arc::new(FolderStore::open(store).unwrap());
    Agent::open(store, SessionId::new("s").unwrap(), settings)
        .unwrap()
        .0
}

/// Run by the test below in a process of its own, until it is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_that_is_killed() {
    let Ok(place) = std::env::var(WHERE) else {
        return;
    };
    let place: Vec<&str> = place.split('|').collect();
    let [store, base, name, spoken] = place[..] else {
        panic!("{place:?}");
    };
    let folder = tempfile::tempdir().unwrap();
    let mut agent = open(
        Path::new(store),
        settings_for(base, name, dialect(spoken), &folder),
    );
    loop {
        agent.turn("work on").await.unwrap();
    }
}

fn start_child(store: &Path, base: &str, name: &str, dialect: Dialect) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::child_that_is_killed", "--nocapture"])
        .env(
            WHERE,
            format!("{}|{base}|{name}|{dialect}", store.display()),
        )
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_session_reopens_with_the_same_window() {
    let kills = if is_long() { 40 } else { 6 };
    let presets = [
        "steady",
        "refs",
        "checkpoint",
        "turns",
        "archive",
        "retention",
    ];
    for (at, name) in presets.into_iter().enumerate() {
        let dialect = Dialect::ALL[at % 3];
        let (source, done) = busy(usize::MAX, true);
        let upstream = Upstream::start(UpstreamOptions {
            window: Some(WINDOW),
            count: Count::Estimate,
            sign: true,
            keep_bodies: true,
            ..UpstreamOptions::new(source)
        })
        .await
        .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let store: PathBuf = folder.path().join("store");
        for kill in 0..kills / 2 {
            let before = done.load(Ordering::SeqCst);
            let mut child = start_child(&store, &upstream.url(), name, dialect);
            // Once it works, some time that is never the same.
            while done.load(Ordering::SeqCst) < before + 3 {
                assert!(
                    child.try_wait().unwrap().is_none(),
                    "{name} {dialect}: it ended"
                );
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            tokio::time::sleep(Duration::from_millis((kill * 37 + at as u64 * 13) % 150)).await;
            // SIGKILL: it cannot be caught.
            child.kill().unwrap();
            child.wait().unwrap();
        }
        all_was_well(&upstream, WINDOW, name);
        let place = tempfile::tempdir().unwrap();
        let settings = settings_for(&upstream.url(), name, dialect, &place);
        let mut one = open(&store, settings.clone());
        let seen = window(&mut one);
        let length = one.session().projection().log().messages().len();
        drop(one);
        let mut two = open(&store, settings);
        assert!(window(&mut two) == seen, "{name} {dialect}: another window");
        let turn = two.turn("still there?").await.unwrap();
        assert_eq!(turn.end, TurnEnd::Answered);
        assert!(two.session().projection().log().messages().len() > length);
        assert!(all_is_redeemable(&two, SIZES) > 3);
        all_was_well(&upstream, WINDOW, name);
    }
}
