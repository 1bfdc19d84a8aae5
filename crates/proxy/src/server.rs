//! Starting, running and stopping.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use trimtab_store::Store;
use trimtab_wire::catalogue::Catalogue;

use crate::access::{
    self, AuditLog, InboundConnection, InboundTls, TlsProblem, follow_files, secure,
};
use crate::client::Client;
use crate::config::{ConfigError, ProxyConfig};
use crate::notices::{NoticeSink, Notices};
use crate::record::{Book, Record, Report, Sink};
use crate::service::{self, Shared};
use crate::settings::{Current, Settings};

/// How much is read from a connection at a time, at most.
const READ_BUFFER: usize = 1 << 20;
/// How long the last lines of the audit log may take.
const AUDIT_TIME: Duration = Duration::from_secs(5);
/// How long to wait before accepting again after that failed: usually too many open files.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Why a proxy did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The settings are not good.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The address cannot be listened on.
    #[error(
        "cannot listen on {address}: {why}\nhint: choose another with --listen or proxy.listen; port 0 takes any that is free"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        why: String,
    },
    /// Certificate or key cannot be used.
    #[error("{0}")]
    Tls(#[from] TlsProblem),
}

/// A proxy that is about to start.
pub struct Proxy {
    config: ProxyConfig,
    store: Arc<dyn Store>,
    sink: Option<Sink>,
    notices: Option<NoticeSink>,
    catalogue: Option<Catalogue>,
}

impl Proxy {
    /// A proxy with these settings, which keeps what it must keep in `store`.
    pub fn new(config: ProxyConfig, store: Arc<dyn Store>) -> Self {
        Self {
            config,
            store,
            sink: None,
            notices: None,
            catalogue: None,
        }
    }

    /// The same, telling `sink` what was done with each request, at the end of its answer.
    #[must_use]
    pub fn log(mut self, sink: impl Fn(&Record) + Send + Sync + 'static) -> Self {
        self.sink = Some(Box::new(sink));
        self
    }

    /// The same, telling `notices` what an operator should know: that a certificate was read
    /// again or cannot be used, that the audit log cannot be written.
    #[must_use]
    pub fn notices(mut self, notices: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.notices = Some(Box::new(notices));
        self
    }

    /// The same, with another catalogue of models than the embedded one.
    #[must_use]
    pub fn catalogue(mut self, catalogue: Catalogue) -> Self {
        self.catalogue = Some(catalogue);
        self
    }

    /// Starts a proxy on the runtime that this is called from.
    pub async fn start(config: ProxyConfig, store: Arc<dyn Store>) -> Result<Running, StartError> {
        Self::new(config, store).run().await
    }

    /// Starts it on the runtime that this is called from.
    pub async fn run(self) -> Result<Running, StartError> {
        self.config.check()?;
        let tls = Arc::new(InboundTls::new(self.config.tls.as_ref())?);
        let notices = Notices::new(self.notices);
        let audit = Arc::new(AuditLog::new(notices.clone()));
        let listen = self.config.listen;
        let unheard = |error: std::io::Error| StartError::Listen {
            address: listen,
            why: error.to_string(),
        };
        let listener = TcpListener::bind(listen).await.map_err(unheard)?;
        let address = listener.local_addr().map_err(unheard)?;
        audit.open(self.config.audit.file.as_deref());
        audit.order("start", &address.to_string());
        let limits = self.config.limits;
        let shared = Arc::new(Shared::new(
            Current::new(Settings::new(self.config)),
            self.store,
            Client::new(&limits),
            self.catalogue.unwrap_or_else(Catalogue::embedded),
            Arc::new(Book::new(self.sink, Arc::clone(&audit))),
        ));
        let (stop, stopped) = watch::channel(Stop::Run);
        let acceptor = Acceptor {
            shared: Arc::clone(&shared),
            stopped,
            connections: Arc::new(Semaphore::new(limits.connections)),
            header_time: Duration::from_millis(limits.header_ms),
            tls: Arc::clone(&tls),
            address,
        };
        let task = tokio::spawn(acceptor.run(listener));
        tokio::spawn(follow_files(Arc::clone(&tls), notices.clone()));
        Ok(Running {
            address,
            shared,
            stop,
            task: Some(task),
            tls,
            audit,
            notices,
        })
    }
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    Run,
    /// Accept nothing more, and let open streams end for so long.
    Drain(Duration),
}

/// A proxy that runs. Dropping it stops it at once.
pub struct Running {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: watch::Sender<Stop>,
    task: Option<JoinHandle<()>>,
    tls: Arc<InboundTls>,
    audit: Arc<AuditLog>,
    notices: Notices,
}

impl Running {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Figures of all requests so far.
    pub fn report(&self) -> Report {
        self.shared.report()
    }

    /// Lets other settings hold from the next request on; streams that are open go on. Where
    /// to listen and how to connect stay as they are. Certificate, key and audit log are opened
    /// again.
    pub fn reload(&self, config: ProxyConfig) -> Result<(), ConfigError> {
        if let Err(error) = config.check() {
            self.audit.order("reload", "refused");
            return Err(error);
        }
        if let Err(problem) = self.tls.read(config.tls.as_ref()) {
            self.notices.say(&access::kept(&problem));
        }
        self.audit.open(config.audit.file.as_deref());
        self.audit.order("reload", "");
        self.shared.settings.set(Settings::new(config));
        Ok(())
    }

    /// Accepts nothing more, lets open streams end within the time that the settings give
    /// them, and ends.
    pub async fn shutdown(mut self) {
        let time = self.shared.settings.get().config.limits.drain_time();
        self.stop.send_replace(Stop::Drain(time));
        if let Some(task) = self.task.take() {
            // It ends by itself, or panicked: either way it is over.
            task.await.unwrap_or(());
        }
        let shared = Arc::clone(&self.shared);
        let flushed = tokio::task::spawn_blocking(move || shared.families.flush());
        flushed.await.unwrap_or(());
        self.audit.order("stop", "");
        let audit = Arc::clone(&self.audit);
        let written = tokio::task::spawn_blocking(move || audit.close());
        // A disk that hangs does not hold us up.
        drop(tokio::time::timeout(AUDIT_TIME, written).await);
    }

    /// Waits for SIGTERM or Ctrl-C, then shuts down; a second signal ends it at once.
    pub async fn until_signal(self) -> std::io::Result<()> {
        signal().await?;
        tokio::select! {
            () = self.shutdown() => Ok(()),
            again = signal() => again,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            self.stop.send_replace(Stop::Drain(Duration::ZERO));
            task.abort();
        }
    }
}

#[cfg(unix)]
async fn signal() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = terminate.recv() => Ok(()),
        pressed = tokio::signal::ctrl_c() => pressed,
    }
}

#[cfg(not(unix))]
async fn signal() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}

/// Accepts connections: permit, accept, spawn, drain.
struct Acceptor {
    shared: Arc<Shared>,
    stopped: watch::Receiver<Stop>,
    connections: Arc<Semaphore>,
    header_time: Duration,
    tls: Arc<InboundTls>,
    /// Where we listen.
    address: SocketAddr,
}

impl Acceptor {
    async fn run(mut self, listener: TcpListener) {
        let graceful = GracefulShutdown::new();
        let time = loop {
            tokio::select! {
                accepted = accept(&listener, &self.connections) => {
                    if let Some((stream, peer, permit)) = accepted {
                        self.serve((stream, peer), permit, &graceful);
                    }
                }
                changed = self.stopped.changed() => {
                    match (changed, *self.stopped.borrow()) {
                        (Ok(()), Stop::Run) => {}
                        (Ok(()), Stop::Drain(time)) => break time,
                        (Err(_), _) => break Duration::ZERO,
                    }
                }
            }
        };
        drop(listener);
        // What is still open after that time is cut off with its tasks.
        tokio::time::timeout(time, graceful.shutdown())
            .await
            .unwrap_or(());
    }

    fn serve(
        &self,
        (stream, peer): (TcpStream, SocketAddr),
        permit: tokio::sync::OwnedSemaphorePermit,
        graceful: &GracefulShutdown,
    ) {
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(self.header_time)
            .max_buf_size(READ_BUFFER);
        builder.http2().timer(TokioTimer::new());
        let shared = Arc::clone(&self.shared);
        let local = stream.local_addr().unwrap_or(self.address);
        let tls = self.tls.acceptor();
        let inbound = Arc::new(InboundConnection::new(peer, local, tls.is_some()));
        let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(Arc::clone(&inbound));
            service::handle(Arc::clone(&shared), request)
        });
        let (watcher, header_time) = (graceful.watcher(), self.header_time);
        let serving = async move {
            let stream = secure(stream, tls, header_time).await?;
            let connection = builder
                .serve_connection_with_upgrades(TokioIo::new(stream), service)
                .into_owned();
            watcher.watch(connection).await.ok()
        };
        let mut stopped = self.stopped.clone();
        tokio::spawn(async move {
            let _permit = permit;
            tokio::select! {
                // A client that went away is no event of ours.
                _ = serving => {}
                () = out_of_time(&mut stopped) => {}
            }
        });
    }
}

/// Waits until the time to drain is over.
async fn out_of_time(stopped: &mut watch::Receiver<Stop>) {
    loop {
        let stop = *stopped.borrow_and_update();
        if let Stop::Drain(time) = stop {
            return tokio::time::sleep(time).await;
        }
        if stopped.changed().await.is_err() {
            return;
        }
    }
}

async fn accept(
    listener: &TcpListener,
    connections: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
    let permit = Arc::clone(connections).acquire_owned().await.ok()?;
    let Ok((stream, peer)) = listener.accept().await else {
        tokio::time::sleep(ACCEPT_AGAIN).await;
        return None;
    };
    // Without it events wait for each other; with it they only cost more packets.
    stream.set_nodelay(true).ok()?;
    Some((stream, peer, permit))
}
