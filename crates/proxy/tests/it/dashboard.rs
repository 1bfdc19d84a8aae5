//! What a screen with the dashboard is sent.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
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

/// A proxy with a session, and a screen that shows it.
struct Watched {
    base: String,
    talk: Talk,
    rounds: usize,
    session: String,
}

impl Watched {
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

    async fn data(&self, name: &str) -> (Value, usize) {
        let got = get(&self.base, &format!("/dashboard/api/{name}"), &[]).await;
        assert_eq!(got.status, 200, "{}", got.text());
        let text = got.text();
        (serde_json::from_str(&text).unwrap(), text.len())
    }

    /// The session as far as a screen lacks it, once it has the last call, and its bytes.
    async fn session(&self, since: &str) -> (Value, usize) {
        loop {
            let name = format!("session?id={}&since={since}", self.session);
            let (data, bytes) = self.data(&name).await;
            // The history takes its notes a moment later.
            if data["entry"]["calls"] == self.rounds {
                return (data, bytes);
            }
            tokio::task::yield_now().await;
        }
    }
}

fn list<'a>(data: &'a Value, place: &str) -> &'a [Value] {
    data.pointer(place).unwrap().as_array().unwrap()
}

/// A screen that listens to the live feed, as long as it is not dropped.
async fn open_feed(base: &str) -> TcpStream {
    let address = base.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET /dashboard/api/events HTTP/1.1\r\nhost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut told = Vec::new();
    while !String::from_utf8_lossy(&told).contains("hello") {
        assert!(stream.read_buf(&mut told).await.unwrap() > 0);
    }
    stream
}

/// Adds the news to what a screen has, as a page does.
fn merge(screen: &mut Value, news: &Value) {
    let (film, part) = (&mut screen["film"], &news["film"]);
    for name in ["columns", "switches"] {
        let list = film[name].as_array_mut().unwrap();
        list.truncate(number(&part[format!("{name}_from")]));
        list.extend(part[name].as_array().unwrap().iter().cloned());
    }
    let from = number(&part["scenes_from"]);
    let scenes = film["scenes"].as_array_mut().unwrap();
    scenes.truncate(from + 1);
    for (at, scene) in part["scenes"].as_array().unwrap().iter().enumerate() {
        if at > 0 {
            scenes.push(scene.clone());
            continue;
        }
        let bands = scenes[from]["bands"].as_array_mut().unwrap();
        bands.truncate(number(&part["bands_from"]));
        bands.extend(scene["bands"].as_array().unwrap().iter().cloned());
    }
    let calls = news["calls"].as_array().unwrap().clone();
    screen["calls"].as_array_mut().unwrap().extend(calls);
}

fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

#[tokio::test]
async fn screen_is_sent_only_what_is_new_however_long_the_session_is() {
    let upstream = upstream().await;
    for (preset, window) in [("none", 200_000), ("steady", 20_000), ("refs", 40_000)] {
        let settings = ProxyConfig {
            preset: preset.to_owned(),
            ..windowed(config(&upstream.url()), window)
        };
        let (_running, base) = proxy(settings).await;
        let mut watched = Watched {
            base,
            talk: Talk::new(DIALECT, "read all files"),
            rounds: 0,
            session: String::new(),
        };
        // Films are kept while a screen is open.
        let _feed = open_feed(&watched.base).await;
        watched.call().await;
        let (mut screen, _) = watched.session("").await;
        let (mut sizes, mut made_again) = (Vec::new(), 0);
        for _ in 0..40 {
            watched.call().await;
            let since = screen["version"].as_str().unwrap().to_owned();
            let (news, bytes) = watched.session(&since).await;
            assert_eq!(list(&news, "/calls").len(), 1, "{preset}");
            if news["film"]["columns_from"] == 0 {
                made_again += 1;
            } else {
                assert_eq!(list(&news, "/film/columns").len(), 1, "{preset}");
                let is_switch = !list(&news, "/film/switches").is_empty();
                sizes.extend((!is_switch).then_some(bytes));
            }
            merge(&mut screen, &news);
            screen["version"] = news["version"].clone();
        }
        let (whole, _) = watched.session("").await;
        for name in ["columns", "switches", "scenes"] {
            let (merged, all) = (&screen["film"][name], &whole["film"][name]);
            assert_eq!(merged, all, "{preset}: {name}");
        }
        assert_eq!(screen["calls"], whole["calls"], "{preset}");
        // A late plan can change what was drawn before, but that is rare.
        let rarely = if preset == "none" { 0 } else { 3 };
        assert!(made_again <= rarely, "{preset}: {made_again}");
        // The last one is as small as the first one, up to the digits of its figures.
        if let (Some(first), Some(last)) = (sizes.first(), sizes.last()) {
            assert!(*last < first + 300, "{preset}: {first} and {last} bytes");
        }
    }
}

#[tokio::test]
async fn list_has_only_sessions_that_changed() {
    let upstream = upstream().await;
    let (_running, base) = proxy(windowed(config(&upstream.url()), 40_000)).await;
    let mut watched = Vec::new();
    for topic in ["one", "two", "three"] {
        watched.push(Watched {
            base: base.clone(),
            talk: Talk::new(DIALECT, topic),
            rounds: 0,
            session: String::new(),
        });
    }
    for session in &mut watched {
        session.call().await;
        session.session("").await;
    }
    let (all, _) = watched[0].data("sessions").await;
    assert_eq!(list(&all, "/sessions").len(), 3);
    let since = format!("sessions?since={}", all["version"]);
    let (none, _) = watched[0].data(&since).await;
    assert!(list(&none, "/sessions").is_empty(), "{none}");
    watched[1].call().await;
    watched[1].session("").await;
    let (changed, _) = watched[0].data(&since).await;
    let changed = list(&changed, "/sessions");
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0]["id"], watched[1].session);
}
