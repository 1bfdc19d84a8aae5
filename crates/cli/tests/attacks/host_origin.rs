//! DNS rebinding and foreign web pages: none of them reaches a model.

use serde_json::json;

use crate::access::{TOKEN, get, model, post, raw, serve, text};

/// The first line of an answer.
fn status(answer: &str) -> &str {
    answer.lines().next().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_host_reaches_no_upstream() {
    let upstream = model().await;
    let served = serve(&upstream, "", &[]);
    let paths = [
        "/v1/models",
        "/anything",
        "/healthz",
        "/trimtab/status",
        "/v1/retrieve/x",
    ];
    for host in [
        "evil.test",
        "localhost.evil.test:8787",
        "0.0.0.0:8787",
        "127.0.0.1.evil.test",
    ] {
        for path in paths {
            let request =
                format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            let answer = raw(&served.url, &request).await;
            assert!(status(&answer).contains(" 403 "), "{host} {path}: {answer}");
        }
        let request = format!(
            "POST /v1/messages HTTP/1.1\r\nHost: {host}\r\nx-api-key: k\r\n\
             Content-Length: 2\r\nConnection: close\r\n\r\n{{}}"
        );
        let answer = raw(&served.url, &request).await;
        assert!(status(&answer).contains(" 403 "), "{host}: {answer}");
    }
    assert!(upstream.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn second_host_in_a_request_is_checked() {
    let upstream = model().await;
    let served = serve(&upstream, "", &[]);
    for head in [
        "GET http://evil.test/v1/models HTTP/1.1\r\nHost: localhost\r\n",
        "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nHost: evil.test\r\n",
        "GET /v1/models HTTP/1.1\r\n",
        "GET /v1/models HTTP/1.0\r\n",
    ] {
        let answer = raw(&served.url, &format!("{head}Connection: close\r\n\r\n")).await;
        let line = status(&answer);
        assert!(
            line.contains(" 403 ") || line.contains(" 400 "),
            "{head}: {answer}"
        );
    }
    assert!(upstream.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_host_error_names_the_setting() {
    let upstream = model().await;
    let served = serve(&upstream, "", &[]);
    let host = [("host", "host.docker.internal:8787")];
    let answer = get(&served.url, "/v1/models", &host).await;
    assert_eq!(answer.status, 403);
    let said = text(&answer);
    assert!(
        said.contains("host.docker.internal") && said.contains("proxy.hosts"),
        "{said}"
    );
    let served = serve(
        &upstream,
        "[proxy]\nhosts = [\"host.docker.internal\"]\n",
        &[],
    );
    assert_eq!(get(&served.url, "/healthz", &host).await.status, 200);
    for name in ["localhost", "127.0.0.1:1", "[::1]:8787"] {
        assert_eq!(
            get(&served.url, "/healthz", &[("host", name)]).await.status,
            200,
            "{name}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_foreign_origins_are_refused() {
    let upstream = model().await;
    let served = serve(
        &upstream,
        "[proxy]\norigins = [\"vscode-file://vscode-app\"]\n",
        &[],
    );
    let body =
        json!({"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "q"}]});
    let key = ("x-api-key", "k");
    for origin in [
        "http://localhost:3000",
        "http://evil.test",
        "https://127.0.0.1",
        "app://obsidian.md",
        "null",
    ] {
        let headers = [key, ("origin", origin)];
        let answer = post(&served.url, "/v1/messages", &headers, &body).await;
        assert_eq!(answer.status, 403, "{origin}");
        let said = text(&answer);
        assert!(
            said.contains("proxy.origins") && said.contains("x-trimtab-token"),
            "{said}"
        );
        assert_eq!(
            get(&served.url, "/trimtab/status", &headers).await.status,
            403
        );
    }
    assert!(upstream.requests().is_empty());
    let version = ("anthropic-version", "2023-06-01");
    for origin in ["vscode-file://vscode-app", served.url.as_str()] {
        let headers = [key, version, ("origin", origin)];
        let answer = post(&served.url, "/v1/messages", &headers, &body).await;
        assert_eq!(answer.status, 200, "{origin}: {}", text(&answer));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cross_site_requests_without_an_origin_are_refused() {
    let upstream = model().await;
    let served = serve(&upstream, "", &[]);
    for site in ["cross-site", "same-site"] {
        for path in ["/v1/models", "/trimtab/status"] {
            let answer = get(&served.url, path, &[("sec-fetch-site", site)]).await;
            assert_eq!(answer.status, 403, "{site} {path}");
        }
    }
    assert!(upstream.requests().is_empty());
    for site in ["none", "same-origin"] {
        let answer = get(&served.url, "/trimtab/status", &[("sec-fetch-site", site)]).await;
        assert_eq!(answer.status, 200, "{site}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn page_with_a_token_is_accepted() {
    let upstream = model().await;
    let served = serve(&upstream, &format!("[proxy]\ntoken = \"{TOKEN}\"\n"), &[]);
    let page = ("origin", "app://obsidian.md");
    let with = [
        page,
        ("x-trimtab-token", TOKEN),
        ("sec-fetch-site", "cross-site"),
    ];
    assert_eq!(get(&served.url, "/trimtab/status", &with).await.status, 200);
    assert_eq!(
        get(&served.url, "/trimtab/status", &[page]).await.status,
        403
    );
    // A page that was led here does not get in by a token either.
    let led = [("host", "evil.test"), ("x-trimtab-token", TOKEN)];
    assert_eq!(get(&served.url, "/trimtab/status", &led).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn websocket_of_a_foreign_page_is_refused() {
    let upstream = model().await;
    let served = serve(&upstream, "", &[]);
    let host = served.url.strip_prefix("http://").unwrap();
    let request = format!(
        "GET /v1/realtime HTTP/1.1\r\nHost: {host}\r\nOrigin: http://evil.test\r\n\
         Upgrade: websocket\r\nConnection: upgrade, close\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    let answer = raw(&served.url, &request).await;
    assert!(status(&answer).contains(" 403 "), "{answer}");
    assert!(upstream.requests().is_empty());
}

#[test]
fn wildcard_origins_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    for origin in ["*", "null", "http://*", "app.example"] {
        let setting = format!("proxy.origins=[\"{origin}\"]");
        let output = crate::run::finished(folder.path(), &["serve", "--set", &setting]);
        let (_, stderr) = crate::run::texts(&output);
        assert_eq!(output.status.code(), Some(2), "{origin}: {stderr}");
        assert!(
            stderr.contains("origins[0]") && stderr.contains("hint: "),
            "{stderr}"
        );
    }
}
