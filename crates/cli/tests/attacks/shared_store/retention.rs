//! Sessions of one tenant are removed and erased on demand.

use std::collections::BTreeSet;

use serde_json::Value;
use trimtab_cli::proxy::http::HttpAnswer;
use trimtab_testkit::servers::{ObjectServer, PostgresServer};

use super::{DIALECT, SharedPlace, grow, new_conversation, serve, shared_place, upstream};
use crate::access::{get, text};
use crate::run::{Served, finished, texts};
use crate::talk::{path, post};

/// Sends a conversation with large outputs under a key.
async fn converse(served: &Served, key: &str, session: u64) -> HttpAnswer {
    let mut body = new_conversation(session);
    for round in 0..5 {
        grow(&mut body, session, round);
    }
    let answer = post(&served.url, path(DIALECT), &body, &[("x-api-key", key)]).await;
    assert!(answer.status.is_success(), "{answer:?}");
    answer
}

/// The tenants in the store.
fn tenants(place: &SharedPlace) -> BTreeSet<String> {
    let folder = tempfile::tempdir().unwrap();
    let args = ["output", "sessions", "--json", "--store", &place.database];
    let (listed, _) = texts(&finished(folder.path(), &args));
    let sessions = listed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let tenants =
        sessions.filter_map(|session: Value| Some(session["tenant"].as_str()?.to_owned()));
    tenants.collect()
}

/// The tenant that a conversation under a key adds.
async fn new_tenant(served: &Served, place: &SharedPlace, key: &str, session: u64) -> String {
    let before = tenants(place);
    converse(served, key, session).await;
    let added: Vec<String> = tenants(place).difference(&before).cloned().collect();
    assert_eq!(added.len(), 1, "one key is one tenant");
    added[0].clone()
}

fn sql(place: &SharedPlace, statement: &str) -> String {
    let name = place.database.rsplit('/').next().unwrap();
    let server = PostgresServer::shared().unwrap();
    server.sql(name, statement).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn collection_of_one_tenant_leaves_the_others() {
    let Some(place) = shared_place() else { return };
    let provider = upstream().await;
    let served = serve(&provider, &place);
    let gone = new_tenant(&served, &place, "gone", 1).await;
    let stays = new_tenant(&served, &place, "stays", 2).await;
    drop(served);
    sql(&place, "UPDATE trimtab.sessions SET leased_until = 0");
    let folder = tempfile::tempdir().unwrap();
    let gc = ["output", "gc", "--older-than", "0s", "--tenant", &gone];
    let stores = ["--store", &place.database, "--blobs", &place.blobs];
    let done = finished(folder.path(), &[&gc[..], &stores].concat());
    assert!(done.status.success(), "{}", texts(&done).1);
    assert_eq!(tenants(&place), BTreeSet::from([stays]));
}

#[tokio::test(flavor = "multi_thread")]
async fn erased_tenant_is_gone_from_database_and_bucket() {
    let Some(place) = shared_place() else { return };
    let (Some(bucket), Some(objects)) = (&place.bucket, ObjectServer::shared()) else {
        return;
    };
    let provider = upstream().await;
    let proxies = [serve(&provider, &place), serve(&provider, &place)];
    let erased = new_tenant(&proxies[0], &place, "erased", 1).await;
    let stays = new_tenant(&proxies[1], &place, "stays", 2).await;
    let session = format!(
        "SELECT convert_from(name, 'UTF8') FROM trimtab.sessions
         WHERE convert_from(name, 'UTF8') LIKE 'proxy/{erased}/messages/%' AND log > 0"
    );
    let session = sql(&place, &session).replace('/', "%2F");
    let page = format!("/dashboard/api/messages?id={session}");
    let seen = get(&proxies[0].url, &page, &[]).await;
    assert!(text(&seen).contains("session 1"), "{}", text(&seen));
    let objects_before = objects.object_count(bucket).unwrap();
    assert!(objects_before >= 2, "both have large outputs");
    let folder = tempfile::tempdir().unwrap();
    let erase = ["output", "erase", "--tenant", &erased, "--yes"];
    let stores = ["--store", &place.database, "--blobs", &place.blobs];
    let done = finished(folder.path(), &[&erase[..], &stores].concat());
    assert!(done.status.success(), "{}", texts(&done).1);
    assert_eq!(tenants(&place), BTreeSet::from([stays]));
    let left = "SELECT (SELECT count(*) FROM trimtab.blobs WHERE NOT EXISTS
            (SELECT FROM trimtab.outputs WHERE whole = blobs.id OR text = blobs.id))
        + (SELECT count(*) FROM trimtab.chunks WHERE NOT EXISTS
            (SELECT FROM trimtab.blobs WHERE blobs.body = chunks.body))";
    assert_eq!(sql(&place, left), "0", "no bytes without an output");
    let named = sql(
        &place,
        "SELECT count(*) FROM trimtab.blobs WHERE in_object_store",
    );
    let objects_after = objects.object_count(bucket).unwrap();
    assert_eq!(objects_after.to_string(), named, "no object without a row");
    assert!(objects_after < objects_before);
    let seen = get(&proxies[0].url, &page, &[]).await;
    assert_eq!(seen.status, 404, "in memory: {}", text(&seen));
    // A proxy that has the session in memory starts it over.
    let again = converse(&proxies[0], "erased", 1).await;
    assert_eq!(again.header("x-trimtab-reason"), "");
    assert!(tenants(&place).contains(&erased));
    assert!(provider.violations().is_empty());
}
