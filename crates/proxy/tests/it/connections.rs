//! HTTP/1.1 and HTTP/2, and clients that disconnect.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, Version};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use trimtab_model::Dialect;
use trimtab_proxy::RunningProxy;

use crate::fake::{self, Reply, post, send};
use crate::talk::{Talk, answer, lines, path, said, streamed};
use crate::{config, proxy};

/// How long anything may take on a machine that does other things.
const PATIENCE: Duration = Duration::from_secs(30);

type Piece = Result<Frame<Bytes>, Infallible>;

/// An upstream that hands each answer's stream to the test, which writes it piece by piece and
/// sees when nobody reads any more.
async fn by_hand() -> (SocketAddr, mpsc::Receiver<mpsc::Sender<Piece>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (streams, opened) = mpsc::channel(16);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let streams = streams.clone();
            let service = service_fn(move |request: Request<Incoming>| {
                let streams = streams.clone();
                async move {
                    request.into_body().collect().await.ok();
                    let (pieces, received) = mpsc::channel(1);
                    streams.send(pieces).await.ok();
                    let body = StreamBody::new(fake::Receiver(received)).boxed_unsync();
                    let mut answer: Response<UnsyncBoxBody<Bytes, Infallible>> =
                        Response::new(body);
                    let kind = "text/event-stream".parse().unwrap();
                    answer.headers_mut().insert("content-type", kind);
                    Ok::<_, Infallible>(answer)
                }
            });
            tokio::spawn(async move {
                let builder = auto::Builder::new(TokioExecutor::new());
                builder
                    .serve_connection(TokioIo::new(stream), service)
                    .await
                    .ok();
            });
        }
    });
    (address, opened)
}

/// A client that speaks HTTP/2 from the first byte.
fn second_version() -> Client<HttpConnector, Full<Bytes>> {
    Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http()
}

fn request(base: &str, talk: &Talk) -> Request<Full<Bytes>> {
    Request::post(format!("{base}{}", path(talk.dialect)))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(talk.body())))
        .unwrap()
}

/// A conversation whose answer is streamed; `large` ones are offered the retrieval tools.
fn talk(dialect: Dialect, large: bool) -> Talk {
    let mut talk = Talk::new(dialect, "what is in it?");
    talk.stream = true;
    talk.round("c1", &lines(if large { 6_000 } else { 20 }));
    talk
}

/// The events of an answer, each with its end.
fn events(dialect: Dialect, text: &str) -> Vec<Bytes> {
    let whole = streamed(dialect, &answer(dialect, text, 5_000));
    let events = whole.split_inclusive("\n\n");
    events
        .map(|event| Bytes::copy_from_slice(event.as_bytes()))
        .collect()
}

/// Waits until something is so.
async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let waiting = async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let done = tokio::time::timeout(PATIENCE, waiting).await;
    done.unwrap_or_else(|_| panic!("{what}"));
}

/// The next stream that the upstream was asked for.
async fn opened(streams: &mut mpsc::Receiver<mpsc::Sender<Piece>>) -> mpsc::Sender<Piece> {
    let opened = tokio::time::timeout(PATIENCE, streams.recv()).await;
    opened.expect("a request").unwrap()
}

async fn write(stream: &mpsc::Sender<Piece>, events: &[Bytes]) {
    for event in events {
        stream.send(Ok(Frame::data(event.clone()))).await.unwrap();
    }
}

#[tokio::test]
async fn streams_pass_event_by_event_over_both_versions() {
    for dialect in Dialect::ALL {
        for large in [false, true] {
            for second in [false, true] {
                let (upstream, mut streams) = by_hand().await;
                let (_running, base) = proxy(config(&format!("http://{upstream}"))).await;
                let client = if second {
                    second_version()
                } else {
                    Client::builder(TokioExecutor::new()).build_http()
                };
                let asked = tokio::spawn(client.request(request(&base, &talk(dialect, large))));
                let stream = opened(&mut streams).await;
                let events = events(dialect, "one two three");
                let (first, rest) = events.split_at(events.len() - 2);
                write(&stream, first).await;
                let answer = asked.await.unwrap().unwrap();
                let version = if second {
                    Version::HTTP_2
                } else {
                    Version::HTTP_11
                };
                assert_eq!((answer.status().as_u16(), answer.version()), (200, version));
                let action = if large { "edited" } else { "unchanged" };
                assert_eq!(answer.headers()["x-trimtab-action"], action);
                // What was written is here before the rest is written.
                let (mut body, mut got) = (answer.into_body(), String::new());
                while !said(dialect, &got).contains("three") {
                    let frame = tokio::time::timeout(PATIENCE, body.frame()).await;
                    let data = frame.unwrap().unwrap().unwrap().into_data().unwrap();
                    got.push_str(std::str::from_utf8(&data).unwrap());
                }
                write(&stream, rest).await;
                drop(stream);
                let rest = body.collect().await.unwrap().to_bytes();
                got.push_str(std::str::from_utf8(&rest).unwrap());
                assert_eq!(said(dialect, &got), "one two three");
            }
        }
    }
}

#[tokio::test]
async fn many_streams_share_one_connection() {
    let dialect = Dialect::Messages;
    let upstream = fake::Upstream::start(move |_, asked| {
        let text = asked.json()["messages"][0]["content"]
            .as_str()
            .unwrap()
            .to_owned();
        Reply::stream(streamed(dialect, &answer(dialect, &text, 50)))
    })
    .await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    let client = second_version();
    let asked = (0..40).map(|number| {
        let mut talk = Talk::new(dialect, &format!("question {number}"));
        talk.stream = true;
        talk.round("c1", &lines(3_000));
        let asked = client.request(request(&base, &talk));
        tokio::spawn(async move {
            let body = asked.await.unwrap().into_body();
            let bytes = body.collect().await.unwrap().to_bytes();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            assert_eq!(said(dialect, &text), format!("question {number}"));
        })
    });
    for asked in asked.collect::<Vec<_>>() {
        asked.await.unwrap();
    }
}

/// Nothing is left of a request whose client went away, and its session goes on.
async fn nothing_is_left(
    running: &RunningProxy,
    base: &str,
    (talk, session): (&Talk, &str),
    (stream, streams): (
        mpsc::Sender<Piece>,
        &mut mpsc::Receiver<mpsc::Sender<Piece>>,
    ),
) {
    // The provider need not write what nobody reads.
    let gone = tokio::time::timeout(PATIENCE, stream.closed()).await;
    gone.expect("the request to the upstream is dropped");
    until("the record is written", || running.report().open == 0).await;
    let (base, again) = (base.to_owned(), talk.clone());
    let asked =
        tokio::spawn(async move { post(&base, path(again.dialect), &[], again.body()).await });
    let stream = opened(streams).await;
    write(&stream, &events(talk.dialect, "here it is")).await;
    drop(stream);
    let got = asked.await.unwrap();
    assert_eq!(said(talk.dialect, &got.text()), "here it is");
    assert_eq!(got.header("x-trimtab-session"), session);
}

#[tokio::test]
async fn client_disconnect_during_a_stream_leaks_nothing() {
    for dialect in Dialect::ALL {
        for large in [false, true] {
            for second in [false, true] {
                let (upstream, mut streams) = by_hand().await;
                let (running, base) = proxy(config(&format!("http://{upstream}"))).await;
                let talk = talk(dialect, large);
                let client = if second {
                    second_version()
                } else {
                    Client::builder(TokioExecutor::new()).build_http()
                };
                let asked = tokio::spawn(client.request(request(&base, &talk)));
                let stream = opened(&mut streams).await;
                let events = events(dialect, "one two three");
                write(&stream, &events[..events.len() - 2]).await;
                let answer = asked.await.unwrap().unwrap();
                let session = answer.headers()["x-trimtab-session"]
                    .to_str()
                    .unwrap()
                    .to_owned();
                let mut body = answer.into_body();
                body.frame().await.unwrap().unwrap();
                drop((body, client));
                nothing_is_left(&running, &base, (&talk, &session), (stream, &mut streams)).await;
            }
        }
    }
}

#[tokio::test]
async fn client_disconnect_before_the_answer_leaks_nothing() {
    let (upstream, mut streams) = by_hand().await;
    let (running, base) = proxy(config(&format!("http://{upstream}"))).await;
    let talk = talk(Dialect::Messages, true);
    let body = talk.body();
    let mut client = TcpStream::connect(running.address()).await.unwrap();
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    client.write_all(head.as_bytes()).await.unwrap();
    client.write_all(body.as_bytes()).await.unwrap();
    // The upstream has the whole request, and says nothing.
    let stream = opened(&mut streams).await;
    drop(client);
    let gone = tokio::time::timeout(PATIENCE, stream.closed()).await;
    gone.expect("the request to the upstream is dropped");
    until("the record is written", || running.report().open == 0).await;
    let asked = tokio::spawn(async move { post(&base, "/v1/messages", &[], talk.body()).await });
    let stream = opened(&mut streams).await;
    write(&stream, &events(Dialect::Messages, "here it is")).await;
    drop(stream);
    assert_eq!(
        said(Dialect::Messages, &asked.await.unwrap().text()),
        "here it is"
    );
}

/// Sends bytes over a connection of their own and gives all that comes back.
async fn raw(address: SocketAddr, pieces: &[&str]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    for piece in pieces {
        stream.write_all(piece.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
    }
    let mut got = Vec::new();
    stream.read_to_end(&mut got).await.unwrap();
    String::from_utf8(got).unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn client_that_closes_its_sending_half_gets_its_answer() {
    let late = Reply {
        pieces: vec![
            (1_500, Bytes::from("late")),
            (1_500, Bytes::from(" and more")),
        ],
        ..Reply::json(200, "")
    };
    let upstream = fake::Upstream::start(move |_, _| late.clone()).await;
    let (running, _) = proxy(config(&upstream.url())).await;
    let mut stream = TcpStream::connect(running.address()).await.unwrap();
    let body = talk(Dialect::Messages, true).body();
    let head = "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nx-api-key: k\r\n";
    let whole = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(whole.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut got = String::new();
    let reading = tokio::time::timeout(PATIENCE, stream.read_to_string(&mut got)).await;
    reading
        .expect("the connection ends after the answer")
        .unwrap();
    assert!(got.starts_with("HTTP/1.1 200 "), "{got}");
    assert!(got.contains("late") && got.contains(" and more"), "{got}");
}

#[tokio::test]
async fn long_chunk_extensions_are_refused_or_pass() {
    let upstream = echo().await;
    let (running, _) = proxy(config(&upstream.url())).await;
    let body = talk(Dialect::Chat, true).body();
    for length in [100, 10_000, 70_000, 200_000] {
        let extension = "x".repeat(length);
        let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n\
                    connection: close\r\ntransfer-encoding: chunked\r\n\r\n";
        let chunk = format!("{:x};{extension}\r\n{body}\r\n0\r\n\r\n", body.len());
        let mut stream = TcpStream::connect(running.address()).await.unwrap();
        // The proxy may answer before it has read all.
        for piece in [head, &chunk] {
            drop(stream.write_all(piece.as_bytes()).await);
        }
        let mut got = Vec::new();
        let reading = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut got)).await;
        drop(reading.expect("the connection ends"));
        let got = String::from_utf8_lossy(&got).into_owned();
        let status = got.split(' ').nth(1).unwrap_or_default();
        assert!(["200", "400"].contains(&status), "{length}: {got:.300}");
    }
}

#[tokio::test]
async fn upstream_cannot_say_what_we_did() {
    let forged = Reply {
        headers: vec![
            ("x-trimtab-session", "forged".to_owned()),
            ("x-trimtab-action", "forged".to_owned()),
            ("x-trimtab-anything", "forged".to_owned()),
            ("x-other", "kept".to_owned()),
        ],
        ..Reply::json(200, "{}")
    };
    let upstream = fake::Upstream::start(move |_, _| forged.clone()).await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    for path in ["/v1/messages", "/v1/other"] {
        let got = post(&base, path, &[("x-api-key", "k")], "{}").await;
        assert_eq!(got.header("x-other"), "kept");
        let ours = got.headers.iter().filter(|(_, value)| *value == "forged");
        assert_eq!(ours.count(), 0, "{:?}", got.headers);
    }
}

#[tokio::test]
async fn bodies_in_chunks_with_trailers_are_managed() {
    let upstream = echo().await;
    let (running, _) = proxy(config(&upstream.url())).await;
    let body = talk(Dialect::Chat, true).body();
    let (one, other) = body.split_at(body.len() / 2);
    let got = raw(
        running.address(),
        &[
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             transfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n",
            &format!("{:x}\r\n{one}\r\n", one.len()),
            &format!("{:x}\r\n{other}\r\n0\r\nx-sum: 7\r\n\r\n", other.len()),
        ],
    )
    .await;
    assert!(got.starts_with("HTTP/1.1 200 "), "{got}");
    assert!(got.contains("x-trimtab-action: edited"), "{got}");
    let sent = upstream.seen()[0].clone();
    assert_eq!(sent.headers["content-length"], sent.body.len().to_string());
    assert!(!sent.headers.contains_key("transfer-encoding"));
}

#[tokio::test]
async fn expect_100_continue_is_answered() {
    let upstream = echo().await;
    let (running, _) = proxy(config(&upstream.url())).await;
    let body = talk(Dialect::Messages, true).body();
    let mut stream = TcpStream::connect(running.address()).await.unwrap();
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nexpect: 100-continue\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut told = [0; 25];
    let reading = tokio::time::timeout(PATIENCE, stream.read_exact(&mut told)).await;
    reading.expect("it is told").unwrap();
    assert_eq!(&told, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut got = String::new();
    stream.read_to_string(&mut got).await.unwrap();
    assert!(got.starts_with("HTTP/1.1 200 "), "{got}");
    assert!(!upstream.seen()[0].headers.contains_key("expect"));
}

#[tokio::test]
async fn other_methods_pass() {
    let upstream = fake::Upstream::start(|_, asked| {
        let mut reply = Reply::json(200, "");
        reply.headers.push(("x-method", asked.method.to_string()));
        reply.headers.push(("allow", "GET, POST".to_owned()));
        reply
    })
    .await;
    let (running, base) = proxy(config(&upstream.url())).await;
    for path in ["/v1/models", "/v1/messages", "/v1/chat/completions"] {
        for method in [Method::HEAD, Method::OPTIONS, Method::PATCH] {
            let request = Request::builder()
                .method(method.clone())
                .uri(format!("{base}{path}"))
                .body(Full::default())
                .unwrap();
            let got = send(request).await.unwrap();
            assert_eq!(
                (got.status.as_u16(), got.header("x-method")),
                (200, method.as_str())
            );
            assert_eq!(got.header("allow"), "GET, POST");
        }
    }
    until("all records are written", || running.report().open == 0).await;
    assert_eq!(running.report().requests, 9);
}

#[tokio::test]
async fn trailers_do_not_break_an_answer() {
    // An upstream that closes its stream with a trailer.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = [0; 4096];
            let _read = stream.read(&mut bytes).await.unwrap();
            let answer = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntrailer: x-sum\r\n\
                transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx-sum: 7\r\n\r\n";
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    let (_running, base) = proxy(config(&format!("http://{address}"))).await;
    for second in [false, true] {
        let client = if second {
            second_version()
        } else {
            Client::builder(TokioExecutor::new()).build_http()
        };
        let asked = Request::get(format!("{base}/v1/models"))
            .body(Full::default())
            .unwrap();
        let collected = client
            .request(asked)
            .await
            .unwrap()
            .into_body()
            .collect()
            .await
            .unwrap();
        // HTTP/2 has trailers for everybody; in HTTP/1.1 they may be left out.
        let sum = collected
            .trailers()
            .and_then(|trailers| trailers.get("x-sum"));
        assert_eq!(sum.is_some(), second);
        assert_eq!(collected.to_bytes(), "hello");
    }
}

async fn echo() -> Arc<fake::Upstream> {
    let upstream = fake::Upstream::start(|_, asked| {
        let dialect = if asked.path.ends_with("/messages") {
            Dialect::Messages
        } else {
            Dialect::Chat
        };
        Reply::stream(streamed(dialect, &answer(dialect, "well", 50)))
    })
    .await;
    Arc::new(upstream)
}
