//! The database moves to another server.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use trimtab_testkit::servers::{PostgresServer, PostgresSetup, RelayMode};

use super::faults::{outcome, wait_until_managed};
use super::{DIALECT, grow, new_conversation, received, relayed_place, serve_as_usual, upstream};
use crate::access::{get, text};
use crate::run::{PATIENCE, Served};
use crate::talk::{path, post};

/// Waits until the standby has everything that is committed.
fn wait_for_standby(primary: &PostgresServer, standby: &PostgresServer) {
    let until = Instant::now() + PATIENCE;
    let committed = primary.sql("postgres", "SELECT pg_current_wal_lsn()");
    let committed = committed.unwrap();
    let has_all = format!("SELECT pg_last_wal_replay_lsn() >= '{committed}'");
    while standby.sql("postgres", &has_all).unwrap() != "t" {
        assert!(Instant::now() < until, "the standby does not follow");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The refs that a window names. Tool descriptions have examples in their place.
fn refs_of(window: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(window).replace('\\', "");
    let named = text.split("\"ref_id\":\"").skip(1);
    let ids = named.filter_map(|rest| rest.split('"').next());
    let is_ref = |id: &&str| id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    ids.filter(is_ref).map(str::to_owned).collect()
}

async fn assert_refs_resolve(served: &Served, window: &[u8]) {
    let refs = refs_of(window);
    assert!(!refs.is_empty(), "the window shows a shortened output");
    for id in refs {
        let path = format!("/v1/retrieve/{id}");
        let read = get(&served.url, &path, &[("x-api-key", "k")]).await;
        assert_eq!(read.status, 200, "{id}: {}", text(&read));
    }
}

/// Runs a conversation over a failover. If it is lossy, the standby misses the last commits.
async fn converse_over_failover(is_lossy: bool) {
    let Some(primary) = PostgresServer::own(&PostgresSetup::default()) else {
        return;
    };
    let standby = primary.standby().unwrap();
    let (place, relay) = relayed_place(&primary);
    let provider = upstream().await;
    let served = serve_as_usual(&provider, &place);
    let mut body = new_conversation(5);
    wait_until_managed(&served, &provider, &body, "start").await;
    wait_for_standby(&primary, &standby);
    if is_lossy {
        let alone = "ALTER SYSTEM SET primary_conninfo = ''";
        standby.sql("postgres", alone).unwrap();
        standby.sql("postgres", "SELECT pg_reload_conf()").unwrap();
    }
    for round in 0..5 {
        grow(&mut body, 5, round);
        wait_until_managed(&served, &provider, &body, &format!("before-{round}")).await;
    }
    if !is_lossy {
        wait_for_standby(&primary, &standby);
    }
    primary.crash().unwrap();
    grow(&mut body, 5, 5);
    let reason = outcome(&served, &provider, &body, "between").await;
    assert_ne!(reason, "", "managed without a database");
    standby.promote().unwrap();
    relay.retarget(standby.address());
    relay.set(RelayMode::Forward);
    wait_until_managed(&served, &provider, &body, "after").await;
    grow(&mut body, 5, 6);
    let answer = post(&served.url, path(DIALECT), &body, &[("x-number", "last")]).await;
    assert_eq!(answer.header("x-trimtab-reason"), "", "it stays managed");
    assert_refs_resolve(&served, &received(&provider, "last")[0]).await;
    assert!(provider.violations().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn conversation_continues_after_a_failover() {
    converse_over_failover(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failover_that_loses_commits_leaves_no_ref_without_its_output() {
    converse_over_failover(true).await;
}
