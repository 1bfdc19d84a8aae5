//! What the pages of the dashboard are sent.

use serde_json::Value;
use trimtab_model::Dialect;
use trimtab_proxy::ProxyConfig;

use crate::fake::{Reply, Upstream, get, post};
use crate::managed::windowed;
use crate::talk::{Talk, lines, path};
use crate::{config, proxy};

const DIALECT: Dialect = Dialect::Chat;
/// An answer without usage: with usage, the estimate of all messages changes a little each time.
const ANSWER: &str = r#"{"id":"a","object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"ok"}}]}"#;

async fn upstream() -> Upstream {
    Upstream::start(|_, _| Reply::json(200, ANSWER)).await
}

/// A session of a proxy.
struct Watched {
    base: String,
    talk: Talk,
    rounds: usize,
    session: String,
}

impl Watched {
    fn new(base: &str, topic: &str) -> Self {
        Self {
            base: base.to_owned(),
            talk: Talk::new(DIALECT, topic),
            rounds: 0,
            session: String::new(),
        }
    }

    /// Sends one round more.
    async fn call(&mut self) {
        self.rounds += 1;
        let id = format!("c{}", self.rounds);
        self.talk.round(&id, &lines(150 + self.rounds));
        let got = post(&self.base, path(DIALECT), &[], self.talk.body()).await;
        assert_eq!(got.status, 200, "{}", got.text());
        got.header("x-trimtab-session")
            .clone_into(&mut self.session);
    }

    async fn data(&self, name: &str) -> Value {
        let got = get(&self.base, &format!("/dashboard/api/{name}"), &[]).await;
        assert_eq!(got.status, 200, "{}", got.text());
        serde_json::from_str(&got.text()).unwrap()
    }

    /// The session, once it has the last call.
    async fn session(&self) -> Value {
        loop {
            let data = self.data(&format!("session?id={}", self.session)).await;
            // The history takes its notes a moment later.
            if data["entry"]["calls"] == self.rounds {
                return data;
            }
            tokio::task::yield_now().await;
        }
    }
}

fn list<'a>(data: &'a Value, place: &str) -> &'a [Value] {
    data.pointer(place).unwrap().as_array().unwrap()
}

#[tokio::test]
async fn session_is_shown_with_all_its_calls_under_every_preset() {
    let upstream = upstream().await;
    for (preset, window) in [("none", 200_000), ("steady", 20_000), ("refs", 40_000)] {
        let settings = ProxyConfig {
            preset: preset.to_owned(),
            ..windowed(config(&upstream.url()), window)
        };
        let (_running, base) = proxy(settings).await;
        let mut watched = Watched::new(&base, "read all files");
        for _ in 0..40 {
            watched.call().await;
        }
        let data = watched.session().await;
        assert_eq!(list(&data, "/calls").len(), 40, "{preset}");
        // The first request brought an answer, whose call the proxy has not seen.
        assert_eq!(list(&data, "/film/columns").len(), 41, "{preset}");
        let is_changed = !list(&data, "/film/switches").is_empty();
        assert_eq!(is_changed, preset != "none", "{preset}");
    }
}

#[tokio::test]
async fn page_that_has_the_newest_data_is_not_sent_it_again() {
    let upstream = upstream().await;
    let (_running, base) = proxy(windowed(config(&upstream.url()), 40_000)).await;
    let mut watched = Watched::new(&base, "one");
    watched.call().await;
    watched.session().await;
    let name = format!("/dashboard/api/session?id={}", watched.session);
    let first = get(&base, &name, &[]).await;
    let tag = first.header("etag").to_owned();
    let again = get(&base, &name, &[("if-none-match", &tag)]).await;
    assert_eq!(again.status, 304);
    assert_eq!(again.text(), "");
    assert_eq!(again.header("etag"), tag);
    watched.call().await;
    watched.session().await;
    let changed = get(&base, &name, &[("if-none-match", &tag)]).await;
    assert_eq!(changed.status, 200);
    assert_ne!(changed.header("etag"), tag);
}

#[tokio::test]
async fn list_has_all_sessions_of_this_run() {
    let upstream = upstream().await;
    let (_running, base) = proxy(windowed(config(&upstream.url()), 40_000)).await;
    for topic in ["one", "two", "three"] {
        let mut watched = Watched::new(&base, topic);
        watched.call().await;
        watched.session().await;
    }
    let watched = Watched::new(&base, "none");
    let all = watched.data("sessions").await;
    assert_eq!(list(&all, "/sessions").len(), 3);
    // They are in the store too, and are not listed twice.
    assert!(list(&watched.data("older").await, "/sessions").is_empty());
}

#[tokio::test]
async fn dashboard_takes_no_orders() {
    let upstream = upstream().await;
    let (_running, base) = proxy(windowed(config(&upstream.url()), 40_000)).await;
    for name in ["compact", "undo", "pin", "preset", "collect", "sessions"] {
        let got = post(
            &base,
            &format!("/dashboard/api/{name}"),
            &[],
            "{}".to_owned(),
        )
        .await;
        assert_eq!(got.status, 405, "{name}: {}", got.text());
    }
}
