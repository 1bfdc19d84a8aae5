//! Model calls over HTTP: sends requests, retries, and reads answers.
//!
//! `body` writes a request in its dialect, `stream` parses the answer, and `failure` turns an error
//! into one that the turn can handle. A call that has delivered nothing is retried here; everything
//! else is up to the turn.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, PROXY_AUTHORIZATION};
use http::{HeaderValue, Method, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::{sleep, timeout};
use trimtab::network::{Connector, HttpVersions, OutboundNetwork, innermost_cause};
use trimtab_model::{Dialect, RawJson};
use trimtab_wire::answer::is_event_stream;
use trimtab_wire::auth::key_headers;

use super::body::BodyWriter;
use super::failure::{FailedResponse, RequestTarget};
use super::refused_fields::{RefusedFields, refused_field};
use super::reply::ReplySink;
use super::sent_cache::SentCache;
use super::stream::{self, AnswerStreamReader};
use super::unpack::AnswerUnpacker;
use super::{
    Endpoint, ModelAnswer, ModelBackend, ModelError, ModelReply, ModelRequest, ReplyPiece,
    RetryPolicy, WaitPhase,
};

/// The maximum size of an answer, far above any real one.
const MOST_BYTES: usize = 64 << 20;

/// How long to wait for the end of the body once the answer is complete, so that the connection can
/// be reused.
const REST: Duration = Duration::from_millis(50);

/// Time limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// To establish a connection.
    pub connect: Duration,
    /// Until the first byte of an answer. The model reads a long prompt first.
    pub first_byte: Duration,
    /// Between two pieces of an answer.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(15),
            first_byte: Duration::from_mins(10),
            idle: Duration::from_mins(5),
        }
    }
}

/// A model over HTTP, in any of the three dialects.
///
/// By default it uses the proxies of the environment: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`,
/// with the exceptions in `NO_PROXY`; [`network`](Self::network) changes this. The local machine is
/// always connected directly.
#[derive(Clone)]
pub struct HttpModel(Arc<HttpModelInner>);

#[derive(Clone)]
struct HttpModelInner {
    dialect: Dialect,
    endpoint: Endpoint,
    outgoing: OutboundNetwork,
    client: HyperClient,
    timeouts: Timeouts,
    retries: RetryPolicy,
    stream: bool,
    fields: Vec<(String, RawJson)>,
    sent: Arc<SentCache>,
    quirks: Arc<RefusedFields>,
}

impl HttpModel {
    /// A model with `dialect` at `endpoint`.
    pub fn new(dialect: Dialect, endpoint: Endpoint) -> Self {
        let timeouts = Timeouts::default();
        let network = OutboundNetwork::default();
        Self(Arc::new(HttpModelInner {
            dialect,
            endpoint,
            client: client(&network, timeouts),
            outgoing: network,
            timeouts,
            retries: RetryPolicy::default(),
            stream: true,
            fields: Vec::new(),
            sent: Arc::default(),
            quirks: Arc::default(),
        }))
    }

    /// Sets the time limits.
    #[must_use]
    pub fn timeouts(self, timeouts: Timeouts) -> Self {
        self.with(|shared| {
            shared.client = client(&shared.outgoing, timeouts);
            shared.timeouts = timeouts;
        })
    }

    /// Makes connections through `network`.
    #[must_use]
    pub fn network(self, network: OutboundNetwork) -> Self {
        self.with(|shared| {
            shared.client = client(&network, shared.timeouts);
            shared.outgoing = network;
        })
    }

    /// Sets the retry policy.
    #[must_use]
    pub fn retries(self, retries: RetryPolicy) -> Self {
        self.with(|shared| shared.retries = retries)
    }

    /// Requests complete answers instead of streams.
    #[must_use]
    pub fn whole_answers(self) -> Self {
        self.with(|shared| shared.stream = false)
    }

    /// Adds a field to every request, such as a temperature.
    #[must_use]
    pub fn field<T: serde::Serialize + ?Sized>(self, name: &str, value: &T) -> Self {
        let field = (name.to_owned(), RawJson::of(value));
        self.with(|shared| shared.fields.push(field))
    }

    fn with(self, change: impl FnOnce(&mut HttpModelInner)) -> Self {
        let mut shared = Arc::unwrap_or_clone(self.0);
        change(&mut shared);
        Self(Arc::new(shared))
    }
}

impl ModelBackend for HttpModel {
    fn dialect(&self) -> Dialect {
        self.0.dialect
    }

    fn call(&self, request: ModelRequest) -> ModelReply {
        let shared = Arc::clone(&self.0);
        ModelReply::spawn(|sink| async move { shared.answer(&request, &sink).await })
    }
}

type HyperClient = legacy::Client<Connector, Full<Bytes>>;

fn client(network: &OutboundNetwork, timeouts: Timeouts) -> HyperClient {
    legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .build(network.connector(timeouts.connect, HttpVersions::All))
}

impl HttpModelInner {
    async fn answer(
        &self,
        request: &ModelRequest,
        sink: &ReplySink,
    ) -> Result<ModelAnswer, ModelError> {
        let mut body = self.body(request);
        let mut attempt = 1;
        loop {
            let mut call = CallAttempt {
                shared: self,
                request,
                sink,
                delivered: false,
                refused: None,
            };
            let error = match call.attempt(body.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            // Each field is rejected at most once: it is omitted from then on.
            if let Some(field) = call.refused
                && self.quirks.learn(&request.model, field)
            {
                body = self.body(request);
                continue;
            }
            let wait = self.retries.wait(attempt, &error);
            // Never repeat text that was delivered. The caller continues from there.
            let Some(wait) = wait.filter(|_| !call.delivered) else {
                return Err(error);
            };
            let why = error.without_hint();
            sink.send(ReplyPiece::Retry { attempt, wait, why }).await;
            sleep(wait).await;
            attempt += 1;
        }
    }

    fn body(&self, request: &ModelRequest) -> Bytes {
        let writer = BodyWriter {
            dialect: self.dialect,
            endpoint: &self.endpoint,
            sent: &self.sent,
            quirks: &self.quirks,
            stream: self.stream,
            fields: &self.fields,
        };
        Bytes::from(writer.body(request))
    }

    fn target<'a>(&'a self, request: &'a ModelRequest) -> RequestTarget<'a> {
        RequestTarget {
            url: self.endpoint.url(self.dialect),
            dialect: self.dialect,
            key: self.endpoint.secret(),
            request,
        }
    }

    fn http_request(&self, body: Bytes) -> Result<http::Request<Full<Bytes>>, http::Error> {
        let url = self.endpoint.url(self.dialect);
        let mut request = http::Request::builder()
            .method(Method::POST)
            .uri(url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream, application/json");
        let key = self.endpoint.secret().map(super::endpoint::ApiKey::secret);
        for (name, value) in key_headers(self.dialect, key) {
            let mut value = HeaderValue::try_from(value)?;
            // hyper then never prints it, and HTTP/2 does not put it into its compression table.
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        for (name, value) in self.endpoint.headers() {
            request = request.header(name, value);
        }
        let shown = request
            .uri_ref()
            .and_then(|to| self.outgoing.credentials(to));
        if let Some(credentials) = shown {
            request = request.header(PROXY_AUTHORIZATION, credentials);
        }
        request.body(Full::new(body))
    }
}

/// The body of an answer.
struct ResponseBody {
    incoming: Incoming,
    unpacker: AnswerUnpacker,
}

/// One attempt at a call.
struct CallAttempt<'a> {
    shared: &'a HttpModelInner,
    request: &'a ModelRequest,
    sink: &'a ReplySink,
    /// True once the caller has received a part of the answer.
    delivered: bool,
    /// The rejected field, if the request can do without it.
    refused: Option<&'static str>,
}

impl CallAttempt<'_> {
    async fn attempt(&mut self, body: Bytes) -> Result<ModelAnswer, ModelError> {
        let response = self.send(body).await?;
        let place = self.shared.target(self.request);
        let (parts, body) = response.into_parts();
        let header = |name| parts.headers.get(name)?.to_str().ok();
        let media: Option<&str> = header(CONTENT_TYPE);
        let body = ResponseBody {
            incoming: body,
            unpacker: AnswerUnpacker::new(header(CONTENT_ENCODING)),
        };
        if parts.status.is_success() && media.is_some_and(is_event_stream) {
            return self.streamed(body).await;
        }
        let bytes = self.collect(body).await?;
        if !parts.status.is_success() {
            let status = parts.status.as_u16();
            // Noted beside the error, because `answer` decides whether to send the request again
            // without the field.
            self.refused = refused_field(status, &bytes);
            return Err(FailedResponse::new(status, &parts.headers, &bytes).to_error(&place));
        }
        let answer = self.read_whole(&bytes).await?;
        if answer.is_none() && is_cut(&bytes) {
            let why = "it is incomplete JSON".to_owned();
            return Err(ModelError::Cut { why });
        }
        answer.ok_or_else(|| FailedResponse::new(200, &parts.headers, &bytes).to_error(&place))
    }

    async fn send(&self, body: Bytes) -> Result<Response<Incoming>, ModelError> {
        let url = || self.shared.endpoint.url(self.shared.dialect);
        let request = self.shared.http_request(body);
        // This error does not contain header values.
        let request = request.map_err(|error| ModelError::Refused {
            url: url(),
            status: 0,
            message: format!("the request cannot be made: {error}"),
        })?;
        let limit = self.shared.timeouts.first_byte;
        match timeout(limit, self.shared.client.request(request)).await {
            Ok(Ok(response)) => Ok(response),
            // Only a failed connection says that nobody is there. Later failures may be worth more
            // attempts.
            Ok(Err(error)) if error.is_connect() => Err(ModelError::Unreachable {
                url: url(),
                why: innermost_cause(&error),
            }),
            Ok(Err(error)) => Err(ModelError::Cut {
                why: innermost_cause(&error),
            }),
            Err(_) => Err(self.timed_out(WaitPhase::FirstByte, limit)),
        }
    }

    fn timed_out(&self, wait: WaitPhase, after: Duration) -> ModelError {
        let url = self.shared.endpoint.url(self.shared.dialect);
        ModelError::TimedOut { url, wait, after }
    }

    /// The next bytes of a body; none at its end.
    async fn bytes(&self, body: &mut ResponseBody) -> Result<Option<Vec<u8>>, ModelError> {
        let limit = self.shared.timeouts.idle;
        loop {
            let frame = timeout(limit, body.incoming.frame()).await;
            let frame = frame.map_err(|_| self.timed_out(WaitPhase::More, limit))?;
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame.map_err(|error| ModelError::Cut {
                why: innermost_cause(&error),
            })?;
            // Ignore trailers.
            if let Ok(bytes) = frame.into_data() {
                let unpacked = body.unpacker.push(&bytes);
                return unpacked.map(Some).map_err(|error| ModelError::Cut {
                    why: format!("it cannot be unpacked: {error}"),
                });
            }
        }
    }

    async fn collect(&self, mut body: ResponseBody) -> Result<Vec<u8>, ModelError> {
        let mut all = Vec::new();
        while let Some(bytes) = self.bytes(&mut body).await? {
            all.extend_from_slice(&bytes);
            if all.len() > MOST_BYTES {
                break;
            }
        }
        Ok(all)
    }

    async fn streamed(&mut self, mut body: ResponseBody) -> Result<ModelAnswer, ModelError> {
        let mut reader = AnswerStreamReader::new(self.shared.dialect);
        let mut size = 0;
        while let Some(bytes) = self.bytes(&mut body).await? {
            size += bytes.len();
            self.deliver(reader.push(&bytes)).await?;
            // Some servers keep the connection open after the end of the answer, so waiting for its
            // end could take until the timeout.
            if reader.is_ended() || size > MOST_BYTES {
                // Read the end of the body so that the connection returns to the pool. A failure
                // only costs the reuse.
                let _ = timeout(REST, body.incoming.frame()).await;
                break;
            }
        }
        self.finish(reader).await
    }

    async fn finish(&mut self, mut reader: AnswerStreamReader) -> Result<ModelAnswer, ModelError> {
        self.deliver(reader.finish()).await?;
        reader.answer().ok_or_else(|| ModelError::Cut {
            why: "the stream ended before the answer did".to_owned(),
        })
    }

    /// Reads a complete answer. Also accepts a stream with the wrong content type.
    async fn read_whole(&mut self, bytes: &[u8]) -> Result<Option<ModelAnswer>, ModelError> {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_start();
        if ["data:", "event:", ":"]
            .iter()
            .any(|start| text.starts_with(start))
        {
            let mut reader = AnswerStreamReader::new(self.shared.dialect);
            self.deliver(reader.push(text.as_bytes())).await?;
            return self.finish(reader).await.map(Some);
        }
        let answer = stream::read_whole(self.shared.dialect, text);
        if let Some(answer) = &answer {
            self.deliver(Ok(stream::pieces(answer))).await?;
        }
        Ok(answer)
    }

    async fn deliver(
        &mut self,
        read: Result<Vec<ReplyPiece>, stream::ReportedError>,
    ) -> Result<(), ModelError> {
        let pieces = read.map_err(|reported| {
            let place = self.shared.target(self.request);
            place.stream_error(reported.verdict, &reported.message)
        })?;
        for piece in pieces {
            self.delivered = true;
            self.sink.send(piece).await;
        }
        Ok(())
    }
}

/// True for truncated JSON.
fn is_cut(bytes: &[u8]) -> bool {
    let read: Result<serde_json::Value, _> = serde_json::from_slice(bytes);
    let begins = bytes.trim_ascii_start().first() == Some(&b'{');
    begins && read.is_err_and(|error| error.is_eof())
}
