//! A client with one connection.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// Sends requests to one address.
#[derive(Clone)]
pub(crate) struct Sender {
    client: Client<HttpConnector, Full<Bytes>>,
    to: SocketAddr,
}

impl Sender {
    pub(crate) fn new(to: SocketAddr) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new()).build(tcp);
        Self { client, to }
    }

    /// Sends a body and waits for the head of the answer.
    pub(crate) async fn begin(&self, body: Bytes, query: &str) -> Response<Incoming> {
        let request = Request::post(format!("http://{}/v1/chat/completions{query}", self.to))
            .header("content-type", "application/json")
            .header("authorization", "Bearer key")
            .body(Full::new(body))
            .expect("a request");
        let answer = self.client.request(request).await.expect("an answer");
        assert_eq!(answer.status(), 200);
        answer
    }

    /// Sends a body and waits for the whole answer; gives what ours says it did.
    pub(crate) async fn send(&self, body: Bytes) -> String {
        let answer = self.begin(body, "").await;
        let action = answer.headers().get("x-trimtab-action");
        let action = action.and_then(|action| action.to_str().ok());
        let action = action.unwrap_or_default().to_owned();
        let body = answer.into_body().collect().await;
        body.expect("a whole answer");
        action
    }
}
