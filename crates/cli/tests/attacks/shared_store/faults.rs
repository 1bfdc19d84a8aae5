//! The database or the object store fails.

use std::time::{Duration, Instant};

use serde_json::Value;
use trimtab_testkit::servers::{FaultyRelay, ObjectServer, PostgresServer, RelayMode};
use trimtab_testkit::upstream::Upstream;

use super::{
    DIALECT, grow, new_conversation, noise, received, relayed_database, serve, serve_as_usual,
    shared_place, upstream,
};
use crate::access::{get, text};
use crate::run::{PATIENCE, Served};
use crate::talk::{log, path, post, with_call};

/// Sends a conversation under a number. Returns why it was not managed, and what the model got.
pub(super) async fn outcome(
    served: &Served,
    upstream: &Upstream,
    body: &Value,
    number: &str,
) -> String {
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
pub(super) async fn wait_until_managed(
    served: &Served,
    upstream: &Upstream,
    body: &Value,
    what: &str,
) {
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

/// What monitoring sees: the state of the store in the status, and the number of its failures in
/// the metrics.
async fn monitored(served: &Served) -> (String, f64) {
    let status = get(&served.url, "/trimtab/status", &[]).await;
    let status: Value = serde_json::from_slice(&status.body).unwrap();
    let metrics = text(&get(&served.url, "/metrics", &[]).await);
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix("trimtab_store_errors_total "));
    let store = status["store"].as_str().unwrap_or_default().to_owned();
    (store, line.unwrap().parse().unwrap())
}

/// Makes every insert fail as it does on a full disk, or ends that.
fn set_full(database: &str, is_full: bool) {
    let server = PostgresServer::shared().unwrap();
    let name = database.rsplit('/').next().unwrap();
    let tables = ["sessions", "outputs", "blobs", "chunks", "entries"];
    let function = "CREATE OR REPLACE FUNCTION trimtab.fail_full() RETURNS trigger
        LANGUAGE plpgsql AS $$ BEGIN
            RAISE EXCEPTION 'could not extend file: No space left on device'
                USING ERRCODE = 'disk_full';
        END $$;";
    let triggers = tables.map(|table| {
        if is_full {
            format!(
                "CREATE TRIGGER full_disk BEFORE INSERT ON trimtab.{table}
                 EXECUTE FUNCTION trimtab.fail_full();"
            )
        } else {
            format!("DROP TRIGGER full_disk ON trimtab.{table};")
        }
    });
    server
        .sql(name, &format!("{function}{}", triggers.concat()))
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_pass_while_the_database_is_full() {
    let Some(place) = shared_place() else { return };
    let upstream = upstream().await;
    let served = serve_as_usual(&upstream, &place);
    let mut body = new_conversation(6);
    wait_until_managed(&served, &upstream, &body, "start").await;
    let (store, errors) = monitored(&served).await;
    assert_eq!(store, "", "a store that works has no problem");
    grow(&mut body, 6, 4);
    set_full(&place.database, true);
    for request in 0..4 {
        let reason = outcome(&served, &upstream, &body, &format!("full-{request}")).await;
        assert_ne!(reason, "", "managed with a full database");
    }
    let (store, more) = monitored(&served).await;
    assert!(store.contains("no room left"), "{store}");
    assert!(more > errors, "{more} failures after {errors}");
    set_full(&place.database, false);
    wait_until_managed(&served, &upstream, &body, "after-full").await;
    assert!(upstream.violations().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_pass_while_the_database_is_stopped_or_hangs_or_is_slow() {
    let Some((place, relay)) = relayed_database() else {
        return;
    };
    let upstream = upstream().await;
    let served = serve_as_usual(&upstream, &place);
    let mut body = new_conversation(7);
    wait_until_managed(&served, &upstream, &body, "start").await;
    let faults = [
        (RelayMode::Refuse, "stopped"),
        (RelayMode::Stall, "hanging"),
        (RelayMode::Slow, "slow"),
    ];
    for (round, (mode, what)) in (4..).zip(faults) {
        grow(&mut body, 7, round);
        relay.set(mode);
        for request in 0..4 {
            let number = format!("{what}-{request}");
            let reason = outcome(&served, &upstream, &body, &number).await;
            assert_ne!(reason, "", "{number}: managed without a database");
        }
        let (store, errors) = monitored(&served).await;
        assert!(store.contains("the store"), "{what}: {store}");
        assert!(errors > 0.0, "{what}");
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
    let served = serve_as_usual(&upstream, &place);
    let mut body = new_conversation(8);
    wait_until_managed(&served, &upstream, &body, "start").await;
    let faults = [
        (RelayMode::Unavailable, "unavailable"),
        (RelayMode::Stall, "hanging"),
        (RelayMode::Refuse, "stopped"),
        (RelayMode::Slow, "slow"),
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

/// The number of round trips to the database of each of `requests` requests. They go to the proxies
/// in turns.
async fn round_trips(proxies: usize, requests: usize) -> Option<Vec<u64>> {
    let (place, relay) = relayed_database()?;
    let upstream = upstream().await;
    let proxies: Vec<Served> = (0..proxies).map(|_| serve(&upstream, &place)).collect();
    let mut body = new_conversation(9);
    let mut round_trips = Vec::new();
    for round in 0..requests {
        let before = relay.round_trips();
        let served = &proxies[round % proxies.len()];
        let reason = outcome(served, &upstream, &body, &format!("hot-{round}")).await;
        assert_eq!(reason, "");
        // The messages of a request are written shortly after it.
        tokio::time::sleep(Duration::from_millis(200)).await;
        round_trips.push(relay.round_trips() - before);
        with_call(DIALECT, &mut body, &format!("call_{round}"), &log(20));
    }
    Some(round_trips)
}

fn median(figures: &[u64]) -> u64 {
    let mut figures = figures.to_vec();
    figures.sort_unstable();
    figures[figures.len() / 2]
}

#[tokio::test(flavor = "multi_thread")]
async fn hot_conversation_costs_two_round_trips_per_request() {
    let Some(round_trips) = round_trips(1, 16).await else {
        return;
    };
    // The first requests open connections and prepare statements.
    let hot = &round_trips[6..];
    assert!(median(hot) <= 2, "round trips per request: {hot:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn conversation_on_several_proxies_costs_the_same_round_trips_at_any_length() {
    let Some(round_trips) = round_trips(3, 48).await else {
        return;
    };
    let (early, late) = (&round_trips[12..24], &round_trips[36..]);
    assert!(
        median(late) <= median(early).min(10),
        "early: {early:?}, late: {late:?}"
    );
}
