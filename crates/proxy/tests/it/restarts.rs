//! Learned limits of models survive a restart.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use trimtab_model::Dialect;
use trimtab_store::{MemoryStore, SessionId, Store, Stream};

use crate::fake::{Reply, Upstream, post};
use crate::stores::{Failing, Wrong};
use crate::talk::{Talk, answer, lines, path, said};
use crate::{config, proxy_with};

const WINDOW: usize = 12_000;

/// A model whose window nobody knows; it names it when it is asked too much.
async fn unknown(dialect: Dialect) -> Upstream {
    Upstream::start(move |_, asked| {
        let size = asked.body.len() / 4;
        if size > WINDOW {
            let text = format!("prompt is too long: {size} tokens > {WINDOW} maximum");
            let error = json!({"type": "error", "error": {"type": "invalid_request_error",
                "message": text}});
            return Reply::json(400, error.to_string());
        }
        Reply::json(200, answer(dialect, "read", size as u64))
    })
    .await
}

fn long_talk(dialect: Dialect, first: &str) -> Talk {
    let mut talk = Talk::new(dialect, first);
    for round in 0..12 {
        talk.round(&format!("c{round}"), &lines(300));
    }
    talk
}

/// How often the upstream was asked for one answer, which came.
async fn asked(
    upstream: &Upstream,
    store: &Arc<dyn Store>,
    dialect: Dialect,
    first: &str,
) -> usize {
    let (running, base) = proxy_with(config(&upstream.url()), Arc::clone(store)).await;
    let before = upstream.seen().len();
    let talk = long_talk(dialect, first);
    let got = post(&base, path(dialect), &[], talk.body()).await;
    assert_eq!(said(dialect, &got.text()), "read", "{}", got.text());
    running.shutdown().await;
    upstream.seen().len() - before
}

/// Waits until something is written behind an answer.
async fn written(store: &Arc<dyn Store>) {
    let place = SessionId::new("proxy-learned").unwrap();
    for _ in 0..30_000 {
        if store.position(&place, Stream::Log).unwrap() > 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("nothing was written");
}

#[tokio::test]
async fn learned_window_survives_a_restart() {
    for dialect in Dialect::ALL {
        let upstream = unknown(dialect).await;
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        assert!(asked(&upstream, &store, dialect, "one").await > 1);
        written(&store).await;
        // Another conversation, another process.
        assert_eq!(
            asked(&upstream, &store, dialect, "two").await,
            1,
            "{dialect}"
        );
        // Whoever removes the session has it forgotten.
        let place = SessionId::new("proxy-learned").unwrap();
        store.delete_session(&place).unwrap();
        assert!(asked(&upstream, &store, dialect, "three").await > 1);
    }
}

#[tokio::test]
async fn failing_store_loses_only_learned_windows() {
    for wrong in [Wrong::ReadOnly, Wrong::Full(2)] {
        let upstream = unknown(Dialect::Chat).await;
        let store: Arc<dyn Store> = Arc::new(Failing::new(wrong));
        let (_running, base) = proxy_with(config(&upstream.url()), store).await;
        let body = Talk::new(Dialect::Chat, "hello").body();
        let got = post(&base, path(Dialect::Chat), &[], body).await;
        assert_eq!(said(Dialect::Chat, &got.text()), "read");
    }
}
