//! A programmable upstream and a minimal client.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;

/// What a request looked like.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Asked {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// What to answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    /// Pieces, each sent after a pause.
    pub(crate) pieces: Vec<(u64, Bytes)>,
    /// True to break the connection after the pieces.
    pub(crate) cut: bool,
}

impl Reply {
    pub(crate) fn json(status: u16, text: impl Into<String>) -> Self {
        Self {
            status,
            headers: vec![("content-type", "application/json".to_owned())],
            pieces: vec![(0, Bytes::from(text.into()))],
            cut: false,
        }
    }

    pub(crate) fn stream(text: impl Into<String>) -> Self {
        Self {
            headers: vec![("content-type", "text/event-stream".to_owned())],
            ..Self::json(200, text)
        }
    }

    pub(crate) fn cut(mut self) -> Self {
        self.cut = true;
        self
    }
}

type Answer = dyn Fn(usize, &Asked) -> Reply + Send + Sync;
type Body = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// An upstream that does what a test says.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Asked>>>,
}

impl Upstream {
    /// Starts one that answers the n-th request with what `answer` gives.
    pub(crate) async fn start(
        answer: impl Fn(usize, &Asked) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (answer, kept): (Arc<Answer>, _) = (Arc::new(answer), Arc::clone(&seen));
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    return;
                };
                stream.set_nodelay(true).unwrap();
                let (answer, kept) = (Arc::clone(&answer), Arc::clone(&kept));
                tokio::spawn(async move {
                    let service = service_fn(move |request| {
                        serve(Arc::clone(&answer), Arc::clone(&kept), request)
                    });
                    let builder = auto::Builder::new(TokioExecutor::new());
                    builder
                        .serve_connection(TokioIo::new(stream), service)
                        .await
                        .ok();
                });
            }
        });
        Self { address, seen }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Asked> {
        self.seen.lock().unwrap().clone()
    }
}

async fn serve(
    answer: Arc<Answer>,
    seen: Arc<Mutex<Vec<Asked>>>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    let path = parts.uri.path_and_query().map_or("", |path| path.as_str());
    let asked = Asked {
        method: parts.method,
        path: path.to_owned(),
        headers: parts.headers,
        body,
    };
    let number = {
        let mut seen = seen.lock().unwrap();
        seen.push(asked.clone());
        seen.len() - 1
    };
    Ok(respond(answer(number, &asked)))
}

fn respond(reply: Reply) -> Response<Body> {
    let mut response = Response::builder().status(reply.status);
    for (name, value) in &reply.headers {
        response = response.header(*name, value);
    }
    let whole = reply.pieces.len() == 1 && !reply.cut && reply.pieces[0].0 == 0;
    let body = if whole {
        Full::new(reply.pieces[0].1.clone())
            .map_err(Into::into)
            .boxed_unsync()
    } else {
        let (sender, receiver) = tokio::sync::mpsc::channel(64);
        tokio::spawn(async move {
            for (pause, piece) in reply.pieces {
                tokio::time::sleep(Duration::from_millis(pause)).await;
                if sender.send(Ok(Frame::data(piece))).await.is_err() {
                    return;
                }
            }
            if reply.cut {
                tokio::time::sleep(Duration::from_millis(5)).await;
                sender.send(Err("cut".into())).await.ok();
            }
        });
        StreamBody::new(Receiver(receiver)).boxed_unsync()
    };
    response.body(body).unwrap()
}

/// What comes through a channel.
pub(crate) struct Receiver<T>(pub(crate) tokio::sync::mpsc::Receiver<T>);

impl<T> futures_core::Stream for Receiver<T> {
    type Item = T;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<T>> {
        self.0.poll_recv(context)
    }
}

/// What a client got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Got {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// True if the answer broke off.
    pub(crate) broken: bool,
}

impl Got {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }
}

/// Sends a request and reads the whole answer.
pub(crate) async fn send(request: Request<Full<Bytes>>) -> Option<Got> {
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let response = client.request(request).await.ok()?;
    let (parts, mut body) = response.into_parts();
    let (mut bytes, mut broken) = (Vec::new(), false);
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            broken = true;
            break;
        };
        bytes.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
    }
    Some(Got {
        status: parts.status,
        headers: parts.headers,
        body: Bytes::from(bytes),
        broken,
    })
}

/// Posts JSON.
pub(crate) async fn post(
    base: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Got {
    let mut request = Request::post(format!("{base}{path}"));
    request = request.header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    send(request.body(Full::new(body.into())).unwrap())
        .await
        .expect("an answer")
}

/// Gets a path.
pub(crate) async fn get(base: &str, path: &str, headers: &[(&str, &str)]) -> Got {
    let mut request = Request::get(format!("{base}{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    send(request.body(Full::default()).unwrap())
        .await
        .expect("an answer")
}
