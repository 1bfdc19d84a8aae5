//! What is measured: an upstream, a bare reverse proxy to it, and ours. Each runs on a thread
//! of its own.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use trimtab_proxy::{ModelRule, Proxy, ProxyConfig, RunningProxy};
use trimtab_store::{FolderStore, Store};

use crate::events;

/// A model whose window holds every conversation here.
pub(crate) const WIDE: &str = "wide-model";
/// The same under the preset that changes nothing.
pub(crate) const UNCHANGED: &str = "unchanged-model";
/// A model whose window holds few of them: their bodies are edited.
pub(crate) const NARROW: &str = "narrow-model";

const ANSWER: &str = r#"{"id":"a","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"ok"}}]}"#;
/// How much is read from a connection at a time, at most: the same for all.
const BUFFER: usize = 1 << 20;

pub(crate) struct Servers {
    pub(crate) direct: SocketAddr,
    pub(crate) bare: SocketAddr,
    pub(crate) ours: Arc<RunningProxy>,
    /// Removed at the end.
    _folder: TempDir,
}

impl Servers {
    pub(crate) fn start() -> Self {
        let direct = serve("upstream", upstream);
        let bare = serve("bare", move |ready| bare(ready, direct));
        let (ours, folder) = proxy(direct);
        Self {
            direct,
            bare,
            ours,
            _folder: folder,
        }
    }
}

/// Ours, with a store of its own.
pub(crate) fn proxy(to: SocketAddr) -> (Arc<RunningProxy>, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = FolderStore::open(folder.path()).expect("a store");
    let running = serve("ours", move |ready| ours(ready, to, Arc::new(store)));
    (running, folder)
}

pub(crate) fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

/// Runs something that serves, on a thread of its own, and gives what it says when it is ready.
/// The thread has a name, by which a profile tells them apart.
fn serve<T: Send + 'static, F: Future<Output = ()>>(
    name: &str,
    start: impl FnOnce(mpsc::Sender<T>) -> F + Send + 'static,
) -> T {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::Builder::new().name(name.to_owned());
    let serving = thread.spawn(move || runtime().block_on(start(sender)));
    serving.expect("a thread");
    receiver.recv().expect("it starts")
}

async fn listen(ready: &mpsc::Sender<SocketAddr>) -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    ready.send(address).expect("somebody waits");
    listener
}

async fn accepted(listener: &TcpListener) -> TokioIo<TcpStream> {
    let (stream, _) = listener.accept().await.expect("a connection");
    stream.set_nodelay(true).expect("a socket");
    TokioIo::new(stream)
}

/// Reads every request and answers it at once; a stream if its path asks for one.
async fn upstream(ready: mpsc::Sender<SocketAddr>) {
    let listener = listen(&ready).await;
    loop {
        let stream = accepted(&listener).await;
        tokio::spawn(async move {
            let service =
                service_fn(|request| async { Ok::<_, Infallible>(answer(request).await) });
            let mut builder = hyper::server::conn::http1::Builder::new();
            let connection = builder
                .max_buf_size(BUFFER)
                .serve_connection(stream, service);
            // A client that went away is no event of ours.
            connection.await.unwrap_or(());
        });
    }
}

async fn answer(request: Request<Incoming>) -> Response<BoxBody<Bytes, Infallible>> {
    let streams = request.uri().query() == Some("stream");
    let mut body = request.into_body();
    while let Some(Ok(_)) = body.frame().await {}
    let (kind, body) = if streams {
        ("text/event-stream", events::stream())
    } else {
        ("application/json", Full::from(ANSWER).boxed())
    };
    let mut answer = Response::new(body);
    let kind = HeaderValue::from_static(kind);
    answer.headers_mut().insert("content-type", kind);
    answer
}

/// A reverse proxy that does nothing but pass.
async fn bare(ready: mpsc::Sender<SocketAddr>, to: SocketAddr) {
    let listener = listen(&ready).await;
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    let client: Client<_, Incoming> = Client::builder(TokioExecutor::new())
        .http1_max_buf_size(BUFFER)
        .build(tcp);
    loop {
        let stream = accepted(&listener).await;
        let client = client.clone();
        tokio::spawn(async move {
            let service = service_fn(move |mut request: Request<Incoming>| {
                let path = request
                    .uri()
                    .path_and_query()
                    .map_or("/", |path| path.as_str());
                *request.uri_mut() = format!("http://{to}{path}").parse().expect("an address");
                request.headers_mut().remove("host");
                client.request(request)
            });
            let mut builder = auto::Builder::new(TokioExecutor::new());
            builder.http1().max_buf_size(BUFFER);
            builder
                .serve_connection(stream, service)
                .await
                .unwrap_or(());
        });
    }
}

async fn ours(ready: mpsc::Sender<Arc<RunningProxy>>, to: SocketAddr, store: Arc<dyn Store>) {
    let mut config = ProxyConfig::to_upstream(format!("http://{to}"));
    config.listen = "127.0.0.1:0".parse().expect("an address");
    config.models = [
        (WIDE, 10_000_000, None),
        (UNCHANGED, 10_000_000, Some("none")),
        (NARROW, 60_000, None),
    ]
    .map(rule)
    .into();
    let running = Proxy::start(config, store).await.expect("a proxy");
    ready.send(Arc::new(running)).expect("somebody waits");
    std::future::pending::<()>().await;
}

fn rule((model, window, preset): (&str, u64, Option<&str>)) -> ModelRule {
    ModelRule {
        model: model.to_owned(),
        window: Some(window),
        max_output: Some(4_096),
        preset: preset.map(str::to_owned),
        mode: None,
    }
}
