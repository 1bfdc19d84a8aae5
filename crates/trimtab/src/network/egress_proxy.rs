//! Connects to a server, directly or through the egress proxy.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderValue, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

/// The egress proxies by server. This machine itself needs none.
#[derive(Clone)]
pub(super) struct EgressProxies(Arc<Matcher>);

impl EgressProxies {
    pub(super) fn new(matcher: Matcher) -> Self {
        Self(Arc::new(matcher))
    }

    /// The proxy for a server.
    pub(super) fn proxy_for(&self, to: &Uri) -> Option<Intercept> {
        // For a proxy on another machine, a loopback address would be that machine.
        let is_here = to.host().is_some_and(is_this_machine);
        (!is_here).then(|| self.0.intercept(to)).flatten()
    }

    /// The credentials that the proxy needs with a request for `to`. A tunnel sends them by itself.
    pub(super) fn credentials(&self, to: &Uri) -> Option<HeaderValue> {
        let proxy = self.proxy_for(to).filter(|_| !is_tls(to))?;
        proxy.basic_auth().cloned()
    }
}

/// Connects to servers, through a proxy if one is configured for them.
///
/// A server with TLS is reached through a tunnel; for others, the requests themselves are sent to
/// the proxy.
#[derive(Clone)]
pub(super) struct ProxiedConnector {
    tcp: HttpConnector,
    proxies: EgressProxies,
}

impl ProxiedConnector {
    /// Waits for a connection no longer than `wait`.
    pub(super) fn new(wait: Duration, proxies: EgressProxies) -> Self {
        let mut tcp = HttpConnector::new();
        // The TLS layer above calls it with `https` addresses.
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(wait));
        tcp.set_nodelay(true);
        Self { tcp, proxies }
    }
}

fn is_tls(to: &Uri) -> bool {
    to.scheme_str() == Some("https")
}

fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let address: Option<IpAddr> = address.parse().ok();
    host == "localhost" || address.is_some_and(|address| address.is_loopback())
}

impl Service<Uri> for ProxiedConnector {
    type Response = OutboundStream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<OutboundStream>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let (tcp, proxy) = (self.tcp.clone(), self.proxies.proxy_for(&to));
        Box::pin(async move {
            match proxy {
                Some(proxy) => through(tcp, to, &proxy)
                    .await
                    .map_err(|error| at_proxy(&proxy, &error)),
                None => straight(tcp, to, false).await,
            }
        })
    }
}

async fn straight(mut tcp: HttpConnector, to: Uri, proxied: bool) -> io::Result<OutboundStream> {
    let stream = tcp.call(to).await.map_err(io::Error::other)?;
    Ok(OutboundStream { stream, proxied })
}

async fn through(tcp: HttpConnector, to: Uri, proxy: &Intercept) -> io::Result<OutboundStream> {
    let address = proxy.uri().clone();
    if address.scheme_str() != Some("http") {
        return Err(io::Error::other("only proxies at http:// can be used"));
    }
    if !is_tls(&to) {
        return straight(tcp, address, true).await;
    }
    let mut tunnel = Tunnel::new(address, tcp);
    if let Some(credentials) = proxy.basic_auth() {
        tunnel = tunnel.with_auth(credentials.clone());
    }
    let stream = tunnel.call(to).await.map_err(io::Error::other)?;
    Ok(OutboundStream {
        stream,
        proxied: false,
    })
}

/// Says that the proxy failed, without its password.
fn at_proxy(proxy: &Intercept, error: &io::Error) -> io::Error {
    let address = proxy.uri();
    let host = address.host().unwrap_or_default();
    let port = address.port().map(|port| format!(":{port}"));
    let port = port.unwrap_or_default();
    let why = innermost_cause(error);
    io::Error::other(format!("the egress proxy {host}{port}: {why}"))
}

/// The innermost cause of an error: the message of the system or of the TLS library.
pub fn innermost_cause(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(inner) = deepest.source() {
        deepest = inner;
    }
    deepest.to_string()
}

/// A connection.
pub struct OutboundStream {
    stream: TokioIo<TcpStream>,
    /// True if the other end is a proxy that forwards requests.
    proxied: bool,
}

impl OutboundStream {
    fn stream(self: Pin<&mut Self>) -> Pin<&mut TokioIo<TcpStream>> {
        Pin::new(&mut self.get_mut().stream)
    }
}

impl Connection for OutboundStream {
    fn connected(&self) -> Connected {
        // Tells hyper to write the full address into the request line, as a proxy needs it.
        self.stream.connected().proxy(self.proxied)
    }
}

impl Read for OutboundStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream().poll_read(cx, buffer)
    }
}

impl Write for OutboundStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write_vectored(cx, slices)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_excepted_hosts_use_no_proxy() {
        let proxies = Matcher::builder()
            .all("http://proxy:3128")
            .no("inner.example, 10.0.0.0/8");
        let proxies = EgressProxies::new(proxies.build());
        let through = |to: &'static str| proxies.proxy_for(&Uri::from_static(to)).is_some();
        for straight in [
            "http://127.0.0.1:8080/v1",
            "http://localhost/v1",
            "http://[::1]:8080/v1",
            "https://a.inner.example/v1",
            "http://10.1.2.3/v1",
        ] {
            assert!(!through(straight), "{straight}");
        }
        assert!(through("https://api.example/v1") && through("http://192.168.0.2/v1"));
    }
}
