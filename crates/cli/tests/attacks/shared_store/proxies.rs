//! Any proxy serves any request, and proxies are killed meanwhile.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::Value;
use trimtab_cli::proxy::http::{HttpAnswer, HttpClient};
use trimtab_testkit::upstream::Upstream;

use super::{
    DIALECT, SharedPlace, grow, new_conversation, received, serve, shared_place, upstream,
};
use crate::run::{PATIENCE, Served};
use crate::talk::{path, post};

/// The number of proxies.
const PROXIES: usize = 3;

/// A window without the names of refs, which differ between stores.
fn without_refs(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let mut names: Vec<&str> = Vec::new();
    let mut shown = String::new();
    for piece in text.split_inclusive(|one: char| !matches!(one, 'a'..='z' | '2'..='7')) {
        let word = piece.trim_end_matches(|one: char| !matches!(one, 'a'..='z' | '2'..='7'));
        if word.len() != 16 {
            shown.push_str(piece);
            continue;
        }
        let known = names.iter().position(|name| *name == word);
        let number = known.unwrap_or_else(|| {
            names.push(word);
            names.len() - 1
        });
        shown.push_str(&format!(
            "<{number}>{}",
            piece.get(16..).unwrap_or_default()
        ));
    }
    shown
}

#[tokio::test(flavor = "multi_thread")]
async fn simultaneous_proxies_on_one_database_send_the_same_bytes() {
    let Some(place) = shared_place() else { return };
    let upstream = upstream().await;
    let (one, other) = (serve(&upstream, &place), serve(&upstream, &place));
    let mut body = new_conversation(1);
    for round in 0..8 {
        let (first, second) = (format!("{round}a"), format!("{round}b"));
        let headers = [[("x-number", &*first)], [("x-number", &*second)]];
        let both = tokio::join!(
            post(&one.url, path(DIALECT), &body, &headers[0]),
            post(&other.url, path(DIALECT), &body, &headers[1]),
        );
        for answer in [&both.0, &both.1] {
            assert!(answer.status.is_success(), "{round}: {answer:?}");
            assert_eq!(answer.header("x-trimtab-reason"), "", "{round}");
        }
        let (got, also) = (received(&upstream, &first), received(&upstream, &second));
        assert_eq!(got, also, "{round}: the same history at the same time");
        grow(&mut body, 1, round);
    }
    assert!(upstream.violations().is_empty());
}

/// Proxies that are killed and started again.
struct ProxyGroup {
    proxies: Vec<Mutex<Served>>,
    /// The addresses of the proxies, also while one is being started.
    urls: Vec<RwLock<String>>,
    upstream: Upstream,
    place: SharedPlace,
}

impl ProxyGroup {
    /// Sends a request to random proxies until one answers: others are being started again.
    async fn send(&self, numbers: &AtomicU64, number: &str, body: &Value) -> HttpAnswer {
        let until = Instant::now() + PATIENCE;
        loop {
            let random = numbers.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
            let chosen = usize::try_from(random >> 33).unwrap() % PROXIES;
            let url = self.urls[chosen].read().unwrap().clone();
            let headers = [
                ("content-type", "application/json"),
                ("anthropic-version", "2023-06-01"),
                ("x-api-key", "k"),
                ("x-number", number),
            ];
            let url = format!("{url}{}", path(DIALECT));
            let bytes = body.to_string().into_bytes();
            let client = HttpClient::default();
            let sent = client.send(Method::POST, &url, &headers, bytes, PATIENCE);
            match sent.await {
                Ok(answer) if answer.status.is_success() => return answer,
                failed if Instant::now() > until => panic!("{number}: {failed:?}"),
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }

    /// Kills one proxy after the other, until the conversations are over.
    async fn kill_in_turn(&self, done: &AtomicBool) -> usize {
        let mut kills = 0;
        while !done.load(Ordering::Relaxed) {
            self.restart(kills % PROXIES);
            kills += 1;
            tokio::time::sleep(Duration::from_millis(400)).await;
        }
        kills
    }

    fn restart(&self, number: usize) {
        let mut proxy = self.proxies[number].lock().unwrap();
        proxy.signal("KILL");
        *proxy = serve(&self.upstream, &self.place);
        self.urls[number].write().unwrap().clone_from(&proxy.url);
    }

    /// The whole conversation of a session.
    async fn converse(&self, session: u64, rounds: usize) {
        let numbers = AtomicU64::new(session.wrapping_mul(0xd134_2543_de82_ef95));
        let mut body = new_conversation(session);
        for round in 0..rounds {
            let number = format!("{session}/{round}");
            let answer = self.send(&numbers, &number, &body).await;
            assert_eq!(answer.header("x-trimtab-reason"), "", "{number}");
            grow(&mut body, session, round);
        }
    }
}

/// The windows that a single proxy with a store in a folder sends.
async fn expected(session: u64, rounds: usize) -> Vec<String> {
    let upstream = upstream().await;
    let proxy = Served::start(&[
        "--upstream",
        &upstream.url(),
        "--set",
        "proxy.limits.plan_ms=60000",
    ]);
    let mut body = new_conversation(session);
    let mut windows = Vec::new();
    for round in 0..rounds {
        let number = format!("{session}/{round}");
        post(&proxy.url, path(DIALECT), &body, &[("x-number", &number)]).await;
        windows.push(without_refs(&received(&upstream, &number)[0]));
        grow(&mut body, session, round);
    }
    windows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn killed_proxies_of_one_database_send_what_a_single_proxy_sends() {
    let Some(place) = shared_place() else { return };
    let (sessions, rounds) = if crate::is_long_run() {
        (200, 40)
    } else {
        (6, 10)
    };
    let upstream = upstream().await;
    let proxies: Vec<Served> = (0..PROXIES).map(|_| serve(&upstream, &place)).collect();
    let urls = proxies.iter().map(|proxy| RwLock::new(proxy.url.clone()));
    let group = Arc::new(ProxyGroup {
        urls: urls.collect(),
        proxies: proxies.into_iter().map(Mutex::new).collect(),
        upstream,
        place,
    });
    let done = Arc::new(AtomicBool::new(false));
    let (killing, over) = (Arc::clone(&group), Arc::clone(&done));
    let killer = tokio::spawn(async move { killing.kill_in_turn(&over).await });
    let conversations = (0..sessions).map(|session| {
        let group = Arc::clone(&group);
        tokio::spawn(async move { group.converse(session, rounds).await })
    });
    for conversation in conversations.collect::<Vec<_>>() {
        conversation.await.unwrap();
    }
    done.store(true, Ordering::Relaxed);
    let kills = killer.await.unwrap();
    assert!(kills > 2, "proxies were killed {kills} times");
    for session in 0..sessions.min(20) {
        let windows = expected(session, rounds).await;
        for (round, window) in windows.iter().enumerate() {
            for body in received(&group.upstream, &format!("{session}/{round}")) {
                let sent = without_refs(&body);
                assert_eq!(sent.len(), window.len(), "{session}/{round}: length");
                assert!(sent == *window, "{session}/{round}: other bytes");
            }
        }
    }
    let violations = group.upstream.violations();
    assert!(violations.is_empty(), "{violations:?}");
}
