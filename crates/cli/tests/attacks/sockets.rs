//! Plain sockets for attacks, an upstream that accepts everything, and a client that checks whether
//! others are still served.

use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, UPGRADE};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::run::{PATIENCE, Served, say};

/// How long others may be kept waiting on a machine that does other things as well. What is
/// aimed at is a tenth of a second; each test prints what was seen.
pub(crate) const LONGEST_GAP: Duration = Duration::from_secs(2);
/// How long the answer under `/big` is.
pub(crate) const BIG: usize = 48 << 20;

/// A folder whose settings have these limits.
pub(crate) fn folder_with(limits: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("config/trimtab");
    std::fs::create_dir_all(&settings).unwrap();
    let text = format!("[proxy.limits]\n{limits}\n");
    std::fs::write(settings.join("config.toml"), text).unwrap();
    folder
}

/// `trimtab serve` with these limits, in front of `upstream`.
pub(crate) fn serve(limits: &str, upstream: &PlainUpstream) -> Served {
    let url = format!("http://{}", upstream.address);
    Served::start_in(folder_with(limits), &["--upstream", &url])
}

/// Where a proxy listens.
pub(crate) fn address(served: &Served) -> SocketAddr {
    served.url.strip_prefix("http://").unwrap().parse().unwrap()
}

/// Lets this process and its children open many files; says so where that is not allowed.
#[cfg(unix)]
pub(crate) fn can_open_files(wanted: u64) -> bool {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum.or(Some(wanted)),
        maximum: limit.maximum,
    };
    let allowed = limit.maximum.is_none_or(|most| most >= wanted);
    if !allowed || setrlimit(Resource::Nofile, raised).is_err() {
        say(&format!(
            "skipped: needs {wanted} open files, see ulimit -Hn"
        ));
        return false;
    }
    true
}

/// An upstream that takes every request, and gives back what comes through a tunnel.
pub(crate) struct PlainUpstream {
    pub(crate) address: SocketAddr,
    received: Arc<Mutex<Vec<(usize, u64)>>>,
    tunnels_closed: Arc<Mutex<usize>>,
}

impl PlainUpstream {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let upstream = Self {
            address: listener.local_addr().unwrap(),
            received: Arc::default(),
            tunnels_closed: Arc::default(),
        };
        let (received, closed) = (
            Arc::clone(&upstream.received),
            Arc::clone(&upstream.tunnels_closed),
        );
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (received, closed) = (Arc::clone(&received), Arc::clone(&closed));
                let service = service_fn(move |request| {
                    answer(request, Arc::clone(&received), Arc::clone(&closed))
                });
                tokio::spawn(async move {
                    let builder = auto::Builder::new(TokioExecutor::new());
                    let stream = TokioIo::new(stream);
                    let serving = builder.serve_connection_with_upgrades(stream, service);
                    drop(serving.await);
                });
            }
        });
        upstream
    }

    /// Length and digest of every body that came whole.
    pub(crate) fn received(&self) -> Vec<(usize, u64)> {
        self.received.lock().unwrap().clone()
    }

    /// How many tunnels were closed by the other end.
    pub(crate) fn tunnels_closed(&self) -> usize {
        *self.tunnels_closed.lock().unwrap()
    }
}

/// Length and digest of a body.
pub(crate) fn digest(body: &[u8]) -> (usize, u64) {
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    (body.len(), hasher.finish())
}

async fn answer(
    mut request: Request<Incoming>,
    received: Arc<Mutex<Vec<(usize, u64)>>>,
    closed: Arc<Mutex<usize>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::default());
    if request.headers().contains_key(UPGRADE) {
        let upgraded = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let stream = TokioIo::new(upgraded.await.unwrap());
            let (mut reader, mut writer) = split(stream);
            drop(copy(&mut reader, &mut writer).await);
            drop(writer.shutdown().await);
            *closed.lock().unwrap() += 1;
        });
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert("connection", "upgrade".parse().unwrap());
        headers.insert("upgrade", "websocket".parse().unwrap());
        return Ok(response);
    }
    if request.uri().path() == "/big" {
        *response.body_mut() = Full::new(Bytes::from(vec![b'x'; BIG]));
        return Ok(response);
    }
    if let Ok(body) = request.into_body().collect().await {
        received.lock().unwrap().push(digest(&body.to_bytes()));
    }
    let json = "application/json".parse().unwrap();
    response.headers_mut().insert(CONTENT_TYPE, json);
    *response.body_mut() = Full::new(Bytes::from_static(b"{\"ok\": true}"));
    Ok(response)
}

/// Opens a connection and sends these bytes over it.
pub(crate) async fn send(to: SocketAddr, bytes: impl AsRef<[u8]>) -> TcpStream {
    let mut stream = TcpStream::connect(to).await.unwrap();
    stream.write_all(bytes.as_ref()).await.unwrap();
    stream
}

/// All that comes until the other end closes.
pub(crate) async fn rest(stream: &mut TcpStream) -> String {
    let mut got = Vec::new();
    // A connection that is reset has nothing more to say.
    let reading = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut got)).await;
    drop(reading.expect("the other end closes"));
    String::from_utf8_lossy(&got).into_owned()
}

/// Reads the head of an answer.
pub(crate) async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let byte = tokio::time::timeout(PATIENCE, stream.read_u8()).await;
        head.push(byte.expect("a head").unwrap());
    }
    String::from_utf8(head).unwrap().to_ascii_lowercase()
}

/// The head of a request with a body of so many bytes; the connection ends with its answer.
pub(crate) fn post_head(path: &str, length: usize, more: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: k\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n{more}\r\n"
    )
}

/// Posts a body over a connection of its own, and gives the whole answer.
pub(crate) async fn post(to: SocketAddr, path: &str, more: &str, body: &[u8]) -> String {
    let mut stream = send(to, post_head(path, body.len(), more)).await;
    stream.write_all(body).await.unwrap();
    rest(&mut stream).await
}

/// The figures of a proxy.
pub(crate) async fn status(of: SocketAddr) -> serde_json::Value {
    let request = "GET /trimtab/status HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let got = rest(&mut send(of, request).await).await;
    let (_, body) = got.split_once("\r\n\r\n").expect("an answer");
    serde_json::from_str(body).unwrap()
}

/// Waits until something is so.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, so: impl Fn() -> F) {
    let end = Instant::now() + PATIENCE;
    while !so().await {
        assert!(Instant::now() < end, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A client that asks again and again, each time over a new connection.
pub(crate) struct Prober {
    stop: Arc<AtomicBool>,
    probing: JoinHandle<(usize, Duration)>,
}

impl Prober {
    pub(crate) fn start(of: SocketAddr) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let probing = tokio::spawn(async move {
            let (mut served, mut longest) = (0, Duration::ZERO);
            let mut asked = Instant::now();
            while !stopped.load(Ordering::Relaxed) {
                if probe(of).await {
                    served += 1;
                    longest = longest.max(asked.elapsed());
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    asked = Instant::now();
                }
            }
            (served, longest)
        });
        Self { stop, probing }
    }

    /// Ends it, prints how long others had to wait at most, and judges that.
    pub(crate) async fn end(self, attack: &str) {
        self.stop.store(true, Ordering::Relaxed);
        let (served, longest) = self.probing.await.unwrap();
        say(&format!(
            "{attack}: {served} others served, longest gap {longest:?}"
        ));
        assert!(served > 0 && longest < LONGEST_GAP, "{attack}: {longest:?}");
    }
}

/// True if a new connection is answered.
async fn probe(of: SocketAddr) -> bool {
    let asking = async {
        let mut stream = TcpStream::connect(of).await?;
        let request = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await?;
        let mut got = Vec::new();
        stream.read_to_end(&mut got).await?;
        std::io::Result::Ok(got.starts_with(b"HTTP/1.1 200 "))
    };
    let asked = tokio::time::timeout(PATIENCE, asking).await;
    matches!(asked, Ok(Ok(true)))
}
