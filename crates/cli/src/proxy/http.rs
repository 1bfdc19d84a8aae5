//! A small HTTP client for `doctor`, which checks upstreams, and for the agent of the demo.

use std::time::Duration;

use bytes::Bytes;
use http::header::PROXY_AUTHORIZATION;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use trimtab::network::{Connector, HttpVersions, OutboundNetwork, innermost_cause};

/// The largest answer that is read, in bytes. Any server may answer, so memory must be bounded.
const LARGEST: usize = 32 << 20;

/// The time to establish a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// A client with a connection pool.
#[derive(Clone, Debug)]
pub struct HttpClient {
    client: Client<Connector, Full<Bytes>>,
    outgoing: OutboundNetwork,
}

/// A complete answer.
#[derive(Clone, Debug)]
pub struct HttpAnswer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

impl HttpAnswer {
    /// The value of a header, or an empty string.
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

impl Default for HttpClient {
    fn default() -> Self {
        Self::new(OutboundNetwork::default())
    }
}

impl HttpClient {
    /// A client that connects through `network`.
    pub fn new(network: OutboundNetwork) -> Self {
        let connector = network.connector(CONNECT, HttpVersions::Http1);
        Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            outgoing: network,
        }
    }

    /// Sends a request and reads the answer within `time`. The error is a text for users.
    pub async fn send(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
        time: Duration,
    ) -> Result<HttpAnswer, String> {
        let mut request = Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let shown = request.uri_ref();
        if let Some(credentials) = shown.and_then(|to| self.outgoing.credentials(to)) {
            request = request.header(PROXY_AUTHORIZATION, credentials);
        }
        // A header that cannot be sent may hold a key, so the error does not quote it.
        let request = request
            .body(Full::new(Bytes::from(body)))
            .map_err(|_| "the address or a header cannot be sent".to_owned())?;
        match tokio::time::timeout(time, self.exchange(request)).await {
            Ok(done) => done,
            Err(_) => Err(format!("no answer within {} seconds", time.as_secs())),
        }
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<HttpAnswer, String> {
        let answer = self.client.request(request).await;
        let answer = answer.map_err(|error| innermost_cause(&error))?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, LARGEST).collect().await;
        let body = body.map_err(|error| format!("the answer was cut off: {error}"))?;
        Ok(HttpAnswer {
            status: head.status,
            headers: head.headers,
            body: body.to_bytes(),
        })
    }
}
