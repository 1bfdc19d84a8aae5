//! Two proxies with one store and one conversation.

use std::path::Path;

use serde_json::Value;
use trimtab::store::{FolderStore, Store};
use trimtab_model::Dialect;
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{ReplySource, Upstream, UpstreamOptions};

use crate::run::Served;
use crate::talk::{log, path, post, with_call, with_output};

/// How many requests each test sends.
const REQUESTS: usize = 30;

async fn upstream() -> Upstream {
    let options = UpstreamOptions::new(ReplySource::with(|_| ScriptedReply::text("I see.")));
    Upstream::start(options).await.unwrap()
}

fn serve(upstream: &Upstream, store: &Path) -> Served {
    let store = store.to_str().unwrap();
    Served::start(&["--upstream", &upstream.url(), "--store", store])
}

/// Sends a conversation under its number; gives the body that the model got.
async fn sent(
    served: &Served,
    upstream: &Upstream,
    dialect: Dialect,
    body: &Value,
    number: &str,
) -> Vec<u8> {
    let answer = post(&served.url, path(dialect), body, &[("x-number", number)]).await;
    assert!(answer.status.is_success(), "{number}: {answer:?}");
    assert_eq!(
        answer.header("x-trimtab-reason"),
        "",
        "{number} is unmanaged"
    );
    assert_eq!(answer.header("x-trimtab-action"), "edited", "{number}");
    let requests = upstream.requests();
    let received = requests
        .iter()
        .rev()
        .find(|received| received.header("x-number") == Some(number));
    received.unwrap().body.to_vec()
}

/// The conversation before each request: every one has another output.
fn grow(dialect: Dialect, body: &mut Value, number: usize) {
    let lines = if number.is_multiple_of(3) { 1_500 } else { 40 };
    let output = format!("output {number}\n{}", log(lines + number));
    with_call(dialect, body, &format!("call_{number}"), &output);
}

async fn alternate(dialect: Dialect) {
    let (upstream, store) = (upstream().await, tempfile::tempdir().unwrap());
    let proxies = [
        serve(&upstream, store.path()),
        serve(&upstream, store.path()),
    ];
    let mut body = with_output(dialect, 3_000);
    for number in 0..REQUESTS {
        let first = &proxies[number % 2];
        let one = sent(first, &upstream, dialect, &body, &format!("{number}a")).await;
        if number.is_multiple_of(5) {
            let second = &proxies[(number + 1) % 2];
            let other = sent(second, &upstream, dialect, &body, &format!("{number}b")).await;
            assert_eq!(one, other, "{dialect} {number}: the same history");
        }
        grow(dialect, &mut body, number);
    }
    assert!(
        upstream.violations().is_empty(),
        "{:?}",
        upstream.violations()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn alternating_proxies_manage_every_request() {
    for dialect in Dialect::ALL {
        alternate(dialect).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn simultaneous_proxies_send_the_same_bytes() {
    let dialect = Dialect::Messages;
    let (upstream, store) = (upstream().await, tempfile::tempdir().unwrap());
    let (one, other) = (
        serve(&upstream, store.path()),
        serve(&upstream, store.path()),
    );
    let mut body = with_output(dialect, 3_000);
    for number in 0..REQUESTS / 2 {
        let (first, second) = (format!("{number}a"), format!("{number}b"));
        let both = tokio::join!(
            sent(&one, &upstream, dialect, &body, &first),
            sent(&other, &upstream, dialect, &body, &second),
        );
        assert_eq!(
            both.0, both.1,
            "{number}: the same history at the same time"
        );
        grow(dialect, &mut body, number);
    }
    assert!(
        upstream.violations().is_empty(),
        "{:?}",
        upstream.violations()
    );
}

/// An output of another length in each round, with lines of different lengths: a view that may be
/// one token longer is cut at another place.
fn uneven_output(number: usize) -> String {
    let words = |at: usize| "word ".repeat(1 + (at * 7 + number) % 9);
    let line = |at: usize| format!("{at} of {number}: {}\n", words(at));
    (0..200 + number * 137 % 900).map(line).collect()
}

/// What a model gets in a conversation whose requests reach `proxies` proxies in no order.
async fn windows(dialect: Dialect, proxies: usize, store: &Path) -> Vec<Vec<u8>> {
    let upstream = upstream().await;
    let proxies: Vec<Served> = (0..proxies).map(|_| serve(&upstream, store)).collect();
    let mut body = with_output(dialect, 3_000);
    let mut windows = Vec::new();
    for number in 0..REQUESTS {
        let served = &proxies[number * number % proxies.len()];
        windows.push(sent(served, &upstream, dialect, &body, &number.to_string()).await);
        let output = uneven_output(number);
        with_call(dialect, &mut body, &format!("call_{number}"), &output);
    }
    windows
}

/// Creates the sessions of one store in another one, with nothing in them: both generate the same
/// refs.
fn create_sessions(from: &Path, to: &Path) {
    let (from, to) = (
        FolderStore::open(from).unwrap(),
        FolderStore::open(to).unwrap(),
    );
    to.restore_secret(&from.secret().unwrap()).unwrap();
    for info in from.sessions().unwrap() {
        let minter = from.ref_minter(&info.session).unwrap().unwrap();
        to.restore_session(&info, &minter).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_proxies_send_what_one_proxy_sends() {
    for dialect in Dialect::ALL {
        let home = tempfile::tempdir().unwrap();
        let (shared, single) = (home.path().join("shared"), home.path().join("single"));
        let by_three = windows(dialect, 3, &shared).await;
        create_sessions(&shared, &single);
        let by_one = windows(dialect, 1, &single).await;
        for (number, (window, expected)) in by_three.iter().zip(&by_one).enumerate() {
            let (window, expected) = (
                String::from_utf8_lossy(window),
                String::from_utf8_lossy(expected),
            );
            let differs = window
                .bytes()
                .zip(expected.bytes())
                .position(|(a, b)| a != b);
            assert_eq!(
                window.len(),
                expected.len(),
                "{dialect} {number}: differs from byte {differs:?} on"
            );
            assert_eq!(differs, None, "{dialect} {number}");
        }
    }
}
