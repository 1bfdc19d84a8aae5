//! A WebSocket is refused on model paths and tunnelled elsewhere.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::{config, proxy};

/// Reads the head of a message.
async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap().to_ascii_lowercase()
}

/// An upstream that agrees to every WebSocket and gives back what it gets, in capitals.
async fn loud() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connected = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connected);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let asked = head(&mut stream).await;
                assert!(
                    asked.contains("upgrade: websocket") && asked.contains("sec-websocket-key: k")
                );
                assert!(asked.contains("authorization: bearer k") && !asked.contains("x-trimtab"));
                let agreed = "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\n\
                    upgrade: websocket\r\nsec-websocket-accept: a\r\n\r\n";
                stream.write_all(agreed.as_bytes()).await.unwrap();
                let mut bytes = [0; 64];
                while let Ok(read @ 1..) = stream.read(&mut bytes).await {
                    let loud = bytes[..read].to_ascii_uppercase();
                    stream.write_all(&loud).await.unwrap();
                }
            });
        }
    });
    (address, connected)
}

/// Asks for a WebSocket, and gives the head of the answer.
async fn ask(proxy: SocketAddr, path: &str, more: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: {proxy}\r\nconnection: keep-alive, Upgrade\r\n\
         upgrade: WebSocket\r\nsec-websocket-key: k\r\nsec-websocket-version: 13\r\n\
         authorization: Bearer k\r\n{more}\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let head = head(&mut stream).await;
    (stream, head)
}

#[tokio::test]
async fn websocket_to_a_model_path_gets_426() {
    let (upstream, connected) = loud().await;
    let (running, _) = proxy(config(&format!("http://{upstream}"))).await;
    for path in ["/v1/responses", "/v1/messages", "/v1/chat/completions"] {
        let (_stream, head) = ask(running.address(), path, "").await;
        // The one status upon which Codex falls back without trying again first.
        assert!(head.starts_with("http/1.1 426 "), "{head}");
        assert!(head.contains("upgrade: http/1.1"), "{head}");
    }
    assert_eq!(connected.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn other_websockets_are_tunnelled() {
    let (upstream, connected) = loud().await;
    let (running, _) = proxy(config(&format!("http://{upstream}"))).await;
    let others = [
        ("/v1/realtime?model=x", ""),
        ("/v1/responses", "x-trimtab-bypass: true\r\n"),
        ("/v1/responses", "x-trimtab-mode: observe\r\n"),
    ];
    for (path, more) in others {
        let (mut stream, head) = ask(running.address(), path, more).await;
        assert!(head.starts_with("http/1.1 101 "), "{path}: {head}");
        assert!(head.contains("sec-websocket-accept: a"), "{head}");
        for _ in 0..3 {
            stream.write_all(b"hello").await.unwrap();
            let mut back = [0; 5];
            stream.read_exact(&mut back).await.unwrap();
            assert_eq!(&back, b"HELLO");
        }
    }
    assert_eq!(connected.load(Ordering::SeqCst), others.len());
}

#[tokio::test]
async fn foreign_origins_get_no_websocket() {
    let (upstream, connected) = loud().await;
    let (running, _) = proxy(config(&format!("http://{upstream}"))).await;
    let (_stream, head) = ask(
        running.address(),
        "/v1/realtime",
        "origin: http://evil.com\r\n",
    )
    .await;
    assert!(head.starts_with("http/1.1 403 "), "{head}");
    assert_eq!(connected.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn upstream_refusal_of_a_websocket_is_forwarded() {
    let upstream =
        crate::fake::Upstream::start(|_, _| crate::fake::Reply::json(403, r#"{"error":"no"}"#))
            .await;
    let (running, _) = proxy(config(&upstream.url())).await;
    let (mut stream, head) = ask(running.address(), "/v1/realtime", "").await;
    assert!(head.starts_with("http/1.1 403 "), "{head}");
    let mut body = [0; 14];
    stream.read_exact(&mut body).await.unwrap();
    assert_eq!(&body, br#"{"error":"no"}"#);
}
