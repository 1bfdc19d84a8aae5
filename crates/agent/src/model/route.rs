//! The way to a server: straight, or through the proxy that the environment names.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderValue, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service;

/// Connects to servers, through a proxy where one is named for them.
///
/// A server that speaks TLS is reached through a tunnel; the proxy of another is given its
/// requests. This machine itself is always reached straight.
#[derive(Clone)]
pub(super) struct Route {
    tcp: HttpConnector,
    proxies: Arc<Matcher>,
    /// How long a connection may take, all in all.
    wait: Duration,
}

impl Route {
    /// With the proxies that `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` name.
    pub(super) fn from_env(wait: Duration) -> Self {
        Self::new(wait, Matcher::from_env())
    }

    pub(super) fn new(wait: Duration, proxies: Matcher) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(wait));
        tcp.set_nodelay(true);
        Self {
            tcp,
            proxies: Arc::new(proxies),
            wait,
        }
    }

    /// The same with TLS where the address asks for it.
    pub(super) fn secured(&self) -> Secured {
        let https = HttpsConnectorBuilder::new()
            .with_webpki_roots()
            .https_or_http()
            .enable_http1()
            .enable_http2()
            .wrap_connector(self.clone());
        Secured {
            https,
            wait: self.wait,
        }
    }

    /// What the proxy wants to see of whoever sends it a request for `to`; a tunnel shows it
    /// by itself.
    pub(super) fn credentials(&self, to: &Uri) -> Option<HeaderValue> {
        let proxy = self.proxy(to).filter(|_| !is_tls(to))?;
        proxy.basic_auth().cloned()
    }

    fn proxy(&self, to: &Uri) -> Option<Intercept> {
        let is_here = to.host().is_some_and(is_this_machine);
        (!is_here).then(|| self.proxies.intercept(to)).flatten()
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

impl Service<Uri> for Route {
    type Response = Way;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Way>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let (tcp, proxy) = (self.tcp.clone(), self.proxy(&to));
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

/// A route with TLS where the address asks for it. The time limit is for all of it: a server
/// that does not speak TLS may never answer the greeting.
#[derive(Clone)]
pub(super) struct Secured {
    https: HttpsConnector<Route>,
    wait: Duration,
}

impl Service<Uri> for Secured {
    type Response = MaybeHttpsStream<Way>;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.https.poll_ready(cx)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let (connecting, wait) = (self.https.call(to), self.wait);
        Box::pin(async move {
            let connected = timeout(wait, connecting).await;
            let late = |_| format!("no connection within {} s", wait.as_secs());
            connected.map_err(late)?
        })
    }
}

async fn straight(mut tcp: HttpConnector, to: Uri, proxied: bool) -> io::Result<Way> {
    let stream = tcp.call(to).await.map_err(io::Error::other)?;
    Ok(Way { stream, proxied })
}

async fn through(tcp: HttpConnector, to: Uri, proxy: &Intercept) -> io::Result<Way> {
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
    Ok(Way {
        stream,
        proxied: false,
    })
}

/// Says that it is the proxy that failed, without its password.
fn at_proxy(proxy: &Intercept, error: &io::Error) -> io::Error {
    let address = proxy.uri();
    let host = address.host().unwrap_or_default();
    let port = address.port().map(|port| format!(":{port}"));
    let why = super::http::innermost(error);
    let port = port.unwrap_or_default();
    io::Error::other(format!("the proxy {host}{port} of the environment: {why}"))
}

/// A connection.
pub(super) struct Way {
    stream: TokioIo<TcpStream>,
    /// True if the other end is a proxy that passes requests on.
    proxied: bool,
}

impl Way {
    fn stream(self: Pin<&mut Self>) -> Pin<&mut TokioIo<TcpStream>> {
        Pin::new(&mut self.get_mut().stream)
    }
}

impl Connection for Way {
    fn connected(&self) -> Connected {
        self.stream.connected().proxy(self.proxied)
    }
}

impl Read for Way {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream().poll_read(cx, buffer)
    }
}

impl Write for Way {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write(cx, bytes)
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
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    use tokio::net::TcpListener;
    use trimtab_model::{Dialect, Message};

    use crate::model::{Client, Endpoint, Http, ModelError, Request, Retries, Timeouts};

    /// A proxy that answers one request with `answer`, and gives the lines it was sent.
    async fn proxy(answer: &'static str) -> (String, tokio::task::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let heard = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = BufReader::new(stream);
            let mut heard = Vec::new();
            loop {
                let mut line = String::new();
                stream.read_line(&mut line).await.unwrap();
                if line.trim().is_empty() {
                    break;
                }
                heard.push(line.trim().to_lowercase());
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
            heard
        });
        (address, heard)
    }

    async fn ask(base: &str, proxies: Matcher) -> Result<String, ModelError> {
        let endpoint = Endpoint::new(base).unwrap();
        let http = Http::new(Dialect::Chat, endpoint)
            .retries(Retries::NONE)
            .proxies(proxies);
        let messages = vec![Arc::new(Message::user("hello"))];
        let answer = Client::new(http).call(Request::new("m", messages)).answer();
        Ok(answer.await?.message.text().into_owned())
    }

    #[tokio::test]
    async fn a_server_without_tls_is_asked_through_its_proxy() {
        let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n\
                      {\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"here\"},\
                      \"finish_reason\":\"stop\"}]}";
        let (address, heard) = proxy(answer).await;
        let proxies = Matcher::builder().http(format!("http://me:secret@{address}"));
        let said = ask("http://model.invalid:81/v1", proxies.build())
            .await
            .unwrap();
        assert_eq!(said, "here");
        let heard = heard.await.unwrap();
        let first = "post http://model.invalid:81/v1/chat/completions http/1.1";
        assert_eq!(heard[0], first);
        assert!(
            heard
                .iter()
                .any(|line| line.starts_with("proxy-authorization: basic "))
        );
    }

    #[tokio::test]
    async fn a_server_with_tls_is_reached_through_a_tunnel() {
        let refused = "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n";
        let (address, heard) = proxy(refused).await;
        let proxies = Matcher::builder().https(format!("http://me:secret@{address}"));
        let error = ask("https://model.invalid/v1", proxies.build())
            .await
            .unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains(&format!("the proxy {address} of the environment")),
            "{said}"
        );
        assert!(!said.contains("secret"), "{said}");
        let heard = heard.await.unwrap();
        assert_eq!(heard[0], "connect model.invalid:443 http/1.1");
        assert!(
            heard
                .iter()
                .any(|line| line.starts_with("proxy-authorization: basic "))
        );
    }

    #[tokio::test]
    async fn a_server_that_does_not_answer_a_greeting_is_not_waited_for() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let endpoint = Endpoint::new(&format!("https://{address}/v1")).unwrap();
        let timeouts = Timeouts {
            connect: Duration::from_millis(50),
            ..Timeouts::default()
        };
        let http = Http::new(Dialect::Chat, endpoint)
            .retries(Retries::NONE)
            .timeouts(timeouts);
        let messages = vec![Arc::new(Message::user("hello"))];
        let asked = Client::new(http).call(Request::new("m", messages)).answer();
        let error = asked.await.unwrap_err();
        assert!(matches!(error, ModelError::Unreachable { .. }), "{error}");
        assert!(
            error.to_string().contains("no connection within"),
            "{error}"
        );
    }

    #[test]
    fn what_needs_no_proxy_gets_none() {
        let proxies = Matcher::builder()
            .all("http://proxy:3128")
            .no("inner.example, 10.0.0.0/8");
        let route = Route::new(Duration::from_secs(1), proxies.build());
        let through = |to: &'static str| route.proxy(&Uri::from_static(to)).is_some();
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
