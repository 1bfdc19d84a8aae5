//! Connections.

use std::sync::Arc;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::exchange::UpstreamExchange;
use super::socket::{Fuse, Socket};

/// Serves connections until told to stop, then breaks them off.
pub(super) async fn serve(
    listener: TcpListener,
    exchange: Arc<UpstreamExchange>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = stopped.changed() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(connection(stream, Arc::clone(&exchange)));
                }
            }
        }
    }
    connections.shutdown().await;
}

async fn connection(stream: TcpStream, exchange: Arc<UpstreamExchange>) {
    let _ = stream.set_nodelay(true);
    let fuse = Fuse::default();
    let socket = TokioIo::new(Socket::new(stream, fuse.clone()));
    let service = service_fn(move |request| {
        let (exchange, fuse) = (Arc::clone(&exchange), fuse.clone());
        async move { exchange.handle(request, fuse).await }
    });
    // A client that goes away is not our concern.
    let _ = auto::Builder::new(TokioExecutor::new())
        .serve_connection(socket, service)
        .await;
}
