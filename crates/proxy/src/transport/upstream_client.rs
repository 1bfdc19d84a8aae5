//! The HTTP client for upstreams: a pool of connections, with a time limit for the head of an
//! answer and for every pause in its body.

use std::time::Duration;

use http::header::PROXY_AUTHORIZATION;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client as Pool, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use trimtab::network::{Connector, HttpVersions, OutboundNetwork};

use crate::config::ProxyLimits;
use crate::transport::body::{BoxError, ProxyBody, from_upstream};

/// The maximum size of the read buffer of a connection.
const READ_BUFFER: usize = 64 << 10;

/// Sends requests to upstreams. It follows no redirects, and never sends a body twice.
#[derive(Clone)]
pub(crate) struct UpstreamClient {
    pool: Pool<Connector, ProxyBody>,
    /// For upgrades, which need HTTP/1.1.
    upgrades: Pool<Connector, ProxyBody>,
    outgoing: OutboundNetwork,
    answer_time: Duration,
}

impl UpstreamClient {
    /// A client that connects through `network`.
    pub(crate) fn new(limits: &ProxyLimits, network: OutboundNetwork) -> Self {
        let wait = Duration::from_millis(limits.connect_ms);
        let connector = network.connector(wait, HttpVersions::All);
        let first_version = network.connector(wait, HttpVersions::Http1);
        let pool = Pool::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_millis(limits.pool_idle_ms))
            .http1_max_buf_size(READ_BUFFER)
            .build(connector);
        Self {
            pool,
            upgrades: Pool::builder(TokioExecutor::new()).build(first_version),
            outgoing: network,
            answer_time: limits.idle_time(),
        }
    }

    /// Sends a request and waits for the head of the answer. Its body fails if nothing arrives for
    /// `idle`.
    pub(crate) async fn send(
        &self,
        request: Request<ProxyBody>,
        idle: Duration,
    ) -> Result<Response<ProxyBody>, UpstreamFailure> {
        let answer = self.send_by(&self.pool, request).await?;
        Ok(answer.map(|body| from_upstream(body, idle)))
    }

    /// Sends a request that upgrades its connection.
    pub(crate) async fn upgrade(
        &self,
        request: Request<ProxyBody>,
    ) -> Result<Response<Incoming>, UpstreamFailure> {
        self.send_by(&self.upgrades, request).await
    }

    async fn send_by(
        &self,
        pool: &Pool<Connector, ProxyBody>,
        mut request: Request<ProxyBody>,
    ) -> Result<Response<Incoming>, UpstreamFailure> {
        if let Some(credentials) = self.outgoing.credentials(request.uri()) {
            let headers = request.headers_mut();
            // Only for plain HTTP through an egress proxy; with TLS the connector authenticates
            // when it opens the tunnel.
            headers.insert(PROXY_AUTHORIZATION, credentials);
        }
        match tokio::time::timeout(self.answer_time, pool.request(request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(UpstreamFailure::new(&error)),
            Err(_) => Err(UpstreamFailure {
                timed_out: true,
                reason: format!("no answer within {:?}", self.answer_time),
            }),
        }
    }
}

/// Why the upstream gave no answer.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamFailure {
    /// True for a timeout.
    pub(crate) timed_out: bool,
    /// The error with its causes.
    pub(crate) reason: String,
}

impl UpstreamFailure {
    fn new(error: &Error) -> Self {
        let mut why = error.to_string();
        let mut source = std::error::Error::source(error);
        // hyper's own text is only "client error (Connect)". The causes say what happened.
        while let Some(cause) = source {
            why = format!("{why}: {cause}");
            source = cause.source();
        }
        Self {
            timed_out: false,
            reason: why,
        }
    }
}

impl From<UpstreamFailure> for BoxError {
    fn from(failure: UpstreamFailure) -> Self {
        failure.reason.into()
    }
}
