//! Several proxies with one PostgreSQL database and one object store.

mod encryption;
mod failover;
mod faults;
mod proxies;
mod retention;
mod tenants;
mod verbs;

use serde_json::Value;
use trimtab_model::Dialect;
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::servers::{FaultyRelay, ObjectServer, PostgresServer};
use trimtab_testkit::upstream::{ReplySource, Upstream, UpstreamOptions};

use crate::run::Served;
use crate::talk::{log, with_call, with_output};

/// The dialect of all conversations here. Other tests compare the dialects.
const DIALECT: Dialect = Dialect::Messages;

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
    Some(place_in(PostgresServer::shared()?))
}

/// A place with a new database of `server`.
fn place_in(server: &PostgresServer) -> SharedPlace {
    let database = server.new_database().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let bucket = ObjectServer::shared().map(|server| server.new_bucket().unwrap());
    let blobs = match (&bucket, ObjectServer::shared()) {
        (Some(bucket), Some(server)) => ObjectServer::url(bucket, server.address()),
        _ => format!("file://{}", folder.path().display()),
    };
    SharedPlace {
        database,
        blobs,
        bucket,
        _folder: folder,
    }
}

/// A place whose database is reached through a relay.
fn relayed_database() -> Option<(SharedPlace, FaultyRelay)> {
    PostgresServer::shared().map(relayed_place)
}

fn relayed_place(server: &PostgresServer) -> (SharedPlace, FaultyRelay) {
    let mut place = place_in(server);
    let relay = FaultyRelay::start(server.address()).unwrap();
    let (direct, relayed) = (server.address().to_string(), relay.address().to_string());
    place.database = place.database.replace(&direct, &relayed);
    (place, relay)
}

/// A model that reports usage, so that each proxy learns how it counts.
async fn upstream() -> Upstream {
    let options = UpstreamOptions::new(ReplySource::with(|_| ScriptedReply::text("I see.")));
    Upstream::start(options).await.unwrap()
}

/// A proxy with the usual limits.
fn serve_as_usual(upstream: &Upstream, place: &SharedPlace) -> Served {
    let url = upstream.url();
    let (store, blobs) = (place.database.as_str(), place.blobs.as_str());
    Served::start(&["--upstream", &url, "--store", store, "--blobs", blobs])
}

/// A proxy with time, places and memory for every request.
fn serve(upstream: &Upstream, place: &SharedPlace) -> Served {
    let (store, blobs) = (place.database.as_str(), place.blobs.as_str());
    serve_patiently(upstream, &["--store", store, "--blobs", blobs])
}

/// The same with these flags: the machine may be busy with other tests.
fn serve_patiently(upstream: &Upstream, flags: &[&str]) -> Served {
    let limits = [
        "--set",
        "proxy.limits.plan_ms=300000",
        "--set",
        "proxy.limits.plans=4096",
        "--set",
        "proxy.limits.memory_bytes=2000000000",
        "--set",
        "proxy.limits.tenant_memory_bytes=2000000000",
    ];
    let url = upstream.url();
    Served::start(&[&["--upstream", &url][..], flags, &limits].concat())
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

/// The first request of a session. Its first message tells it from the others.
fn new_conversation(session: u64) -> Value {
    let mut body = with_output(DIALECT, 800);
    body["messages"][0]["content"] = format!("read the log of session {session}").into();
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
