//! Accepts connections and serves their requests over HTTP/1 and HTTP/2, until the proxy stops.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;

use super::dispatch;
use crate::access::{InboundConnection, InboundTls, accept_tls};
use crate::config::ProxyLimits;
use crate::request::shared::SharedState;
use crate::transport::connections::{Connection, check_interval};
use crate::transport::peer_socket::PeerSocket;
use crate::transport::upload_progress::ConnectionOrder;
use crate::transport::watched_stream::WatchedStream;

/// The size of a connection's buffer in each direction, and so the longest request head.
const BUFFER: usize = 64 << 10;
/// The longest list of headers over HTTP/2, in bytes.
const HEADER_LIST: u32 = 64 << 10;
/// How many unread bytes a client may send over HTTP/2, on one stream and on a connection.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;
/// The pause after accepting a connection failed.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);
/// The interval at which a waiting connection tries again to get a place.
const PLACE_AGAIN: Duration = Duration::from_millis(5);
/// Time limit for connections that were ordered to close at once.
const CUT_TIME: Duration = Duration::from_secs(1);

/// Whether the proxy should keep running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopSignal {
    Run,
    /// Accept no more connections, and give open streams this long to end.
    Drain(Duration),
}

/// Accepts connections, and ends those that miss their deadlines or are too many.
pub(super) struct ConnectionAcceptor {
    pub(super) shared: Arc<SharedState>,
    pub(super) stopped: watch::Receiver<StopSignal>,
    pub(super) tls: Arc<InboundTls>,
    /// Our listening address.
    pub(super) address: SocketAddr,
}

impl ConnectionAcceptor {
    pub(super) async fn run(mut self, listener: TcpListener) {
        // A connection that was accepted while all places were taken. At most one: the others
        // wait in the backlog of the kernel, where they cost us nothing.
        let mut waiting = None;
        let mut next_check = Instant::now();
        let time = loop {
            let limits = self.limits();
            if waiting.is_some() && self.has_place(&limits) {
                waiting
                    .take()
                    .into_iter()
                    .for_each(|accepted| self.serve_connection(accepted));
            }
            let connections = &self.shared.connections;
            tokio::select! {
                accepted = listener.accept(), if waiting.is_none() => {
                    waiting = accepted.ok();
                    if waiting.is_none() {
                        // Accepting usually fails because there are too many open files. Closing
                        // a connection frees one; the pause keeps the loop from spinning.
                        connections.end_lowest_priority();
                        tokio::time::sleep(ACCEPT_AGAIN).await;
                    }
                },
                () = tokio::time::sleep(PLACE_AGAIN), if waiting.is_some() => {}
                () = tokio::time::sleep_until(next_check) => {
                    connections.end_late(&limits);
                    next_check = Instant::now() + check_interval(&limits);
                }
                changed = self.stopped.changed() => {
                    match (changed, *self.stopped.borrow()) {
                        (Ok(()), StopSignal::Run) => {}
                        (Ok(()), StopSignal::Drain(time)) => break time,
                        // The sender is gone: the `RunningProxy` was dropped without a shutdown.
                        (Err(_), _) => break Duration::ZERO,
                    }
                }
            }
        };
        // Close the socket first, so that clients that connect during the drain are refused at once
        // and can go elsewhere.
        drop(listener);
        self.drain(time).await;
    }

    fn limits(&self) -> ProxyLimits {
        self.shared.settings.get().config.limits
    }

    /// True if there is a place for one more connection, or one could be freed.
    fn has_place(&self, limits: &ProxyLimits) -> bool {
        let connections = &self.shared.connections;
        connections.len() < limits.connections || connections.end_lowest_priority()
    }

    /// Gives open requests and tunnels `time` to end, then closes them.
    async fn drain(&self, time: Duration) {
        let connections = &self.shared.connections;
        connections.tell_all(ConnectionOrder::Finish);
        if tokio::time::timeout(time, connections.wait_until_empty())
            .await
            .is_err()
        {
            connections.tell_all(ConnectionOrder::Close);
            // Connections end at once on this order. One that does not is abandoned.
            let cut = tokio::time::timeout(CUT_TIME, connections.wait_until_empty());
            cut.await.unwrap_or(());
        }
    }

    /// Serves an accepted connection in a task of its own.
    fn serve_connection(&self, (stream, peer): (TcpStream, SocketAddr)) {
        // With Nagle's algorithm, a small event of a stream would wait for the acknowledgement of
        // the one before it.
        if stream.set_nodelay(true).is_err() {
            return;
        }
        let local = stream.local_addr().unwrap_or(self.address);
        let tls = self.tls.acceptor();
        let inbound = Arc::new(InboundConnection::new(peer, local, tls.is_some()));
        let connection = self.shared.connections.add();
        let socket = PeerSocket::new(peer, local);
        let stream = WatchedStream::new(stream, Arc::clone(&connection), socket);
        let shared = Arc::clone(&self.shared);
        // The handshake has as much time as a request head: both are what a client must do before
        // we know anything about it.
        let time = Duration::from_millis(self.limits().header_ms);
        tokio::spawn(async move {
            let secured = tokio::select! {
                secured = accept_tls(stream, tls, time) => secured,
                () = connection.wait_for_order(ConnectionOrder::Close) => None,
            };
            if let Some(stream) = secured {
                serve(shared, stream, (connection, inbound)).await;
            }
        });
    }
}

/// Serves the requests of one connection.
async fn serve<S>(
    shared: Arc<SharedState>,
    stream: S,
    (connection, inbound): (Arc<Connection>, Arc<InboundConnection>),
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let builder = http_builder(&shared.settings.get().config.limits);
    let served = Arc::clone(&connection);
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(&served));
        request.extensions_mut().insert(Arc::clone(&inbound));
        dispatch::handle(Arc::clone(&shared), request)
    });
    let serving = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    let mut serving = pin!(serving);
    let mut finishing = false;
    loop {
        tokio::select! {
            // The error of a connection is ignored: its client went away.
            _ = serving.as_mut() => return,
            () = connection.wait_for_order(ConnectionOrder::Close) => return,
            () = connection.wait_for_order(ConnectionOrder::Finish), if !finishing => {
                finishing = true;
                // hyper answers the open request and then closes. The loop goes on, because this
                // only takes effect while `serving` is polled.
                serving.as_mut().graceful_shutdown();
            }
        }
    }
}

/// The HTTP settings of client connections.
fn http_builder(limits: &ProxyLimits) -> auto::Builder<TokioExecutor> {
    let ping = Duration::from_millis(limits.ping_ms);
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        // `Connections` has the deadlines for heads, also for a client that has sent nothing yet.
        .header_read_timeout(None)
        .max_buf_size(BUFFER);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(ping)
        .keep_alive_timeout(ping)
        .max_concurrent_streams(u32::try_from(limits.streams).unwrap_or(u32::MAX))
        .max_header_list_size(HEADER_LIST)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(BUFFER);
    builder
}
