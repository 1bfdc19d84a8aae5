//! Accepted requests that fit, directly and through the proxy: upstream and client receive the same
//! bytes and headers, even if the upstream disconnects.

use std::net::SocketAddr;
use std::sync::Arc;

use trimtab_model::Dialect;
use trimtab_proxy::{ProxyConfig, RunningProxy};
use trimtab_store::MemoryStore;

use crate::proxy_with;
use crate::raw_http::{Connection, HangUp, RawUpstream, Read};
use crate::shapes::{Dice, Shape, shape};
use crate::talk::{path, without_our_tools};

/// How many requests are under way at the same time.
const AT_ONCE: usize = 8;
/// After so many requests a new proxy begins with an empty store, which bounds its memory.
const PER_PROXY: usize = 2_000;
/// Every so many requests the upstream hangs up.
const HANGS_UP: u64 = 5;

/// The presets as they are shipped, and a window that everything fits into.
fn settings(upstream: SocketAddr, preset: &str) -> ProxyConfig {
    let toml = format!("preset = {preset:?}\n[[models]]\nmodel = \"*\"\nwindow = 4000000\n");
    let mut config = ProxyConfig::from_toml(&toml).unwrap();
    let base = crate::config(&format!("http://{upstream}"));
    config.upstreams = base.upstreams;
    config.listen = base.listen;
    config.limits.plan_ms = base.limits.plan_ms;
    config
}

async fn start(upstream: SocketAddr, preset: &str) -> (RunningProxy, SocketAddr) {
    let (running, _) = proxy_with(settings(upstream, preset), Arc::new(MemoryStore::new())).await;
    let address = running.address();
    (running, address)
}

/// The answer to a request, which its number decides.
fn answer(asked: &Read) -> (Vec<u8>, HangUp) {
    let number: u64 = asked.header("x-case").parse().unwrap_or(0);
    let mut dice = Dice::new(number ^ 0x5bd1_e995);
    let hang_up = if number.is_multiple_of(HANGS_UP) {
        dice.pick(&[
            HangUp::BeforeHeaders,
            HangUp::InHeaders,
            HangUp::InBody,
            HangUp::InChunk,
            HangUp::BetweenChunks,
            HangUp::InEvent,
        ])
    } else {
        HangUp::Never
    };
    (answer_bytes(&mut dice, hang_up), hang_up)
}

fn answer_bytes(dice: &mut Dice, hang_up: HangUp) -> Vec<u8> {
    let status = dice.pick(&[
        "200 OK",
        "200 OK",
        "200 OK",
        "429 Too Many Requests",
        "500 Internal Server Error",
    ]);
    let headers = "date: Sun, 06 Nov 1994 08:49:37 GMT\r\nx-request-id: req_1\r\nset-cookie: a=1\r\nset-cookie: b=2\r\nretry-after: 1\r\n";
    let json = format!(
        r#"{{"id": "r1", "x": 1.50, "usage": {{}}, "text": {:?}}}"#,
        dice.text()
    );
    let streams = matches!(
        hang_up,
        HangUp::InChunk | HangUp::BetweenChunks | HangUp::InEvent
    );
    let head = |kind: &str, framing: &str| {
        format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{headers}{framing}\r\n\r\n")
    };
    if hang_up == HangUp::BeforeHeaders {
        return Vec::new();
    }
    if streams || (hang_up == HangUp::Never && dice.once_in(2)) {
        let mut bytes = head("text/event-stream", "transfer-encoding: chunked").into_bytes();
        for at in 0..3 {
            let event = format!(
                "event: x\ndata: {{\"n\": {at}, \"text\": {:?}}}\n\n",
                dice.text()
            );
            bytes.extend(format!("{:x}\r\n{event}\r\n", event.len()).bytes());
        }
        match hang_up {
            HangUp::InChunk => bytes.extend(b"40\r\ndata: {\"n\""),
            HangUp::InEvent => bytes.extend(b"a\r\ndata: {\"n\"\r\n"),
            HangUp::BetweenChunks => {}
            _ => bytes.extend(b"0\r\n\r\n"),
        }
        return bytes;
    }
    let mut bytes = head(
        "application/json",
        &format!("content-length: {}", json.len()),
    )
    .into_bytes();
    if hang_up == HangUp::InHeaders {
        bytes.truncate(60);
        return bytes;
    }
    bytes.extend(json.bytes());
    if hang_up == HangUp::InBody {
        bytes.truncate(bytes.len() - 10);
    }
    bytes
}

fn request(number: u64, shape: &Shape, host: SocketAddr) -> Vec<u8> {
    let path = path(shape.dialect);
    let query = if number.is_multiple_of(3) {
        "?beta=true&x=%2F"
    } else {
        ""
    };
    let length = shape.body.len();
    let head = format!(
        "POST {path}{query} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
         authorization: Bearer k{}\r\nx-api-key: k\r\nanthropic-version: 2023-06-01\r\n\
         anthropic-beta: a,b\r\nX-Dup: one\r\nX-Dup: two\r\nuser-agent: Client/1.0 (x; y)\r\n\
         accept: */*\r\ncookie: c=1; d=2\r\nx-case: {number}\r\ncontent-length: {length}\r\n\r\n",
        number % 7
    );
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(&shape.body);
    bytes
}

/// A client with one connection to each address, which it makes anew where it was closed.
struct Client {
    to: SocketAddr,
    connection: Option<Connection>,
}

impl Client {
    async fn ask(&mut self, request: &[u8]) -> Option<Read> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::to(self.to).await.unwrap(),
        };
        let answer = connection.ask(request).await.unwrap();
        if answer.as_ref().is_some_and(|answer| !answer.is_cut) {
            self.connection = Some(connection);
        }
        answer
    }
}

/// How the answers differ, if they do.
fn difference(direct: Option<&Read>, ours: Option<Read>, hang_up: HangUp) -> Option<String> {
    let ours = ours.map(|ours| ours.without(|name| name.starts_with("x-trimtab-")));
    let differ = || Some(format!("direct {direct:?}\nours   {ours:?}"));
    match (direct, &ours) {
        (None, None) => None,
        // A proxy that has begun nothing may say who hung up.
        (None, Some(ours)) => {
            let says = String::from_utf8_lossy(&ours.body).contains("upstream_unreachable");
            let is_gateway = ours.first.starts_with("HTTP/1.1 502");
            if says && is_gateway { None } else { differ() }
        }
        (Some(direct), Some(ours)) if hang_up != HangUp::Never => {
            let same = direct.first == ours.first
                && direct.headers == ours.headers
                && direct.is_cut
                && ours.is_cut
                && direct.body.starts_with(&ours.body);
            if same { None } else { differ() }
        }
        (Some(one), Some(other)) if one == other => None,
        _ => differ(),
    }
}

struct Counts {
    looked_into: usize,
    refused: usize,
    hung_up: usize,
}

/// Asks for each of the numbers, directly and through the proxy.
async fn compare(
    upstream: Arc<RawUpstream>,
    proxy: SocketAddr,
    numbers: impl Iterator<Item = u64>,
) -> Counts {
    let client = |to| Client {
        to,
        connection: None,
    };
    let (mut direct, mut ours) = (client(upstream.address), client(proxy));
    let mut counts = Counts {
        looked_into: 0,
        refused: 0,
        hung_up: 0,
    };
    for number in numbers {
        let shape = shape(number);
        // The proxy names the upstream as its host.
        let request = request(number, &shape, upstream.address);
        let answered = direct.ask(&request).await;
        let received = upstream.take(&number.to_string()).unwrap();
        let through = ours.ask(&request).await;
        let passed = upstream.take(&number.to_string()).unwrap();
        let repairs = through
            .as_ref()
            .map_or("", |read| read.header("x-trimtab-repairs"));
        let (_, hang_up) = answer(&received);
        let without = without_our_tools(shape.dialect, &String::from_utf8_lossy(&passed.body));
        // Reasoning that came without our tools is stale with them.
        let sent = String::from_utf8_lossy(&received.body);
        let is_signed = sent.contains("\"signature\"")
            || sent.contains("redacted_thinking")
            || sent.contains("\"encrypted_content\"");
        let has_our_tools = received.body != passed.body && without.len() < passed.body.len();
        let is_same_body = received.body == without.as_bytes() || (is_signed && has_our_tools);
        // Without headers nobody can be told what was repaired.
        let is_repaired =
            !repairs.is_empty() || matches!(hang_up, HangUp::BeforeHeaders | HangUp::InHeaders);
        assert!(
            is_same_body || (shape.is_refused && is_repaired),
            "case {number} ({:?}, refused: {}, repairs {repairs:?}):\nsent     {}\nreceived {}",
            shape.dialect,
            shape.is_refused,
            String::from_utf8_lossy(&received.body),
            String::from_utf8_lossy(&passed.body),
        );
        // The proxy reads the answer, so it asks for one that is not compressed.
        let leave_out = |name: &str| name == "accept-encoding";
        let (received, passed) = (received.without(leave_out), passed.without(leave_out));
        assert_eq!(
            (received.first, received.headers),
            (passed.first, passed.headers),
            "case {number}"
        );
        let reason = through
            .as_ref()
            .map_or("", |read| read.header("x-trimtab-reason"));
        counts.looked_into += usize::from(reason.is_empty());
        counts.refused += usize::from(!is_same_body);
        counts.hung_up += usize::from(hang_up != HangUp::Never);
        if let Some(how) = difference(answered.as_ref(), through, hang_up) {
            panic!(
                "case {number} ({:?}, {hang_up:?}): the client sees\n{how}",
                shape.dialect
            );
        }
    }
    counts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fitting_accepted_request_passes_byte_for_byte() {
    let count = if trimtab_testkit::is_long() {
        100_000
    } else {
        3_000
    };
    let upstream = Arc::new(RawUpstream::start(answer).await);
    let mut all = Counts {
        looked_into: 0,
        refused: 0,
        hung_up: 0,
    };
    for (round, first) in (0..count).step_by(PER_PROXY).enumerate() {
        let preset = ["steady", "refs"][round % 2];
        let (running, proxy) = start(upstream.address, preset).await;
        let numbers = first..count.min(first + PER_PROXY);
        let clients = (0..AT_ONCE).map(|client| {
            let numbers = numbers.clone().skip(client).step_by(AT_ONCE);
            let numbers = numbers.map(|number| number as u64);
            tokio::spawn(compare(Arc::clone(&upstream), proxy, numbers))
        });
        for client in clients.collect::<Vec<_>>() {
            let counts = client.await.unwrap();
            all.looked_into += counts.looked_into;
            all.refused += counts.refused;
            all.hung_up += counts.hung_up;
        }
        drop(running);
    }
    println!(
        "{count} requests, {} looked into, {} of those refused by their provider and repaired, {} hang-ups: no other difference",
        all.looked_into, all.refused, all.hung_up
    );
    assert!(all.looked_into > count / 2 && all.refused > count / 100 && all.hung_up > count / 10);
}

#[test]
fn shapes_are_the_same_in_every_run() {
    let (one, again) = (shape(17), shape(17));
    assert_eq!(one.body, again.body);
    let dialects: Vec<Dialect> = (0..3).map(|number| shape(number).dialect).collect();
    assert_eq!(dialects, Dialect::ALL);
}
