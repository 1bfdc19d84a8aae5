//! Everything that a model reads is durable; other requests pass through unchanged.

use std::sync::{Arc, Mutex};

use trimtab_model::Dialect;
use trimtab_proxy::{ModelRule, ProxyConfig};
use trimtab_store::{MemoryStore, Store};

use crate::fake::{Reply, Upstream, post};
use crate::stores::{Failing, Wrong};
use crate::talk::{Talk, answer, lines, path};
use crate::{config, proxy_with};

/// A window that holds none of the outputs here.
fn narrow(config: ProxyConfig) -> ProxyConfig {
    with_window(12_000, config)
}

fn with_window(tokens: u64, config: ProxyConfig) -> ProxyConfig {
    let rule = ModelRule {
        model: "*".to_owned(),
        window: Some(tokens),
        max_output: None,
        preset: None,
        mode: None,
    };
    ProxyConfig {
        models: vec![rule],
        ..config
    }
}

/// True if the store has an output that the text names.
fn names_a_stored_output(store: &dyn Store, text: &str) -> bool {
    let sessions = store.sessions().unwrap().into_iter();
    let mut outputs = sessions.flat_map(|session| store.list(&session.session).unwrap());
    outputs.any(|output| text.contains(output.reference.id()))
}

#[tokio::test]
async fn ref_is_durable_before_its_request_is_complete() {
    for dialect in Dialect::ALL {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let found = Arc::new(Mutex::new(Vec::new()));
        let (asked_store, seen) = (Arc::clone(&store), Arc::clone(&found));
        let upstream = Upstream::start(move |_, asked| {
            let stored = names_a_stored_output(asked_store.as_ref(), &asked.text());
            seen.lock().unwrap().push(stored);
            Reply::json(200, answer(dialect, "fine", 100))
        })
        .await;
        let (_running, base) = proxy_with(narrow(config(&upstream.url())), store).await;
        let mut talk = Talk::new(dialect, "what is in the files?");
        for round in 0..4 {
            // Short enough to wait for the others, and too long for the window.
            talk.round(
                &format!("c{round}"),
                &lines(900).replace("line", &format!("row{round}")),
            );
            let got = post(&base, path(dialect), &[("x-api-key", "k")], talk.body()).await;
            assert_eq!(got.header("x-trimtab-action"), "edited", "{}", got.text());
        }
        assert_eq!(*found.lock().unwrap(), [true; 4], "{dialect}");
    }
}

#[tokio::test]
async fn request_passes_through_if_data_cannot_be_made_durable() {
    for dialect in Dialect::ALL {
        let upstream = Upstream::start(move |_, _| Reply::json(200, answer(dialect, "fine", 100)));
        let upstream = upstream.await;
        let store = Arc::new(Failing::new(Wrong::Late));
        let (_running, base) = proxy_with(narrow(config(&upstream.url())), store).await;
        let mut talk = Talk::new(dialect, "what is in the files?");
        for round in 0..3 {
            talk.round(
                &format!("c{round}"),
                &lines(900).replace("line", &format!("row{round}")),
            );
            let body = talk.body();
            let got = post(&base, path(dialect), &[("x-api-key", "k")], body.clone()).await;
            assert_eq!(got.status, 200);
            assert_eq!(got.header("x-trimtab-action"), "passed");
            assert_eq!(got.header("x-trimtab-reason"), "failed");
            assert_eq!(upstream.seen().last().unwrap().text(), body);
        }
    }
}

/// The thread that serves connections decides what is quick, and never waits for a disk.
#[tokio::test]
async fn connection_threads_never_call_the_store() {
    for dialect in Dialect::ALL {
        // What they put away at once is more than waits in memory.
        for preset in ["steady", "refs", "turns", "archive"] {
            let upstream = Upstream::start(move |_, _| {
                let small = answer(dialect, "fine", 100);
                Reply::json(200, small)
            });
            let upstream = upstream.await;
            let store = Arc::new(Failing::new(Wrong::Never));
            let config = ProxyConfig {
                preset: preset.to_owned(),
                ..with_window(60_000, config(&upstream.url()))
            };
            let (_running, base) = proxy_with(config, Arc::clone(&store) as Arc<dyn Store>).await;
            let at_start = store.calls_by_maker();
            let mut talk = Talk::new(dialect, "what is in the files?");
            for round in 0..24 {
                let text = lines(400 + round * 97 % 400);
                talk.round(
                    &format!("c{round}"),
                    &text.replace("line", &format!("row{round}")),
                );
                let got = post(&base, path(dialect), &[("x-api-key", "k")], talk.body()).await;
                assert_eq!(got.status, 200);
                assert_ne!(
                    got.header("x-trimtab-reason"),
                    "failed",
                    "{preset} {dialect}"
                );
            }
            assert_eq!(store.calls_by_maker(), at_start, "{preset} {dialect}");
        }
    }
}
