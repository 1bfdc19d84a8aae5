//! Unmanaged requests pass through unchanged.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use trimtab_proxy::{Proxy, ProxyConfig, ProxyMode, Secret};

use crate::fake::{Reply, Upstream, get, post, send};
use crate::{config, proxy};

#[tokio::test]
async fn every_endpoint_passes() {
    let upstream = Upstream::start(|_, asked| {
        let mut reply = Reply::json(201, format!("{} {}", asked.method, asked.path));
        reply.headers.push(("x-request-id", "r-1".to_owned()));
        reply
    })
    .await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    let got = get(
        &base,
        "/v1/models?after=x&limit=2",
        &[("authorization", "Bearer k")],
    )
    .await;
    assert_eq!(got.status, 201);
    assert_eq!(got.text(), "GET /v1/models?after=x&limit=2");
    assert_eq!(got.header("x-request-id"), "r-1");
    assert_eq!(
        (
            got.header("x-trimtab-action"),
            got.header("x-trimtab-reason")
        ),
        ("passed", "endpoint")
    );
    let seen = upstream.seen();
    assert_eq!(seen[0].headers["authorization"], "Bearer k");
    assert_eq!(seen[0].headers["host"], upstream.address.to_string());

    let odd = Request::delete(format!("{base}/v1/files/f%20x?y=%2F"))
        .body(Full::new(Bytes::from_static(b"\x00\xff")))
        .unwrap();
    let got = send(odd).await.unwrap();
    assert_eq!(got.text(), "DELETE /v1/files/f%20x?y=%2F");
    assert_eq!(upstream.seen()[1].body, Bytes::from_static(b"\x00\xff"));
}

#[tokio::test]
async fn malformed_bodies_pass_through_unchanged() {
    let upstream = Upstream::start(|_, _| Reply::json(400, r#"{"error":"bad"}"#)).await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    let bodies: [&[u8]; 5] = [
        b"{\"messages\": [",
        b"",
        b"\xff\xfe",
        b"[1,2]",
        b"{\"messages\": 7}",
    ];
    for body in bodies {
        for path in ["/v1/chat/completions", "/v1/messages", "/v1/responses"] {
            let got = post(&base, path, &[], body).await;
            assert_eq!(got.status, 400);
            assert_eq!(got.text(), r#"{"error":"bad"}"#);
            assert_eq!(upstream.seen().last().unwrap().body, body);
        }
    }
}

#[tokio::test]
async fn long_and_compressed_bodies_pass_through_unchanged() {
    let upstream = Upstream::start(|_, _| Reply::json(200, "{}")).await;
    let mut settings = config(&upstream.url());
    settings.limits.body_bytes = 10_000;
    let (_running, base) = proxy(settings).await;
    let long = vec![b'x'; 300_000];
    let got = post(&base, "/v1/chat/completions", &[], long.clone()).await;
    assert_eq!(got.header("x-trimtab-reason"), "body-too-long");
    assert_eq!(upstream.seen()[0].body, long);

    // Eight megabytes of zeros in a few kilobytes.
    let bomb = zstd::encode_all(vec![0; 8 << 20].as_slice(), 3).unwrap();
    let got = post(
        &base,
        "/v1/messages",
        &[("content-encoding", "zstd")],
        bomb.clone(),
    )
    .await;
    assert_eq!(
        (got.status.as_u16(), got.header("x-trimtab-reason")),
        (200, "encoding")
    );
    assert_eq!(upstream.seen()[1].body, bomb);
    assert_eq!(upstream.seen()[1].headers["content-encoding"], "zstd");
}

#[tokio::test]
async fn streams_are_not_delayed() {
    let upstream = Upstream::start(|_, _| {
        let mut reply = Reply::stream("");
        reply.pieces = vec![
            (0, Bytes::from_static(b"data: {\"choices\":[]}\n\n")),
            // Long after the test is over.
            (600_000, Bytes::from_static(b"data: [DONE]\n\n")),
        ];
        reply
    })
    .await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    let client: hyper_util::client::legacy::Client<_, Full<Bytes>> =
        hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new())
            .build_http();
    let body = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"q"}]}"#;
    let request = Request::post(format!("{base}/v1/chat/completions"))
        .body(Full::from(body))
        .unwrap();
    let mut response = client.request(request).await.unwrap();
    let first = http_body_util::BodyExt::frame(response.body_mut());
    let first = tokio::time::timeout(Duration::from_mins(1), first).await;
    let first = first.expect("it is held up").unwrap().unwrap();
    assert_eq!(first.into_data().unwrap(), "data: {\"choices\":[]}\n\n");
}

#[tokio::test]
async fn unreachable_upstream_gives_502() {
    let (_running, base) = proxy(config("http://127.0.0.1:9")).await;
    let got = post(&base, "/v1/messages", &[], "{}").await;
    assert_eq!(got.status, 502);
    assert!(got.text().contains("cannot be reached"));
}

const TOKEN: &str = "0f8fad5bd9cb469fa16570867728950e";

#[tokio::test]
async fn remote_clients_need_a_token() {
    let open = ProxyConfig {
        listen: "0.0.0.0:0".parse().unwrap(),
        ..ProxyConfig::default()
    };
    let store = std::sync::Arc::new(trimtab_store::MemoryStore::new());
    let refused = Proxy::start(open, store).await.err().unwrap().to_string();
    assert!(
        refused.contains("listen = 0.0.0.0:0") && refused.contains("token"),
        "{refused}"
    );

    let upstream = Upstream::start(|_, _| Reply::json(200, "{}")).await;
    let guarded = ProxyConfig {
        token: Some(Secret::new(TOKEN)),
        ..config(&upstream.url())
    };
    let (_running, base) = proxy(guarded).await;
    let (path, bearer) = ("/v1/models", format!("Bearer {TOKEN}"));
    assert_eq!(get(&base, path, &[]).await.status, 401);
    assert_eq!(
        get(&base, path, &[("authorization", &bearer)]).await.status,
        401
    );
    assert_eq!(
        get(&base, path, &[("x-trimtab-token", TOKEN)]).await.status,
        200
    );
    let status = "/trimtab/status";
    assert_eq!(get(&base, status, &[]).await.status, 401);
    let own = get(&base, status, &[("authorization", &bearer)]).await;
    assert_eq!(own.status, 200);
    assert_eq!(get(&base, "/healthz", &[]).await.status, 200);
    let seen = upstream.seen();
    assert_eq!(seen.len(), 1);
    assert!(!seen[0].headers.contains_key("x-trimtab-token"));
}

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused() {
    let upstream = Upstream::start(|_, _| Reply::json(200, "{}")).await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    for host in ["evil.test", "localhost.evil.test", "127.0.0.1.evil.test:80"] {
        for path in ["/healthz", "/trimtab/status", "/v1/models"] {
            assert_eq!(
                get(&base, path, &[("host", host)]).await.status,
                403,
                "{host}"
            );
        }
    }
    assert!(upstream.seen().is_empty());
    let page = [("origin", "http://evil.test")];
    assert_eq!(get(&base, "/trimtab/status", &page).await.status, 403);
    assert_eq!(post(&base, "/v1/messages", &page, "{}").await.status, 403);
    assert_eq!(get(&base, "/healthz", &[]).await.status, 200);
    for header in [
        "x-trimtab-base-url",
        "x-upstream",
        "x-forwarded-host",
        "forwarded",
    ] {
        let got = get(&base, "/v1/models", &[(header, "http://evil.test")]).await;
        assert_eq!(got.status, 200);
    }
}

#[tokio::test]
async fn settings_can_be_reloaded_under_load() {
    let one = Upstream::start(|_, _| {
        let mut reply = Reply::stream("");
        let piece = || (100, Bytes::from_static(b"data: {\"choices\":[]}\n\n"));
        reply.pieces = vec![piece(), piece(), piece()];
        reply
    })
    .await;
    let other = Upstream::start(|_, _| Reply::json(200, "other")).await;
    let (running, base) = proxy(config(&one.url())).await;
    let slow = tokio::spawn({
        let base = base.clone();
        async move { post(&base, "/v1/chat/completions", &[], "{\"messages\":[]}").await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    running.reload(config(&other.url())).unwrap();
    assert_eq!(get(&base, "/v1/models", &[]).await.text(), "other");
    let slow = slow.await.unwrap();
    assert_eq!(slow.text().matches("data:").count(), 3);
    assert!(
        running
            .reload(ProxyConfig {
                holdout: 7.0,
                ..config("http://x.test")
            })
            .is_err()
    );
}

#[tokio::test]
async fn open_streams_end_before_the_proxy_does() {
    let upstream = Upstream::start(|_, _| {
        let mut reply = Reply::stream("");
        let piece = || (80, Bytes::from_static(b"data: {\"choices\":[]}\n\n"));
        reply.pieces = vec![piece(), piece(), piece(), piece()];
        reply
    })
    .await;
    let (running, base) = proxy(config(&upstream.url())).await;
    let streams: Vec<_> = (0..40)
        .map(|_| {
            let base = base.clone();
            tokio::spawn(async move {
                post(&base, "/v1/chat/completions", &[], "{\"messages\":[]}").await
            })
        })
        .collect();
    while upstream.seen().len() < 40 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    running.shutdown().await;
    for stream in streams {
        let got = stream.await.unwrap();
        assert!(!got.broken);
        assert_eq!(got.text().matches("data:").count(), 4);
    }
    let after = Request::get(format!("{base}/healthz"))
        .body(Full::default())
        .unwrap();
    assert!(send(after).await.is_none());
}

#[tokio::test]
async fn bypassed_requests_are_not_parsed() {
    let upstream = Upstream::start(|_, _| Reply::json(200, "{}")).await;
    let (running, base) = proxy(config(&upstream.url())).await;
    let body = "{ \"messages\" : [ { \"role\":\"user\",\"content\":\"q\" } ] }";
    let got = post(
        &base,
        "/v1/chat/completions",
        &[("x-trimtab-mode", "bypass")],
        body,
    )
    .await;
    assert_eq!(got.header("x-trimtab-reason"), "bypass");
    running
        .reload(ProxyConfig {
            mode: ProxyMode::Bypass,
            ..config(&upstream.url())
        })
        .unwrap();
    let got = post(&base, "/v1/chat/completions", &[], body).await;
    assert_eq!(got.header("x-trimtab-reason"), "bypass");
    assert!(upstream.seen().iter().all(|asked| asked.text() == body));
}

#[tokio::test]
async fn interrupted_upstream_stream_is_interrupted_for_the_client() {
    let events = "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";
    let upstream = Upstream::start(move |_, _| Reply::stream(events).cut()).await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    let body = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"q"}]}"#;
    let got = post(&base, "/v1/chat/completions", &[], body).await;
    assert_eq!((got.status.as_u16(), got.broken), (200, true));
    assert_eq!(got.text(), events);
}
