//! Connections to upstreams.

use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client as Pool, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::body::{Body, BoxError};
use crate::config::Limits;

/// How much is read from a connection at a time, at most.
const READ_BUFFER: usize = 64 << 10;

/// Sends requests to upstreams. Follows no redirect, and never sends a body twice.
#[derive(Clone)]
pub(crate) struct Client {
    pool: Pool<HttpsConnector<HttpConnector>, Body>,
    /// For connections that become something else: HTTP/2 has no such thing.
    upgrades: Pool<HttpsConnector<HttpConnector>, Body>,
    answer_time: Duration,
}

impl Client {
    /// A client with no connections yet.
    pub(crate) fn new(limits: &Limits) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(Duration::from_millis(limits.connect_ms)));
        let connector = HttpsConnectorBuilder::new()
            .with_webpki_roots()
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(tcp.clone());
        let first_version = HttpsConnectorBuilder::new()
            .with_webpki_roots()
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let pool = Pool::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_millis(limits.pool_idle_ms))
            .http1_max_buf_size(READ_BUFFER)
            .build(connector);
        Self {
            pool,
            upgrades: Pool::builder(TokioExecutor::new()).build(first_version),
            answer_time: limits.idle_time(),
        }
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn send(&self, request: Request<Body>) -> Result<Response<Incoming>, Failed> {
        self.send_by(&self.pool, request).await
    }

    /// The same for a request whose connection is to become something else.
    pub(crate) async fn upgrade(
        &self,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, Failed> {
        self.send_by(&self.upgrades, request).await
    }

    async fn send_by(
        &self,
        pool: &Pool<HttpsConnector<HttpConnector>, Body>,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, Failed> {
        match tokio::time::timeout(self.answer_time, pool.request(request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(Failed::new(&error)),
            Err(_) => Err(Failed {
                timed_out: true,
                why: format!("no answer within {:?}", self.answer_time),
            }),
        }
    }
}

/// Why there is no answer.
#[derive(Clone, Debug)]
pub(crate) struct Failed {
    /// True if it took too long.
    pub(crate) timed_out: bool,
    /// What went wrong.
    pub(crate) why: String,
}

impl Failed {
    fn new(error: &Error) -> Self {
        let mut why = error.to_string();
        let mut source = std::error::Error::source(error);
        while let Some(cause) = source {
            why = format!("{why}: {cause}");
            source = cause.source();
        }
        Self {
            timed_out: false,
            why,
        }
    }
}

impl From<Failed> for BoxError {
    fn from(failed: Failed) -> Self {
        failed.why.into()
    }
}
