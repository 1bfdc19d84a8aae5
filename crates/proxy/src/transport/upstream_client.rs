//! Connections to upstreams.

use std::time::Duration;

use http::header::PROXY_AUTHORIZATION;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client as Pool, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use trimtab::network::{Connector, Outgoing, Versions};

use crate::config::Limits;
use crate::transport::body::{Body, BoxError, from_upstream};

/// How much is read from a connection at a time, at most.
const READ_BUFFER: usize = 64 << 10;

/// Sends requests to upstreams. Follows no redirect, and never sends a body twice.
#[derive(Clone)]
pub(crate) struct Client {
    pool: Pool<Connector, Body>,
    /// For connections that become something else: HTTP/2 has no such thing.
    upgrades: Pool<Connector, Body>,
    outgoing: Outgoing,
    answer_time: Duration,
}

impl Client {
    /// A client with no connections yet, which `outgoing` will make.
    pub(crate) fn new(limits: &Limits, outgoing: Outgoing) -> Self {
        let wait = Duration::from_millis(limits.connect_ms);
        let connector = outgoing.connector(wait, Versions::All);
        let first_version = outgoing.connector(wait, Versions::First);
        let pool = Pool::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_millis(limits.pool_idle_ms))
            .http1_max_buf_size(READ_BUFFER)
            .build(connector);
        Self {
            pool,
            upgrades: Pool::builder(TokioExecutor::new()).build(first_version),
            outgoing,
            answer_time: limits.idle_time(),
        }
    }

    /// Sends a request and waits for the head of its answer, whose body fails if nothing of it
    /// comes for as long as `idle`.
    pub(crate) async fn send(
        &self,
        request: Request<Body>,
        idle: Duration,
    ) -> Result<Response<Body>, Failed> {
        let answer = self.send_by(&self.pool, request).await?;
        Ok(answer.map(|body| from_upstream(body, idle)))
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
        pool: &Pool<Connector, Body>,
        mut request: Request<Body>,
    ) -> Result<Response<Incoming>, Failed> {
        if let Some(credentials) = self.outgoing.credentials(request.uri()) {
            let headers = request.headers_mut();
            headers.insert(PROXY_AUTHORIZATION, credentials);
        }
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
