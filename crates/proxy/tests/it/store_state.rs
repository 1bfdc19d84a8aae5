//! Stores that appear, disappear, or become read-only.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use trimtab_model::Dialect;
use trimtab_proxy::Proxy;
use trimtab_store::{CollectOptions, Error, MemoryStore, SessionId, Store};

use crate::config;
use crate::fake::{Reply, Upstream, get, post};
use crate::stores::{Failing, Wrong};
use crate::talk::{Talk, answer, lines, path};

const DIALECT: Dialect = Dialect::Chat;
const KEY: [(&str, &str); 1] = [("authorization", "Bearer k")];

async fn echo() -> Upstream {
    Upstream::start(|_, _| Reply::json(200, answer(DIALECT, "a fine answer", 1_000))).await
}

fn talk() -> Talk {
    let mut talk = Talk::new(DIALECT, "what is in the file?");
    talk.round("c1", &lines(5_000));
    talk
}

/// The refs in the window that was sent last.
fn shown(upstream: &Upstream) -> Vec<String> {
    let body = upstream.seen().last().unwrap().text();
    let after = body.split("ref_id").skip(1).map(|rest| {
        let name = rest.trim_start_matches(|letter: char| !letter.is_ascii_alphanumeric());
        name.chars().take(16).collect::<String>()
    });
    after
        .filter(|id| id.bytes().all(|b| b.is_ascii_alphanumeric()))
        .collect()
}

#[tokio::test]
async fn read_only_store_can_be_read_and_requests_pass() {
    let upstream = echo().await;
    let store = Arc::new(Failing::new(Wrong::Never));
    let told = Arc::new(Mutex::new(Vec::new()));
    let telling = Arc::clone(&told);
    let running = Proxy::new(
        config(&upstream.url()),
        Arc::clone(&store) as Arc<dyn Store>,
    )
    .notices(move |_, notice| telling.lock().unwrap().push(notice.to_owned()))
    .run()
    .await
    .unwrap();
    let base = format!("http://{}", running.address());
    let mut talk = talk();
    let got = post(&base, path(DIALECT), &KEY, talk.body()).await;
    assert_eq!(got.header("x-trimtab-action"), "edited");
    let refs = shown(&upstream);
    assert!(!refs.is_empty());
    store.set_read_only(true);
    talk.says("much").user("go on");
    for _ in 0..2 {
        let got = post(&base, path(DIALECT), &KEY, talk.body()).await;
        assert_eq!(got.status, 200);
        assert_eq!(got.header("x-trimtab-reason"), "store");
        assert_eq!(upstream.seen().last().unwrap().text(), talk.body());
    }
    for id in &refs {
        let got = get(&base, &format!("/v1/retrieve/{id}"), &KEY).await;
        assert_eq!(got.status, 200);
    }
    let problem = running.report().store.unwrap();
    assert!(problem.contains("read-only"), "{problem}");
    assert_eq!(*told.lock().unwrap(), [problem]);
}

#[tokio::test]
async fn unopenable_store_passes_requests() {
    let upstream = echo().await;
    let running = Proxy::opening(config(&upstream.url()), |_| Err(Error::Full))
        .run()
        .await
        .unwrap();
    let base = format!("http://{}", running.address());
    let talk = talk();
    let got = post(&base, path(DIALECT), &KEY, talk.body()).await;
    assert_eq!(got.status, 200);
    assert_eq!(got.header("x-trimtab-reason"), "store");
    assert_eq!(upstream.seen().last().unwrap().text(), talk.body());
    assert!(running.report().store.unwrap().contains("no room left"));
    let got = get(&base, "/v1/retrieve/abc", &KEY).await;
    assert_eq!(got.status, 503);
}

#[tokio::test]
async fn no_ref_is_sent_that_was_removed() {
    let upstream = echo().await;
    let store = Arc::new(MemoryStore::new());
    let (_running, base) = crate::proxy_with(
        config(&upstream.url()),
        Arc::clone(&store) as Arc<dyn Store>,
    )
    .await;
    let mut talk = talk();
    for round in 0..4 {
        let got = post(&base, path(DIALECT), &KEY, talk.body()).await;
        assert_eq!(got.header("x-trimtab-action"), "edited", "{round}");
        let session = SessionId::new(got.header("x-trimtab-session")).unwrap();
        let refs = shown(&upstream);
        for id in &refs {
            assert!(store.metadata(&session, id).is_ok(), "{round}");
        }
        // Once the whole session, once a single output of it.
        if round % 2 == 0 {
            let request = CollectOptions {
                sessions: [session].into(),
                ..CollectOptions::default()
            };
            store.collect(&request).unwrap();
        } else {
            store.delete(&session, &refs[0]).unwrap();
        }
        if round > 1 {
            talk.says("much").user("go on");
        }
    }
}

#[tokio::test]
async fn replaced_store_uses_its_own_secret() {
    let upstream = echo().await;
    let swapped = Arc::new(AtomicBool::new(false));
    let (one, other) = (
        Arc::new(Failing::new(Wrong::Never)),
        Arc::new(MemoryStore::new()),
    );
    let (is_swapped, first) = (Arc::clone(&swapped), Arc::clone(&one));
    let running = Proxy::opening(config(&upstream.url()), move |_| {
        Ok(if is_swapped.load(Ordering::Relaxed) {
            Arc::clone(&other) as Arc<dyn Store>
        } else {
            Arc::clone(&first) as Arc<dyn Store>
        })
    });
    let running = running.run().await.unwrap();
    let base = format!("http://{}", running.address());
    let talk = talk();
    let got = post(&base, path(DIALECT), &KEY, talk.body()).await;
    let before = got.header("x-trimtab-session").to_owned();
    one.vanish();
    swapped.store(true, Ordering::Relaxed);
    let got = post(&base, path(DIALECT), &KEY, talk.body()).await;
    assert_eq!(got.header("x-trimtab-reason"), "store");
    // Within a few seconds the other one is found.
    let until = std::time::Instant::now() + std::time::Duration::from_mins(1);
    while running.report().store.is_some() {
        assert!(std::time::Instant::now() < until);
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let got = post(&base, path(DIALECT), &KEY, talk.body()).await;
    assert_eq!(got.header("x-trimtab-action"), "edited");
    assert_ne!(got.header("x-trimtab-session"), before, "another secret");
}
