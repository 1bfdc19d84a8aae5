//! Clients that connect and do nothing, send forever, never read, or disconnect.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::process;
use crate::run::{PATIENCE, say};
use crate::sockets::{
    BIG, PlainUpstream, Prober, address, can_open_files, head, post, post_head, rest, send, serve,
    status, until,
};

/// More than the proxy has places for by default.
const CROWD: usize = 1_100;
/// Files that such a crowd takes here and in the proxy.
const FILES: u64 = 4_096;

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_lock_nobody_out() {
    if !can_open_files(FILES) {
        return;
    }
    let upstream = PlainUpstream::start().await;
    let served = serve("", &upstream);
    let to = address(&served);
    let prober = Prober::start(to);
    let mut crowd = Vec::new();
    for _ in 0..CROWD {
        crowd.push(TcpStream::connect(to).await.unwrap());
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    prober.end("silent connections").await;
    let places = status(to).await["connections"].as_u64().unwrap();
    assert!(places <= 1_024, "{places}");
    // The oldest had to go, the newest are still there.
    let mut byte = [0];
    let oldest = tokio::time::timeout(PATIENCE, crowd[0].read(&mut byte)).await;
    assert!(matches!(oldest.expect("it is closed"), Ok(0) | Err(_)));
    let newest = crowd.last_mut().unwrap();
    let asked = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    newest.write_all(asked.as_bytes()).await.unwrap();
    assert!(rest(newest).await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_never_end_lock_nobody_out() {
    if !can_open_files(FILES) {
        return;
    }
    let upstream = PlainUpstream::start().await;
    let served = serve("", &upstream);
    let to = address(&served);
    let prober = Prober::start(to);
    let mut crowd = Vec::new();
    for at in 0..CROWD {
        let path = ["/v1/messages", "/v1/other"][at % 2];
        crowd.push(send(to, post_head(path, 1 << 20, "") + "{\"messages\":").await);
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    prober.end("bodies that never end").await;
}

/// What a crowd of connections that send `begun` adds to the memory and the threads of a proxy.
async fn cost_of_crowd(begun: &str) -> (u64, u64) {
    let upstream = PlainUpstream::start().await;
    let served = serve("", &upstream);
    let to = address(&served);
    status(to).await;
    let process = served.process_id();
    let threads = || process::status_kib(process, "Threads:");
    let before = (process::resident_bytes(process), threads());
    let prober = Prober::start(to);
    let mut crowd = Vec::new();
    for _ in 0..CROWD {
        crowd.push(send(to, begun).await);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    prober.end(begun.lines().next().unwrap_or("silence")).await;
    let memory = process::peak_resident_bytes(process).saturating_sub(before.0);
    let cost = (memory, threads().saturating_sub(before.1));
    say(&format!("{} KiB, {} threads", cost.0 >> 10, cost.1));
    cost
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_without_credentials_cost_what_silence_costs() {
    if !can_open_files(FILES) {
        return;
    }
    let silent = cost_of_crowd("").await;
    let head = post_head("/v1/messages", 1 << 20, "").replace("x-api-key: k\r\n", "");
    let begun = cost_of_crowd(&(head + "{\"messages\":")).await;
    // A head and the state of a request take some KiB.
    assert!(begun.0 < silent.0 + (64 << 20), "{begun:?} {silent:?}");
    assert!(begun.1 <= silent.1 + 4, "{begun:?} {silent:?}");
}

#[tokio::test]
async fn dripping_request_head_is_disconnected() {
    let upstream = PlainUpstream::start().await;
    let served = serve("header_ms = 500", &upstream);
    let mut silent = TcpStream::connect(address(&served)).await.unwrap();
    assert_eq!(rest(&mut silent).await, "");
    let (mut reader, mut writer) = TcpStream::connect(address(&served))
        .await
        .unwrap()
        .into_split();
    let dripping = tokio::spawn(async move {
        let head = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-long: "
            .iter()
            .chain(std::iter::repeat(&b'x'));
        for byte in head {
            if writer.write_all(&[*byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let mut got = Vec::new();
    let reading = tokio::time::timeout(PATIENCE, reader.read_to_end(&mut got)).await;
    drop(reading.expect("it is cut"));
    assert_eq!(got, b"");
    dripping.abort();
}

#[tokio::test]
async fn slow_body_is_kept_and_stalled_body_gets_408() {
    let upstream = PlainUpstream::start().await;
    let served = serve("body_idle_ms = 2000", &upstream);
    for path in ["/v1/messages", "/v1/other"] {
        // Slower than the limit in all, but never silent for so long.
        let mut slow = send(address(&served), post_head(path, 30, "")).await;
        for _ in 0..30 {
            slow.write_all(b"x").await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let got = rest(&mut slow).await;
        assert!(got.starts_with("HTTP/1.1 200 "), "{got}");
        let mut dead = send(address(&served), post_head(path, 30, "") + "xx").await;
        let got = rest(&mut dead).await;
        assert!(got.starts_with("HTTP/1.1 408 "), "{got}");
        assert!(got.contains("the request body did not go on"), "{got}");
    }
    assert_eq!(upstream.received().len(), 2);
}

#[tokio::test]
async fn idle_connection_is_closed_cleanly_after_keep_alive() {
    let upstream = PlainUpstream::start().await;
    let served = serve("keep_alive_ms = 3000\nheader_ms = 300", &upstream);
    let asked = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut stream = send(address(&served), asked).await;
    let first = head(&mut stream).await;
    assert!(first.starts_with("http/1.1 200 "), "{first}");
    let mut body = [0; 15];
    stream.read_exact(&mut body).await.unwrap();
    // Longer than a head may take, and the connection is still good.
    tokio::time::sleep(Duration::from_secs(1)).await;
    stream.write_all(asked.as_bytes()).await.unwrap();
    let begun = Instant::now();
    let mut got = Vec::new();
    let reading = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut got)).await;
    // An end, not a reset.
    reading.expect("it is closed").unwrap();
    assert!(got.starts_with(b"HTTP/1.1 200 "));
    assert!(begun.elapsed() >= Duration::from_millis(2_900));
}

#[tokio::test(flavor = "multi_thread")]
async fn stalled_reader_is_disconnected_and_slow_reader_is_kept() {
    let upstream = PlainUpstream::start().await;
    let served = serve("answer_stall_ms = 2000", &upstream);
    let to = address(&served);
    let asked = "GET /big HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let dead = send(to, asked).await;
    let mut slow = send(to, asked).await;
    let reading = tokio::spawn(async move {
        let (mut got, mut buffer) = (0, vec![0; 256 << 10]);
        while let Ok(read @ 1..) = slow.read(&mut buffer).await {
            got += read;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        got
    });
    let got = reading.await.unwrap();
    assert!(got > BIG, "{got}");
    until("the dead reader is cut", || async {
        status(to).await["connections"] == 1
    })
    .await;
    drop(dead);
}

const WEBSOCKET: &str = "GET /v1/realtime HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\n\
    upgrade: websocket\r\nsec-websocket-key: k\r\nsec-websocket-version: 13\r\n\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn tunnels_count_as_connections() {
    let upstream = PlainUpstream::start().await;
    let served = serve("connections = 20", &upstream);
    let to = address(&served);
    let mut tunnels = Vec::new();
    for _ in 0..20 {
        let mut tunnel = send(to, WEBSOCKET).await;
        assert!(head(&mut tunnel).await.starts_with("http/1.1 101 "));
        tunnels.push(tunnel);
    }
    // There is no place for another one before one of them ends.
    let mut more = send(to, WEBSOCKET).await;
    let early = tokio::time::timeout(Duration::from_millis(500), more.read_u8()).await;
    assert!(early.is_err());
    drop(tunnels.pop());
    assert!(head(&mut more).await.starts_with("http/1.1 101 "));
    // Those that are open were not disturbed.
    for tunnel in &mut tunnels {
        echo(tunnel).await;
    }
}

/// Bytes pass both ways.
async fn echo(tunnel: &mut TcpStream) {
    tunnel.write_all(b"ping").await.unwrap();
    let mut got = [0; 4];
    let reading = tokio::time::timeout(PATIENCE, tunnel.read_exact(&mut got)).await;
    reading.expect("an echo").unwrap();
    assert_eq!(&got, b"ping");
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_tunnel_is_closed() {
    let upstream = PlainUpstream::start().await;
    let served = serve("idle_ms = 1000", &upstream);
    let mut tunnel = send(address(&served), WEBSOCKET).await;
    head(&mut tunnel).await;
    echo(&mut tunnel).await;
    assert_eq!(rest(&mut tunnel).await, "");
    until("the upstream is told", || async {
        upstream.tunnels_closed() == 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tunnels_end_gracefully_at_sigterm() {
    let upstream = PlainUpstream::start().await;
    let served = serve("drain_ms = 30000", &upstream);
    let mut tunnel = send(address(&served), WEBSOCKET).await;
    head(&mut tunnel).await;
    served.signal("TERM");
    // Nobody new gets in, and the tunnel goes on.
    let to = address(&served);
    until("it accepts nothing more", || async {
        TcpStream::connect(to).await.is_err()
    })
    .await;
    for _ in 0..5 {
        echo(&mut tunnel).await;
    }
    tunnel.shutdown().await.unwrap();
    assert_eq!(rest(&mut tunnel).await, "");
    let code = tokio::task::spawn_blocking(move || served.end().0);
    assert_eq!(code.await.unwrap(), 0);
    assert_eq!(upstream.tunnels_closed(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn remaining_tunnel_is_closed_after_the_drain_time() {
    let upstream = PlainUpstream::start().await;
    let served = serve("drain_ms = 500", &upstream);
    let mut tunnel = send(address(&served), WEBSOCKET).await;
    head(&mut tunnel).await;
    served.signal("TERM");
    assert_eq!(rest(&mut tunnel).await, "");
    let code = tokio::task::spawn_blocking(move || served.end().0);
    assert_eq!(code.await.unwrap(), 0);
}

#[tokio::test]
async fn malformed_body_is_answered_with_400() {
    let upstream = PlainUpstream::start().await;
    let served = serve("", &upstream);
    let to = address(&served);
    for path in ["/v1/messages", "/v1/chat/completions", "/v1/other"] {
        let chunked = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             transfer-encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n"
        );
        let got = rest(&mut send(to, chunked).await).await;
        assert!(got.starts_with("HTTP/1.1 400 "), "{path}: {got}");
        assert!(got.contains("the request body is broken"), "{path}: {got}");
        let mut cut = send(to, post_head(path, 100, "") + "half").await;
        cut.shutdown().await.unwrap();
        let got = rest(&mut cut).await;
        assert!(got.starts_with("HTTP/1.1 400 "), "{path}: {got}");
        assert!(!got.contains("cannot be reached"), "{path}: {got}");
    }
    assert_eq!(upstream.received().len(), 0);
    assert!(
        post(to, "/v1/other", "", b"{}")
            .await
            .starts_with("HTTP/1.1 200 ")
    );
}
