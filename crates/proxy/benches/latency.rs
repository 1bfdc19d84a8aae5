//! What the proxy adds, beside a bare reverse proxy and beside no proxy at all, in one run.
//!
//! Each request is one call of a conversation that grows: it has one more round than the one
//! before, so that all the work on it is done, and done for what is new.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark's table is what it is for, and it may stop where a test would"
)]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use trimtab_proxy::{Proxy, ProxyConfig};
use trimtab_store::{FolderStore, MemoryStore, Store};
use trimtab_testkit::bench::Comparison;

const ANSWER: &str = r#"{"id":"a","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"ok"}}],"usage":{"prompt_tokens":10,"completion_tokens":1}}"#;

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

/// Runs something that serves, on a thread of its own, and gives its address.
fn serve<F: Future<Output = ()>>(
    start: impl FnOnce(mpsc::Sender<SocketAddr>) -> F + Send + 'static,
) -> SocketAddr {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || runtime().block_on(start(sender)));
    receiver.recv().expect("an address")
}

/// A server that reads every request and answers it.
async fn upstream(ready: mpsc::Sender<SocketAddr>) {
    accept(ready, |request| async {
        let (_, mut body) = request.into_parts();
        while let Some(Ok(_)) = body.frame().await {}
        let mut answer = Response::new(Full::from(ANSWER).boxed());
        let json = http::HeaderValue::from_static("application/json");
        answer.headers_mut().insert("content-type", json);
        answer
    })
    .await;
}

type Body = http_body_util::combinators::BoxBody<Bytes, Infallible>;

async fn accept<F>(
    ready: mpsc::Sender<SocketAddr>,
    answer: impl Fn(Request<Incoming>) -> F + Copy + 'static,
) where
    F: Future<Output = Response<Body>>,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    ready
        .send(listener.local_addr().expect("an address"))
        .expect("somebody waits");
    let local = tokio::task::LocalSet::new();
    local
        .run_until(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                stream.set_nodelay(true).expect("a socket");
                tokio::task::spawn_local(async move {
                    let service = service_fn(move |request| async move {
                        Ok::<_, Infallible>(answer(request).await)
                    });
                    let connection = hyper::server::conn::http1::Builder::new()
                        .max_buf_size(1 << 20)
                        .serve_connection(TokioIo::new(stream), service);
                    connection.await.ok();
                });
            }
        })
        .await;
}

/// A reverse proxy that does nothing but pass.
async fn bare(ready: mpsc::Sender<SocketAddr>, to: SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    ready
        .send(listener.local_addr().expect("an address"))
        .expect("somebody waits");
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    let client: Client<_, Incoming> = Client::builder(TokioExecutor::new())
        .http1_max_buf_size(1 << 20)
        .build(tcp);
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        let client = client.clone();
        tokio::spawn(async move {
            let service = service_fn(move |mut request: Request<Incoming>| {
                let path = request.uri().path().to_owned();
                *request.uri_mut() = format!("http://{to}{path}").parse().expect("an address");
                request.headers_mut().remove("host");
                client.request(request)
            });
            let mut builder = auto::Builder::new(TokioExecutor::new());
            builder.http1().max_buf_size(1 << 20);
            builder
                .serve_connection(TokioIo::new(stream), service)
                .await
                .ok();
        });
    }
}

async fn ours(ready: mpsc::Sender<SocketAddr>, to: SocketAddr, store: Arc<dyn Store>) {
    let mut config = ProxyConfig::to_upstream(format!("http://{to}"));
    config.listen = "127.0.0.1:0".parse().expect("an address");
    let running = Proxy::start(config, store).await.expect("a proxy");
    ready.send(running.address()).expect("somebody waits");
    std::future::pending::<()>().await;
}

/// A conversation of about `bytes`, and longer and longer versions of it.
fn growing(bytes: usize, versions: usize) -> Vec<Bytes> {
    let output = |at: usize| {
        let lines = (0..80).map(|line| format!("{at}:{line} some output of a tool that ran\\n"));
        lines.collect::<String>()
    };
    let round = |at: usize| {
        format!(
            r#",{{"role":"assistant","content":null,"tool_calls":[{{"id":"c{at}","type":"function","function":{{"name":"read","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"c{at}","content":"{}"}}"#,
            output(at)
        )
    };
    let mut body = String::from(
        r#"{"model":"house-model","messages":[{"role":"user","content":"read all files"}"#,
    );
    let mut at = 0;
    while body.len() + 3_500 < bytes {
        body.push_str(&round(at));
        at += 1;
    }
    let short = bytes < 4_000;
    let mut bodies = Vec::new();
    for version in 0..versions {
        bodies.push(Bytes::from(format!("{body}]}}")));
        if short {
            let more = format!(
                r#",{{"role":"assistant","content":"answer {version}"}},{{"role":"user","content":"and {version}?"}}"#
            );
            body.push_str(&more);
        } else {
            body.push_str(&round(at + version));
        }
    }
    bodies
}

/// A client that sends the bodies one after the other.
fn sending(to: SocketAddr, bodies: &[Bytes], key: &'static str) -> impl FnMut() + 'static {
    let runtime = runtime();
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build(tcp);
    let mut bodies = bodies.to_owned().into_iter().cycle();
    move || {
        let body = bodies.next().expect("a body");
        let request = Request::post(format!("http://{to}/v1/chat/completions"))
            .header("content-type", "application/json")
            .header("authorization", key)
            .body(Full::new(body))
            .expect("a request");
        runtime.block_on(async {
            let answer = client.request(request).await.expect("an answer");
            assert_eq!(answer.status(), 200);
            answer.into_body().collect().await.expect("a whole answer");
        });
    }
}

fn main() {
    let upstream = serve(upstream);
    let bare = serve(move |ready| bare(ready, upstream));
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let folder = tempfile::tempdir().expect("a folder");
    let kept: Arc<dyn Store> = Arc::new(FolderStore::open(folder.path()).expect("a store"));
    let in_memory = serve(move |ready| ours(ready, upstream, memory));
    let in_folder = serve(move |ready| ours(ready, upstream, kept));
    for (bytes, rounds) in [(1 << 10, 400), (500 << 10, 200), (5 << 20, 30)] {
        let bodies = growing(bytes, rounds + 1);
        let title = format!(
            "one call of a conversation of {} KB, one round more each time",
            bytes >> 10
        );
        let medians = Comparison::new(title, rounds)
            .candidate("no proxy", sending(upstream, &bodies, "Bearer a"))
            .candidate("bare reverse proxy", sending(bare, &bodies, "Bearer b"))
            .candidate(
                "trimtab, store in memory",
                sending(in_memory, &bodies, "Bearer c"),
            )
            .candidate(
                "trimtab, store in a folder",
                sending(in_folder, &bodies, "Bearer d"),
            )
            .run();
        report(&medians);
    }
    memory_of_sessions();
}

/// Added latency beside the bare proxy's.
fn report(medians: &[Duration]) {
    let [direct, bare, others @ ..] = medians else {
        return;
    };
    let added = bare.saturating_sub(*direct).as_secs_f64().max(1e-9);
    for (name, other) in ["memory", "folder"].iter().zip(others) {
        let ours = other.saturating_sub(*direct).as_secs_f64();
        println!(
            "  added latency, {name}: {:.2} times that of the bare proxy",
            ours / added
        );
    }
}

/// How much memory five thousand sessions take.
fn memory_of_sessions() {
    let upstream = serve(upstream);
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let folder = tempfile::tempdir().expect("a folder");
    drop(store);
    let store: Arc<dyn Store> = Arc::new(FolderStore::open(folder.path()).expect("a store"));
    let proxy = serve(move |ready| ours(ready, upstream, store));
    let before = resident();
    let sessions = 1_000;
    for session in 0..sessions {
        let body = growing(64 << 10, 1).remove(0);
        let body =
            String::from_utf8_lossy(&body).replace("read all files", &format!("read {session}"));
        sending(proxy, &[Bytes::from(body)], "Bearer s")();
    }
    let grown = resident().saturating_sub(before);
    println!(
        "\n{sessions} sessions of 64 KB: {} KB of memory each",
        grown / 1024 / sessions
    );
}

/// Bytes that this process holds in memory; 0 where the system does not say.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}
