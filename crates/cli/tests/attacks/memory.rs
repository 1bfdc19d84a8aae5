//! Decompression bombs, many large bodies at once, many sessions: memory stays bounded, and
//! requests pass through unchanged.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;

use crate::is_long_run;
use crate::process::{peak_resident_bytes, resident_bytes};
use crate::run::say;
use crate::sockets::{
    PlainUpstream, Prober, address, can_open_files, digest, post, serve, status, until,
};

const MIB: u64 = 1 << 20;
/// What the process may take in all with the default budget.
const MOST: u64 = 512 * MIB;
/// The length of a compressed body, and how many are sent at once.
const PACKED: usize = 490 << 10;
const AT_ONCE: usize = 30;

/// A conversation with a call whose output makes it about so long.
fn conversation(name: &str, bytes: usize) -> Vec<u8> {
    let mut output = String::new();
    let mut line = 0_u64;
    while output.len() < bytes {
        writeln!(
            output,
            "{name} line {line}: value {}",
            line * 7_919 % 10_007
        )
        .unwrap();
        line += 1;
    }
    let body = json!({
        "model": "claude-sonnet-4-5", "max_tokens": 100,
        "messages": [
            {"role": "user", "content": format!("read the log of {name}")},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "c1", "name": "read_log", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": output}]},
        ],
    });
    body.to_string().into_bytes()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A compressed body of [`PACKED`] bytes that unpacks to several hundred times as much.
fn bomb(pack: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let piece = pack(&vec![b' '; 1 << 20]);
    let mut bomb = Vec::new();
    while bomb.len() < PACKED {
        bomb.extend_from_slice(&piece);
    }
    bomb
}

/// Sends bodies at once, and gives the answers.
async fn post_all(to: SocketAddr, more: &str, bodies: Vec<Vec<u8>>) -> Vec<String> {
    let mut sending = JoinSet::new();
    for (at, body) in bodies.into_iter().enumerate() {
        // Several tenants, so that more than the share of one is taken.
        let more = format!("authorization: Bearer {}\r\n{more}", at % 8);
        sending.spawn(async move { post(to, "/v1/messages", &more, &body).await });
    }
    sending.join_all().await
}

#[tokio::test(flavor = "multi_thread")]
async fn decompression_bombs_pass_through_with_little_memory() {
    let upstream = PlainUpstream::start().await;
    let served = serve("", &upstream);
    let to = address(&served);
    // What as many plain requests of the same length cost.
    let plain = (0..AT_ONCE).map(|at| conversation(&format!("plain {at}"), PACKED));
    post_all(to, "", plain.collect()).await;
    let normal = peak_resident_bytes(served.process_id());
    let attacks = [
        ("content-encoding: gzip\r\n", bomb(gzip)),
        (
            "content-encoding: zstd\r\n",
            bomb(|bytes| zstd::encode_all(bytes, 3).unwrap()),
        ),
        // Valid, and under the ratio that is allowed: it unpacks to some 10 MB.
        (
            "content-encoding: gzip\r\n",
            gzip(&conversation("packed", 10 << 20)),
        ),
    ];
    let prober = Prober::start(to);
    for (more, body) in attacks {
        let before = upstream.received().len();
        let answers = post_all(to, more, vec![body.clone(); AT_ONCE]).await;
        for answer in &answers {
            assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        }
        let received = upstream.received();
        assert_eq!(received.len() - before, AT_ONCE);
        let untouched = received.iter().filter(|one| **one == digest(&body)).count();
        let passed = answers
            .iter()
            .filter(|answer| answer.contains("x-trimtab-action: passed"))
            .count();
        let peak = peak_resident_bytes(served.process_id());
        say(&format!(
            "{AT_ONCE} bodies of {} KB, {more:?}: peak {} MB, plain ones {} MB, {passed} passed",
            body.len() >> 10,
            peak / MIB,
            normal / MIB,
        ));
        assert!(untouched >= passed);
        assert!(peak <= MOST, "{peak}");
    }
    prober.end("compressed bodies").await;
    until("only conversations are kept", || async {
        let used = status(to).await["memory_bytes"].as_u64().unwrap();
        used <= 128 * MIB
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_large_bodies_stay_within_the_budget() {
    let upstream = PlainUpstream::start().await;
    let served = serve("plan_ms = 60000", &upstream);
    let to = address(&served);
    let prober = Prober::start(to);
    let many = if is_long_run() { 200 } else { 40 };
    let bodies: Vec<Vec<u8>> = (0..many)
        .map(|at| conversation(&format!("large {at}"), 12 << 20))
        .collect();
    let answers = post_all(to, "", bodies).await;
    let over = answers
        .iter()
        .filter(|answer| answer.contains("x-trimtab-reason: memory"));
    let over = over.count();
    assert!(
        answers
            .iter()
            .all(|answer| answer.starts_with("HTTP/1.1 200 "))
    );
    // All of them may wait for each other until they pass.
    assert!(over > 0, "none of {many}");
    until("all of them are counted", || async {
        status(to).await["over_memory"] == over
    })
    .await;
    until("a large body is managed again", || async {
        let answers = post_all(to, "", vec![conversation("large 0", 12 << 20)]).await;
        !answers[0].contains("x-trimtab-reason: memory")
    })
    .await;
    prober.end("many large bodies").await;
    let peak = peak_resident_bytes(served.process_id());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let now = resident_bytes(served.process_id());
    say(&format!(
        "{many} bodies of 12 MB at once: peak {} MB, then {} MB; {over} passed for want of memory",
        peak / MIB,
        now / MIB
    ));
    assert!(peak <= MOST, "{peak}");
}

#[tokio::test(flavor = "multi_thread")]
async fn body_over_the_budget_passes_untouched() {
    let upstream = PlainUpstream::start().await;
    let served = serve("memory_bytes = 1048576", &upstream);
    let to = address(&served);
    for bytes in [400 << 10, 3 << 20, 20 << 20] {
        let body = conversation("over", bytes);
        let answer = post(to, "/v1/messages", "", &body).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(answer.contains("x-trimtab-action: passed"), "{answer}");
        assert!(answer.contains("x-trimtab-reason: memory"), "{answer}");
        assert_eq!(upstream.received().last(), Some(&digest(&body)));
        served.wait_for("\"reason\":\"memory\"");
    }
    let figures = status(to).await;
    assert_eq!(
        (&figures["over_memory"], &figures["failed_open"]),
        (&json!(3), &json!(3))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn many_sessions_stay_within_the_budget() {
    if !can_open_files(1_024) {
        return;
    }
    let upstream = PlainUpstream::start().await;
    let served = serve("plan_ms = 60000", &upstream);
    let to = address(&served);
    post(to, "/v1/messages", "", &conversation("first", 64 << 10)).await;
    let before = resident_bytes(served.process_id());
    let (many, bytes) = if is_long_run() {
        (5_000, 64 << 10)
    } else {
        (400, 64 << 10)
    };
    for first in (0..many).step_by(20) {
        let bodies = (first..first + 20).map(|at| conversation(&format!("session {at}"), bytes));
        post_all(to, "", bodies.collect()).await;
    }
    let figures = status(to).await;
    let counted = figures["memory_bytes"].as_u64().unwrap();
    let grown = resident_bytes(served.process_id()).saturating_sub(before);
    let peak = peak_resident_bytes(served.process_id());
    say(&format!(
        "{many} sessions of {} KB: {} in memory, counted {} MB, grown by {} MB, peak {} MB",
        bytes >> 10,
        figures["sessions"],
        counted / MIB,
        grown / MIB,
        peak / MIB
    ));
    assert!(peak <= MOST, "{peak}");
    assert!(counted <= 256 * MIB, "{counted}");
}
