//! Several proxies with one PostgreSQL database and one object store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::Value;
use tokio::sync::RwLock;
use trimtab_cli::proxy::http::{HttpAnswer, HttpClient};
use trimtab_model::Dialect;
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::servers::{FaultyRelay, ObjectServer, PostgresServer, RelayMode};
use trimtab_testkit::upstream::{ReplySource, Upstream, UpstreamOptions};

use crate::run::{PATIENCE, Served, finished, texts};
use crate::talk::{log, path, post, with_call, with_output};

/// The dialect of all conversations here. Other tests compare the dialects.
const DIALECT: Dialect = Dialect::Messages;
/// The number of proxies.
const PROXIES: usize = 3;

/// A database and an object store that only one test uses.
struct SharedPlace {
    database: String,
    blobs: String,
    bucket: Option<String>,
    /// The object store if there is no S3 server.
    _folder: tempfile::TempDir,
}

/// None if PostgreSQL is not installed, which is reported.
fn shared_place() -> Option<SharedPlace> {
    let database = PostgresServer::shared()?.new_database().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let bucket = ObjectServer::shared().map(|server| server.new_bucket().unwrap());
    let blobs = match (&bucket, ObjectServer::shared()) {
        (Some(bucket), Some(server)) => ObjectServer::url(bucket, server.address()),
        _ => format!("file://{}", folder.path().display()),
    };
    Some(SharedPlace {
        database,
        blobs,
        bucket,
        _folder: folder,
    })
}

async fn upstream() -> Upstream {
    let options = UpstreamOptions::new(ReplySource::with(|_| ScriptedReply::text("I see.")));
    Upstream::start(options).await.unwrap()
}

/// A proxy that plans for as long as it takes: the machine may be busy with other tests.
fn serve(upstream: &Upstream, place: &SharedPlace) -> Served {
    Served::start(&[
        "--upstream",
        &upstream.url(),
        "--store",
        &place.database,
        "--blobs",
        &place.blobs,
        "--set",
        "proxy.limits.plan_ms=60000",
    ])
}

/// Text that compresses badly: an output of this size is an object.
fn noise(seed: u64, kilobytes: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let line = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        format!("{state:016x} {:016x}\n", state.rotate_left(17))
    };
    (0..kilobytes * 30).map(line).collect()
}

/// The conversation of a session, one round longer.
fn grow(body: &mut Value, session: u64, round: usize) {
    let output = match round % 6 {
        2 => noise(session * 100 + round as u64, 300),
        4 => log(1_500 + round),
        _ => log(40 + round),
    };
    let output = format!("session {session}, output {round}\n{output}");
    with_call(DIALECT, body, &format!("call_{round}"), &output);
}

fn new_conversation(session: u64) -> Value {
    let mut body = with_output(DIALECT, 800);
    body["metadata"] = serde_json::json!({ "user_id": format!("session-{session}") });
    body
}

/// What the model got under a number, each time that it came.
fn received(upstream: &Upstream, number: &str) -> Vec<Vec<u8>> {
    let requests = upstream.requests();
    let of_number = requests
        .iter()
        .filter(|received| received.header("x-number") == Some(number));
    of_number.map(|received| received.body.to_vec()).collect()
}

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
    proxies: Vec<RwLock<Served>>,
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
            let url = self.proxies[chosen].read().await.url.clone();
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
            let mut proxy = self.proxies[kills % PROXIES].write().await;
            proxy.signal("KILL");
            *proxy = serve(&self.upstream, &self.place);
            drop(proxy);
            kills += 1;
            tokio::time::sleep(Duration::from_millis(400)).await;
        }
        kills
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
    let proxies = (0..PROXIES).map(|_| RwLock::new(serve(&upstream, &place)));
    let group = Arc::new(ProxyGroup {
        proxies: proxies.collect(),
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

/// Sends a conversation under a number. Returns why it was not managed, and what the model got.
async fn outcome(served: &Served, upstream: &Upstream, body: &Value, number: &str) -> String {
    let answer = post(&served.url, path(DIALECT), body, &[("x-number", number)]).await;
    assert!(answer.status.is_success(), "{number}: {answer:?}");
    let reason = answer.header("x-trimtab-reason").to_owned();
    if !reason.is_empty() {
        let got = received(upstream, number);
        assert!(
            got.iter().all(|got| *got == body.to_string().into_bytes()),
            "{number}: an unmanaged request passes unchanged"
        );
    }
    reason
}

/// Waits until requests are managed again.
async fn wait_until_managed(served: &Served, upstream: &Upstream, body: &Value, what: &str) {
    let until = Instant::now() + PATIENCE;
    for attempt in 0.. {
        let number = format!("{what}-{attempt}");
        let reason = outcome(served, upstream, body, &number).await;
        if reason.is_empty() {
            return;
        }
        assert!(Instant::now() < until, "{what}: still unmanaged: {reason}");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_pass_while_the_database_is_stopped_or_hangs() {
    let Some(mut place) = shared_place() else {
        return;
    };
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let relay = FaultyRelay::start(server.address()).unwrap();
    let address = server.address().to_string();
    place.database = place
        .database
        .replace(&address, &relay.address().to_string());
    let upstream = upstream().await;
    let served = Served::start(&[
        "--upstream",
        &upstream.url(),
        "--store",
        &place.database,
        "--blobs",
        &place.blobs,
    ]);
    let mut body = new_conversation(7);
    wait_until_managed(&served, &upstream, &body, "start").await;
    for (mode, what) in [
        (RelayMode::Refuse, "stopped"),
        (RelayMode::Stall, "hanging"),
    ] {
        grow(&mut body, 7, 4);
        relay.set(mode);
        for request in 0..4 {
            let number = format!("{what}-{request}");
            let reason = outcome(&served, &upstream, &body, &number).await;
            assert_ne!(reason, "", "{number}: managed without a database");
        }
        relay.set(RelayMode::Forward);
        wait_until_managed(&served, &upstream, &body, &format!("after-{what}")).await;
    }
    assert!(upstream.violations().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_pass_while_the_object_store_fails() {
    let Some(mut place) = shared_place() else {
        return;
    };
    let (Some(bucket), Some(server)) = (place.bucket.clone(), ObjectServer::shared()) else {
        return;
    };
    let relay = FaultyRelay::start(server.address()).unwrap();
    place.blobs = ObjectServer::url(&bucket, relay.address());
    let upstream = upstream().await;
    let served = Served::start(&[
        "--upstream",
        &upstream.url(),
        "--store",
        &place.database,
        "--blobs",
        &place.blobs,
    ]);
    let mut body = new_conversation(8);
    wait_until_managed(&served, &upstream, &body, "start").await;
    let faults = [
        (RelayMode::Unavailable, "unavailable"),
        (RelayMode::Stall, "hanging"),
        (RelayMode::Refuse, "stopped"),
    ];
    for (seed, (mode, what)) in (1_u64..).zip(faults) {
        let id = format!("call_{what}");
        with_call(DIALECT, &mut body, &id, &noise(seed, 400));
        relay.set(mode);
        let reason = outcome(&served, &upstream, &body, what).await;
        assert_ne!(reason, "", "{what}: managed without an object store");
        relay.set(RelayMode::Forward);
        wait_until_managed(&served, &upstream, &body, &format!("after-{what}")).await;
    }
    assert!(
        server.object_count(&bucket).unwrap() >= 3,
        "large outputs are objects"
    );
    assert!(upstream.violations().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn hot_conversation_costs_two_round_trips_per_request() {
    let Some(mut place) = shared_place() else {
        return;
    };
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let relay = FaultyRelay::start(server.address()).unwrap();
    let address = server.address().to_string();
    place.database = place
        .database
        .replace(&address, &relay.address().to_string());
    let upstream = upstream().await;
    let served = serve(&upstream, &place);
    let mut body = new_conversation(9);
    let mut round_trips = Vec::new();
    for round in 0..16 {
        let before = relay.round_trips();
        let reason = outcome(&served, &upstream, &body, &format!("hot-{round}")).await;
        assert_eq!(reason, "");
        // The messages of a request are written shortly after it.
        tokio::time::sleep(Duration::from_millis(200)).await;
        round_trips.push(relay.round_trips() - before);
        with_call(DIALECT, &mut body, &format!("call_{round}"), &log(20));
    }
    // The first requests open connections and prepare statements.
    let mut hot = round_trips.split_off(6);
    hot.sort_unstable();
    let median = hot[hot.len() / 2];
    assert!(median <= 2, "round trips per request: {hot:?}");
}

#[test]
fn verbs_read_and_write_a_database() {
    let Some(place) = shared_place() else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("long.txt"), noise(3, 400)).unwrap();
    let run = |args: &[&str]| {
        let mut all = args.to_vec();
        all.extend(["--store", &place.database, "--blobs", &place.blobs]);
        let done = finished(folder.path(), &all);
        let (out, error) = texts(&done);
        assert!(done.status.success(), "{args:?}: {error}");
        out
    };
    let put = run(&[
        "output",
        "put",
        "--session",
        "s",
        "--call",
        "c",
        "--json",
        "long.txt",
    ]);
    let put: Value = serde_json::from_str(&put).unwrap();
    let id = put["ref_id"]
        .as_str()
        .or(put["id"].as_str())
        .unwrap()
        .to_owned();
    let line = noise(3, 400).lines().nth(5).unwrap().to_owned();
    let lines = run(&[
        "output",
        "read",
        "--session",
        "s",
        &id,
        "--offset",
        "5",
        "--limit",
        "1",
    ]);
    assert!(lines.contains(&line), "{lines}");
    let found = run(&["output", "grep", "--session", "s", &line]);
    assert!(found.contains(&line), "{found}");
    assert!(run(&["output", "sessions"]).contains('s'));
    let doctor = run(&["doctor"]);
    assert!(doctor.contains("large outputs"), "{doctor}");
    run(&["output", "erase", "--session", "s", "--yes"]);
    if let (Some(bucket), Some(server)) = (&place.bucket, ObjectServer::shared()) {
        assert_eq!(
            server.object_count(bucket).unwrap(),
            0,
            "erased bytes are gone"
        );
    }
}

#[test]
fn errors_of_a_database_name_it_without_its_password() {
    let folder = tempfile::tempdir().unwrap();
    let fails = |store: &str, text: &str| {
        let done = finished(folder.path(), &["output", "sessions", "--store", store]);
        let (_, error) = texts(&done);
        assert!(!done.status.success(), "{store}");
        assert!(
            error.contains(text) && error.contains("hint:"),
            "{store}: {error}"
        );
        assert!(!error.contains("secret"), "{error}");
    };
    fails("postgres://me:secret@127.0.0.1:1/none", "cannot be reached");
    fails(
        "postgres://me:secret@127.0.0.1:port/none",
        "bad URL of the database",
    );
    fails("mysql://me:secret@127.0.0.1/none", "not a store");
    let done = finished(
        folder.path(),
        &[
            "output",
            "sessions",
            "--blobs",
            "s3://bucket",
            "--store",
            "folder",
        ],
    );
    assert!(
        texts(&done)
            .1
            .contains("--blobs needs a store in a database")
    );
}

#[test]
fn newer_schema_is_refused() {
    let Some(place) = shared_place() else { return };
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let args = ["output", "sessions", "--store", &place.database];
    let missing = finished(folder.path(), &args);
    assert!(!missing.status.success(), "reading creates no store");
    std::fs::write(folder.path().join("text"), "text").unwrap();
    let put = ["output", "put", "--session", "s", "--call", "c", "text"];
    let put = [&put[..], &["--store", &place.database]].concat();
    let put = finished(folder.path(), &put);
    assert!(put.status.success(), "{}", texts(&put).1);
    assert!(finished(folder.path(), &args).status.success());
    let name = place.database.rsplit('/').next().unwrap();
    server
        .sql(name, "INSERT INTO trimtab.schema_version VALUES (99)")
        .unwrap();
    let (_, error) = texts(&finished(folder.path(), &args));
    assert!(
        error.contains("format 99") && error.contains("upgrade"),
        "{error}"
    );
}
