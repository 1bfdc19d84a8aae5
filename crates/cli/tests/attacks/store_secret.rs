//! The secret lives as long as its store, and no ref is sent that cannot be redeemed.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use http::Method;
use serde_json::Value;
use trimtab_cli::proxy::http::{HttpAnswer, HttpClient};
use trimtab_model::Dialect;
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{ReplySource, Upstream, UpstreamOptions};

use crate::run::{PATIENCE, Served, finished, texts, trimtab};
use crate::talk::{log, path, post, with_call, with_output};

const CHAT: Dialect = Dialect::Chat;

async fn upstream() -> Upstream {
    let options = UpstreamOptions::new(ReplySource::with(|_| ScriptedReply::text("hello")));
    Upstream::start(options).await.unwrap()
}

async fn send(served: &Served, body: &Value) -> HttpAnswer {
    let answer = post(&served.url, path(CHAT), body, &[]).await;
    assert!(answer.status.is_success(), "{}", answer.status);
    answer
}

async fn get(served: &Served, path: &str) -> HttpAnswer {
    let url = format!("{}{path}", served.url);
    let key = [("x-api-key", "k")];
    let http = HttpClient::default();
    let sent = http.send(Method::GET, &url, &key, Vec::new(), PATIENCE);
    sent.await.unwrap()
}

async fn status(served: &Served) -> Value {
    let answer = get(served, "/trimtab/status").await;
    serde_json::from_slice(&answer.body).unwrap()
}

/// The refs that the upstream was shown last.
fn shown(upstream: &Upstream) -> Vec<String> {
    let received = upstream.requests().last().unwrap().clone();
    let body = String::from_utf8_lossy(&received.body).into_owned();
    let after = body.split("ref_id").skip(1).map(|rest| {
        let name = rest.trim_start_matches(|letter: char| !letter.is_ascii_alphanumeric());
        let ends = |letter: char| !letter.is_ascii_alphanumeric();
        name.split(ends).next().unwrap_or_default().to_owned()
    });
    let is_id = |id: &String| id.len() == 16 && id.bytes().all(|b| b.is_ascii_alphanumeric());
    after.filter(is_id).collect()
}

async fn all_are_live(served: &Served, refs: &[String]) {
    for id in refs {
        let answer = get(served, &format!("/v1/retrieve/{id}")).await;
        assert_eq!(answer.status.as_u16(), 200, "{id} is dead");
    }
}

/// Waits until something holds; the proxy looks at its store every few seconds.
pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds().await {
        assert!(Instant::now() < until, "never: {what}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn collection_does_not_change_tenants() {
    let upstream = upstream().await;
    let url = upstream.url();
    let served = Served::start(&["--upstream", &url]);
    let body = with_output(CHAT, 4_000);
    let before = send(&served, &body).await;
    let session = before.header("x-trimtab-session").to_owned();
    assert!(session.starts_with("proxy/"), "{session}");
    let folder = served.killed();
    let erased = finished(folder.path(), &["output", "erase", "--all", "--yes"]);
    assert!(erased.status.success(), "{:?}", texts(&erased));
    let served = Served::start_in(folder, &["--upstream", &url]);
    let after = send(&served, &body).await;
    assert_eq!(after.header("x-trimtab-session"), session);
    let refs = shown(&upstream);
    assert!(!refs.is_empty());
    all_are_live(&served, &refs).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unusable_store_passes_traffic_and_reports_it() {
    let upstream = upstream().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    let store = folder.path().join("data/trimtab");
    std::fs::write(&store, "not a folder").unwrap();
    let served = Served::start_in(folder, &["--upstream", &upstream.url()]);
    served.wait_for("the store cannot be used, requests are sent unchanged");
    let body = with_output(CHAT, 4_000);
    let answer = send(&served, &body).await;
    assert_eq!(answer.header("x-trimtab-action"), "passed");
    assert_eq!(answer.header("x-trimtab-reason"), "store");
    let received = upstream.requests().last().unwrap().clone();
    assert_eq!(received.body, body.to_string().as_bytes());
    let problem = status(&served).await["store"].to_string();
    assert!(problem.contains("not a folder"), "{problem}");
    assert_eq!(get(&served, "/v1/retrieve/abc").await.status.as_u16(), 503);
    std::fs::remove_file(&store).unwrap();
    served.wait_for("the store can be used again");
    let answer = send(&served, &body).await;
    assert_eq!(answer.header("x-trimtab-action"), "edited");
    assert_eq!(status(&served).await["store"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn vanished_store_passes_requests_and_is_used_again_later() {
    let upstream = upstream().await;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (store, away): (PathBuf, PathBuf) = (data.join("trimtab"), data.join("away"));
    let served = Served::start_in(folder, &["--upstream", &upstream.url()]);
    let mut body = with_output(CHAT, 4_000);
    let first = send(&served, &body).await;
    assert_eq!(first.header("x-trimtab-action"), "edited");
    std::fs::rename(&store, &away).unwrap();
    with_call(CHAT, &mut body, "c2", &log(3_000));
    let answer = send(&served, &body).await;
    assert_eq!(answer.header("x-trimtab-reason"), "store");
    assert!(shown(&upstream).is_empty());
    served.wait_for("was deleted or replaced");
    assert!(!store.exists(), "no other store is made in its place");
    std::fs::rename(&away, &store).unwrap();
    served.wait_for("the store can be used again");
    let answer = send(&served, &body).await;
    assert_eq!(answer.header("x-trimtab-action"), "edited");
    let session = first.header("x-trimtab-session");
    assert_eq!(answer.header("x-trimtab-session"), session);
    all_are_live(&served, &shown(&upstream)).await;
    // Gone for good, and another one in its place.
    std::fs::remove_dir_all(&store).unwrap();
    let answer = send(&served, &body).await;
    assert_eq!(answer.header("x-trimtab-reason"), "store");
    served.wait_for("was deleted or replaced");
    trimtab::store::FolderStore::open(&store).unwrap();
    served.wait_for("the store can be used again");
    let answer = send(&served, &body).await;
    assert_eq!(answer.header("x-trimtab-action"), "edited");
    let refs = shown(&upstream);
    assert!(!refs.is_empty());
    all_are_live(&served, &refs).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_write_ahead_log_is_noticed_before_the_next_ref() {
    let upstream = upstream().await;
    let url = upstream.url();
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("data/trimtab");
    let served = Served::start_in(folder, &["--upstream", &url]);
    let mut body = with_output(CHAT, 4_000);
    let mut refs = Vec::new();
    for (round, files) in [&["-wal"][..], &["-wal", "-shm"]].into_iter().enumerate() {
        send(&served, &body).await;
        refs.extend(shown(&upstream));
        for end in files {
            std::fs::remove_file(store.join(format!("trimtab.db{end}"))).unwrap();
        }
        let call = format!("deleted{round}");
        with_call(CHAT, &mut body, &call, &log(3_000 + round));
        let answer = send(&served, &body).await;
        assert_eq!(answer.header("x-trimtab-reason"), "store");
        assert!(shown(&upstream).is_empty());
        served.wait_for("was deleted or replaced");
        served.wait_for("the store can be used again");
        let answer = send(&served, &body).await;
        assert_eq!(answer.header("x-trimtab-action"), "edited");
        refs.extend(shown(&upstream));
    }
    assert!(refs.len() >= 6, "{refs:?}");
    let served = Served::start_in(served.killed(), &["--upstream", &url]);
    all_are_live(&served, &refs).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn erased_session_in_memory_sends_no_invalid_ref() {
    let upstream = upstream().await;
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_owned();
    let served = Served::start_in(folder, &["--upstream", &upstream.url()]);
    let mut body = with_output(CHAT, 4_000);
    for round in 2..5 {
        let answer = send(&served, &body).await;
        assert_eq!(answer.header("x-trimtab-action"), "edited");
        let session = answer.header("x-trimtab-session").to_owned();
        let before = shown(&upstream);
        let erase = ["output", "erase", "--session", &session, "--yes"];
        let erased = finished(&home, &erase);
        assert!(erased.status.success(), "{:?}", texts(&erased));
        for id in &before {
            let answer = get(&served, &format!("/v1/retrieve/{id}")).await;
            assert_eq!(answer.status.as_u16(), 404);
        }
        let answer = send(&served, &body).await;
        assert_eq!(answer.header("x-trimtab-action"), "edited");
        all_are_live(&served, &shown(&upstream)).await;
        with_call(CHAT, &mut body, &format!("c{round}"), &log(3_000 + round));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn collection_skips_sessions_in_memory() {
    let upstream = upstream().await;
    // The folder of the proxy goes with it; the store is looked at afterwards.
    let outer = tempfile::tempdir().unwrap();
    let home = outer.path().to_owned();
    let store = home.join("store").display().to_string();
    let served = Served::start(&["--upstream", &upstream.url(), "--store", &store]);
    let body = with_output(CHAT, 4_000);
    let answer = send(&served, &body).await;
    let session = answer.header("x-trimtab-session").to_owned();
    let would_take = || {
        let place = ["--store", &store];
        let dry = ["output", "gc", "--older-than", "0s", "--dry-run", "--json"];
        let dry = [dry.as_slice(), &place].concat();
        let (stdout, _) = texts(&trimtab(&home, &dry).output().unwrap());
        stdout.contains(&session)
    };
    assert!(!would_take(), "the session is leased from the start");
    let gc = ["output", "gc", "--older-than", "0s", "--store", &store];
    let gc = finished(&home, &gc);
    assert!(gc.status.success());
    all_are_live(&served, &shown(&upstream)).await;
    served.signal("TERM");
    assert_eq!(served.end().0, 0);
    assert!(would_take(), "the lease ends with the proxy");
}
