//! Any proxy serves any request, and proxies are killed meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::Value;
use trimtab::store::{SharedStore, Store};
use trimtab_cli::proxy::http::{HttpAnswer, HttpClient};
use trimtab_testkit::servers::PostgresServer;
use trimtab_testkit::upstream::Upstream;

use super::{
    DIALECT, SharedPlace, grow, new_conversation, received, serve, shared_place, upstream,
};
use crate::run::{PATIENCE, Served};
use crate::talk::{path, post};

/// The number of proxies.
const PROXIES: usize = 3;
/// One request in this many is preceded by a kill.
const KILL_EVERY: usize = 7;

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

    /// Kills a proxy in the middle of what it does, and starts it again.
    fn restart(&self, number: usize) {
        let mut proxy = self.proxies[number].lock().unwrap();
        proxy.signal("KILL");
        *proxy = serve(&self.upstream, &self.place);
        self.urls[number].write().unwrap().clone_from(&proxy.url);
    }

    /// The whole conversation of a session. Now and then it kills a proxy, which others use.
    async fn converse(self: Arc<Self>, session: u64, rounds: usize) {
        let numbers = AtomicU64::new(session.wrapping_mul(0xd134_2543_de82_ef95));
        let mut body = new_conversation(session);
        for round in 0..rounds {
            let number = format!("{session}/{round}");
            if (usize::try_from(session).unwrap() + round).is_multiple_of(KILL_EVERY) {
                let group = Arc::clone(&self);
                let killing = tokio::task::spawn_blocking(move || group.restart(round % PROXIES));
                killing.await.unwrap();
            }
            let answer = self.send(&numbers, &number, &body).await;
            assert_eq!(answer.header("x-trimtab-reason"), "", "{number}");
            grow(&mut body, session, round);
        }
    }
}

/// A database with the sessions of another one, and with nothing in them: they generate the same
/// refs.
fn same_refs(database: &str) -> String {
    let empty = PostgresServer::shared().unwrap().new_database().unwrap();
    let from = SharedStore::open(database).unwrap();
    let to = SharedStore::open(&empty).unwrap();
    to.restore_secret(&from.secret().unwrap()).unwrap();
    for info in from.sessions().unwrap() {
        let minter = from.ref_minter(&info.session).unwrap().unwrap();
        to.restore_session(&info, &minter).unwrap();
    }
    empty
}

/// The windows of a session that a single proxy sends.
async fn expected(
    proxy: &Served,
    upstream: &Upstream,
    session: u64,
    rounds: usize,
) -> Vec<Vec<u8>> {
    let mut body = new_conversation(session);
    let mut windows = Vec::new();
    for round in 0..rounds {
        let number = format!("{session}/{round}");
        post(&proxy.url, path(DIALECT), &body, &[("x-number", &number)]).await;
        windows.extend(received(upstream, &number));
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
    let provider = upstream().await;
    let proxies: Vec<Served> = (0..PROXIES).map(|_| serve(&provider, &place)).collect();
    let urls = proxies.iter().map(|proxy| RwLock::new(proxy.url.clone()));
    let group = Arc::new(ProxyGroup {
        urls: urls.collect(),
        proxies: proxies.into_iter().map(Mutex::new).collect(),
        upstream: provider,
        place,
    });
    let conversations =
        (0..sessions).map(|session| tokio::spawn(Arc::clone(&group).converse(session, rounds)));
    for conversation in conversations.collect::<Vec<_>>() {
        conversation.await.unwrap();
    }
    let place = SharedPlace {
        database: same_refs(&group.place.database),
        ..shared_place().unwrap()
    };
    let alone = upstream().await;
    let single = serve(&alone, &place);
    for session in 0..sessions.min(20) {
        let windows = expected(&single, &alone, session, rounds).await;
        for (round, window) in windows.iter().enumerate() {
            let number = format!("{session}/{round}");
            let sent = received(&group.upstream, &number);
            assert!(!sent.is_empty(), "{number} did not arrive");
            assert!(
                sent.iter().all(|sent| sent == window),
                "{number}: other bytes"
            );
        }
    }
    let violations = group.upstream.violations();
    assert!(violations.is_empty(), "{violations:?}");
}
