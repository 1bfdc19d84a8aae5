//! Makes connections, with TLS if the address requires it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use rustls::ClientConfig;
use tokio::time::timeout;
use tower_service::Service;

use super::NetworkError;
use super::egress_proxy::{OutboundStream, ProxiedConnector};

/// The versions of HTTP that a server is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersions {
    /// HTTP/1.1 and HTTP/2.
    All,
    /// HTTP/1.1 only: such a connection can be upgraded, for example to a WebSocket.
    Http1,
}

/// Makes connections. The time limit covers everything: a server that does not speak TLS may never
/// answer the handshake.
#[derive(Clone)]
pub struct Connector {
    /// The TLS connector, or the error to report when a connection is requested.
    https: Result<HttpsConnector<ProxiedConnector>, NetworkError>,
    wait: Duration,
}

impl Connector {
    pub(super) fn new(
        route: ProxiedConnector,
        tls: Result<ClientConfig, NetworkError>,
        versions: HttpVersions,
        wait: Duration,
    ) -> Self {
        let https = tls.map(|tls| {
            let builder = HttpsConnectorBuilder::new()
                .with_tls_config(tls)
                .https_or_http();
            match versions {
                HttpVersions::All => builder.enable_all_versions().wrap_connector(route),
                HttpVersions::Http1 => builder.enable_http1().wrap_connector(route),
            }
        });
        Self { https, wait }
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<OutboundStream>;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        match &mut self.https {
            Ok(https) => https.poll_ready(cx),
            Err(error) => Poll::Ready(Err(error.clone().into())),
        }
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let (https, wait) = (self.https.clone(), self.wait);
        Box::pin(async move {
            let connected = timeout(wait, https?.call(to)).await;
            connected.map_err(|_| format!("no connection within {wait:?}"))?
        })
    }
}
