//! Any proxy serves any request, and proxies are killed meanwhile.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::Value;
use trimtab::store::{FolderStore, SharedOptions, SharedStore, Store};
use trimtab_cli::proxy::http::{HttpAnswer, HttpClient};
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{ReplySource, Upstream, UpstreamOptions};

use super::{
    DIALECT, SharedPlace, grow, new_conversation, received, serve, serve_patiently, shared_place,
    upstream,
};
use crate::run::{Served, say};
use crate::talk::{path, post};

/// The number of proxies.
const PROXIES: usize = 3;
/// How long a request may be tried: with many conversations on a small machine, each one waits.
const TRYING: Duration = Duration::from_mins(5);
/// The number of conversations that are checked at the same time.
const CHECKED_AT_ONCE: u64 = 8;

/// How much a run does.
#[derive(Clone, Copy)]
struct RunSize {
    /// The number of conversations at any time.
    conversations: u64,
    /// The number of requests of each.
    rounds: usize,
    /// New conversations begin until this time is over.
    time: Duration,
    /// The pause between two kills.
    pause: Duration,
}

const SHORT: RunSize = RunSize {
    conversations: 6,
    rounds: 10,
    time: Duration::ZERO,
    pause: Duration::from_millis(50),
};
const LONG: RunSize = RunSize {
    conversations: 200,
    rounds: 30,
    time: Duration::from_mins(5),
    pause: Duration::from_millis(500),
};

#[tokio::test(flavor = "multi_thread")]
async fn simultaneous_proxies_on_one_database_send_the_same_bytes() {
    let Some(place) = shared_place() else { return };
    let upstream = upstream().await;
    let (one, other) = (serve(&upstream, &place), serve(&upstream, &place));
    let mut body = new_conversation(1);
    for round in 0..30 {
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

/// What a model got under each number. The windows of a long run need gigabytes, so they are
/// compressed.
#[derive(Clone, Default)]
struct SeenWindows(Arc<Mutex<HashMap<String, Vec<Vec<u8>>>>>);

impl SeenWindows {
    fn note(&self, number: &str, window: &[u8]) {
        let window = zstd::bulk::compress(window, 1).unwrap();
        let mut seen = self.0.lock().unwrap();
        let windows = seen.entry(number.to_owned()).or_default();
        if !windows.contains(&window) {
            windows.push(window);
        }
    }

    /// The different windows under a number.
    fn of(&self, number: &str) -> Vec<String> {
        let seen = self.0.lock().unwrap();
        let windows = seen.get(number).into_iter().flatten();
        let text = |window: &Vec<u8>| {
            let window = zstd::decode_all(window.as_slice()).unwrap();
            String::from_utf8(window).unwrap()
        };
        windows.map(text).collect()
    }
}

/// Where two texts differ, and what each has there.
fn difference(one: &str, other: &str) -> String {
    let mut pairs = one.bytes().zip(other.bytes());
    let at = pairs.position(|(one, other)| one != other);
    let at = at.unwrap_or(one.len().min(other.len()));
    let around = |text: &str| {
        let bytes = &text.as_bytes()[at.saturating_sub(200)..(at + 200).min(text.len())];
        String::from_utf8_lossy(bytes).into_owned()
    };
    let lengths = (one.len(), other.len());
    format!(
        "lengths {lengths:?}, from byte {at} on:\n{}\n--- and:\n{}",
        around(one),
        around(other)
    )
}

/// A model like that of the other tests, whose windows are noted and not kept.
async fn noting_upstream() -> (Upstream, SeenWindows) {
    let seen = SeenWindows::default();
    let noting = seen.clone();
    let source = ReplySource::with(move |received| {
        let number = received.header("x-number").unwrap_or_default();
        noting.note(number, &received.body);
        ScriptedReply::text("I see.")
    });
    let options = UpstreamOptions {
        keep_bodies: false,
        ..UpstreamOptions::new(source)
    };
    (Upstream::start(options).await.unwrap(), seen)
}

/// Proxies that are killed and started again.
struct ProxyGroup {
    proxies: Vec<Mutex<Served>>,
    /// The addresses of the proxies, also while one is being started.
    urls: Vec<RwLock<String>>,
    upstream: Upstream,
    place: SharedPlace,
    is_over: AtomicBool,
    kills: AtomicU64,
    requests: AtomicU64,
}

impl ProxyGroup {
    fn start(upstream: Upstream, place: SharedPlace) -> Self {
        let proxies: Vec<Served> = (0..PROXIES).map(|_| serve(&upstream, &place)).collect();
        let urls = proxies.iter().map(|proxy| RwLock::new(proxy.url.clone()));
        Self {
            urls: urls.collect(),
            proxies: proxies.into_iter().map(Mutex::new).collect(),
            upstream,
            place,
            is_over: AtomicBool::new(false),
            kills: AtomicU64::new(0),
            requests: AtomicU64::new(0),
        }
    }

    /// Sends a request to random proxies until one answers: others are being started again.
    async fn send(&self, random: &mut u64, number: &str, body: &Value) -> HttpAnswer {
        let until = Instant::now() + TRYING;
        let client = HttpClient::default();
        let bytes = body.to_string().into_bytes();
        let headers = [
            ("content-type", "application/json"),
            ("anthropic-version", "2023-06-01"),
            ("x-api-key", "k"),
            ("x-number", number),
        ];
        loop {
            *random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (*random ^ (*random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let chosen = usize::try_from(mixed >> 33).unwrap() % PROXIES;
            let url = self.urls[chosen].read().unwrap().clone();
            let url = format!("{url}{}", path(DIALECT));
            let sent = client.send(Method::POST, &url, &headers, bytes.clone(), TRYING);
            match sent.await {
                Ok(answer) if answer.status.is_success() => return answer,
                failed if Instant::now() > until => panic!("{number}: {failed:?}"),
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }

    /// Kills one proxy after the other in the middle of what it does, and starts it again.
    fn kill_proxies(&self, pause: Duration) {
        for number in (0..PROXIES).cycle() {
            std::thread::sleep(pause);
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            let mut proxy = self.proxies[number].lock().unwrap();
            proxy.signal("KILL");
            *proxy = serve(&self.upstream, &self.place);
            self.urls[number].write().unwrap().clone_from(&proxy.url);
            self.kills.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// One conversation after the other until the time is over. Returns their numbers.
    async fn converse(self: Arc<Self>, first: u64, size: RunSize) -> Vec<u64> {
        let until = Instant::now() + size.time;
        let mut sessions = Vec::new();
        let mut random = first.wrapping_mul(0xd134_2543_de82_ef95);
        for session in (first..).step_by(usize::try_from(size.conversations).unwrap()) {
            if !sessions.is_empty() && Instant::now() > until {
                break;
            }
            let mut body = new_conversation(session);
            for round in 0..size.rounds {
                let number = format!("{session}/{round}");
                let answer = self.send(&mut random, &number, &body).await;
                assert_eq!(answer.header("x-trimtab-reason"), "", "{number}");
                self.requests.fetch_add(1, Ordering::Relaxed);
                grow(&mut body, session, round);
            }
            sessions.push(session);
        }
        sessions
    }
}

/// A folder with the sessions of a database, and with nothing in them: they generate the same
/// refs. A busy database makes no difference to what is sent from a folder.
fn same_refs(database: &str) -> tempfile::TempDir {
    let empty = tempfile::tempdir().unwrap();
    let from = SharedStore::open(database).unwrap();
    let to = FolderStore::open(empty.path().join("store")).unwrap();
    to.restore_secret(&from.secret().unwrap()).unwrap();
    for info in from.sessions().unwrap() {
        let minter = from.ref_minter(&info.session).unwrap().unwrap();
        to.restore_session(&info, &minter).unwrap();
    }
    empty
}

/// Has a single proxy do the conversations again, and compares what it sends.
async fn compare(
    url: String,
    sessions: Vec<u64>,
    rounds: usize,
    windows: (SeenWindows, SeenWindows),
) {
    let (group, single) = windows;
    for session in sessions {
        let mut body = new_conversation(session);
        for round in 0..rounds {
            let number = format!("{session}/{round}");
            let answer = post(&url, path(DIALECT), &body, &[("x-number", &number)]).await;
            assert_eq!(answer.header("x-trimtab-reason"), "", "{number}: alone");
            let (sent, expected) = (group.of(&number), single.of(&number));
            assert_eq!(expected.len(), 1, "{number}: one proxy, one window");
            if let Some(other) = sent.iter().find(|window| **window != expected[0]) {
                let difference = difference(other, &expected[0]);
                panic!("{number}: other bytes than a single proxy: {difference}");
            }
            grow(&mut body, session, round);
        }
    }
}

/// Reads every output back. Returns their number.
fn read_everything(place: &SharedPlace) -> usize {
    let options = SharedOptions::new(&place.database).blobs(&place.blobs);
    let store = options.open().unwrap();
    let mut count = 0;
    for info in store.sessions().unwrap() {
        for output in store.list(&info.session).unwrap() {
            let read = store.get(&info.session, output.reference.id());
            assert_eq!(read.unwrap().len() as u64, output.byte_size);
            count += 1;
        }
    }
    count
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn killed_proxies_of_one_database_send_what_a_single_proxy_sends() {
    let Some(place) = shared_place() else { return };
    let size = if crate::is_long_run() { LONG } else { SHORT };
    let (provider, seen) = noting_upstream().await;
    let group = Arc::new(ProxyGroup::start(provider, place));
    let killed = Arc::clone(&group);
    let killer = tokio::task::spawn_blocking(move || killed.kill_proxies(size.pause));
    let conversations =
        (0..size.conversations).map(|first| tokio::spawn(Arc::clone(&group).converse(first, size)));
    let mut sessions = Vec::new();
    for conversation in conversations.collect::<Vec<_>>() {
        sessions.extend(conversation.await.unwrap());
    }
    group.is_over.store(true, Ordering::Relaxed);
    killer.await.unwrap();
    let outputs = read_everything(&group.place);
    say(&format!(
        "{} conversations, {} requests, {} kills, {outputs} outputs read back",
        sessions.len(),
        group.requests.load(Ordering::Relaxed),
        group.kills.load(Ordering::Relaxed),
    ));
    let folder = same_refs(&group.place.database);
    let (alone, expected) = noting_upstream().await;
    let store = folder.path().join("store").display().to_string();
    let single = serve_patiently(&alone, &["--store", &store]);
    let comparisons = (0..CHECKED_AT_ONCE).map(|share| {
        let share = sessions
            .iter()
            .filter(|session| **session % CHECKED_AT_ONCE == share);
        let windows = (seen.clone(), expected.clone());
        let checked = share.copied().collect();
        tokio::spawn(compare(single.url.clone(), checked, size.rounds, windows))
    });
    for comparison in comparisons.collect::<Vec<_>>() {
        comparison.await.unwrap();
    }
    for violations in [group.upstream.violations(), alone.violations()] {
        assert!(violations.is_empty(), "{violations:?}");
    }
}
