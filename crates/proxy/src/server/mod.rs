//! Starts, runs and stops the proxy. `Proxy` collects the settings and starts everything;
//! `RunningProxy` is the handle that the CLI keeps. `connection_acceptor` takes connections and
//! gives each request to `dispatch`.

mod arrival;
mod connection_acceptor;
mod dispatch;
mod model_call;
#[cfg(test)]
mod planning_growth;
mod retention;
mod websocket;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use thiserror::Error;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use trimtab::network::OutboundNetwork;
use trimtab_store::Store;
use trimtab_wire::catalogue::Catalogue;

use self::connection_acceptor::{ConnectionAcceptor, StopSignal};
use crate::access::{self, InboundTls, TlsProblem};
use crate::config::{ProxyConfig, ProxyConfigError};
use crate::conversation::store_state::{OpenStore, StoreOpening, StoreState};
use crate::history::CallHistory;
use crate::records::audit_log::AuditLog;
use crate::records::metrics::Metrics;
use crate::records::record::{ProxyReport, Record, RecordKeeper, RecordSink, Recorder};
use crate::request::shared::{CurrentSettings, DoctorChecks, LiveSettings, SharedState};
use crate::resources::memory_budget::MemoryBudget;
use crate::resources::notices::{NoticeLevel, NoticeSink, Notices};
use crate::telemetry::{self, OtlpTarget};
use crate::transport::upload_progress::ConnectionOrder;
use crate::transport::upstream_client::UpstreamClient;

/// How many connections may wait to be accepted. Clients beyond that retry after a second.
const BACKLOG: u32 = 4_096;
/// Time limit for writing the last lines of the audit log at shutdown.
const AUDIT_TIME: Duration = Duration::from_secs(5);
/// The reasons why a proxy does not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The settings are invalid.
    #[error(transparent)]
    Config(#[from] ProxyConfigError),
    /// Listening on the address failed.
    #[error(
        "cannot listen on {address}: {why}\nhint: choose another with --listen or proxy.listen; port 0 takes any that is free"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        why: String,
    },
    /// The certificate or its key cannot be used.
    #[error("{0}")]
    Tls(#[from] TlsProblem),
}

/// A proxy that has not started yet.
pub struct Proxy {
    config: ProxyConfig,
    open: OpenStore,
    sink: Option<RecordSink>,
    notices: Option<NoticeSink>,
    catalogue: Option<Catalogue>,
    outgoing: OutboundNetwork,
    checks: Option<DoctorChecks>,
    otlp: Option<OtlpTarget>,
}

impl Proxy {
    /// A proxy with these settings, which stores outputs and sessions in `store`.
    pub fn new(config: ProxyConfig, store: Arc<dyn Store>) -> Self {
        Self::opening(config, move |_| Ok(Arc::clone(&store)))
    }

    /// A proxy with these settings, which opens its store itself. While that fails, requests pass
    /// unchanged, and opening is tried again.
    pub fn opening(
        config: ProxyConfig,
        open: impl Fn(StoreOpening) -> trimtab_store::Result<Arc<dyn Store>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            config,
            open: Box::new(open),
            sink: None,
            notices: None,
            catalogue: None,
            outgoing: OutboundNetwork::default(),
            checks: None,
            otlp: None,
        }
    }

    /// Sends traces and metrics to a collector.
    #[must_use]
    pub fn otlp(mut self, target: Option<OtlpTarget>) -> Self {
        self.otlp = target;
        self
    }

    /// Sets the checks that the dashboard shows. They may block, and return JSON.
    #[must_use]
    pub fn checks(
        mut self,
        checks: impl Fn() -> serde_json::Value + Send + Sync + 'static,
    ) -> Self {
        self.checks = Some(Box::new(checks));
        self
    }

    /// Sends messages for the operator to `notices`: the store fails or works again, sessions were
    /// removed from it, a certificate was reloaded or is invalid, the audit log cannot be written.
    #[must_use]
    pub fn notices(mut self, notices: impl Fn(NoticeLevel, &str) + Send + Sync + 'static) -> Self {
        self.notices = Some(Box::new(notices));
        self
    }

    /// Sends the record of each request to `sink`, at the end of its answer.
    #[must_use]
    pub fn log(mut self, sink: impl Fn(&Record) + Send + Sync + 'static) -> Self {
        self.sink = Some(Box::new(sink));
        self
    }

    /// Uses another catalogue of models than the embedded one.
    #[must_use]
    pub fn catalogue(mut self, catalogue: Catalogue) -> Self {
        self.catalogue = Some(catalogue);
        self
    }

    /// Connects to upstreams through `network`.
    #[must_use]
    pub fn network(mut self, network: OutboundNetwork) -> Self {
        self.outgoing = network;
        self
    }

    /// Starts a proxy on the current runtime.
    pub async fn start(
        config: ProxyConfig,
        store: Arc<dyn Store>,
    ) -> Result<RunningProxy, StartError> {
        Self::new(config, store).run().await
    }

    /// Starts the proxy on the current runtime.
    #[expect(
        clippy::unused_async,
        reason = "it has to be called on a runtime, which only a future shows"
    )]
    pub async fn run(self) -> Result<RunningProxy, StartError> {
        self.config.check()?;
        let tls = Arc::new(InboundTls::new(self.config.tls.as_ref())?);
        let notices = Notices::new(self.notices);
        let audit = Arc::new(AuditLog::new(notices.clone()));
        let listen = self.config.listen;
        let cannot_listen = |error: std::io::Error| StartError::Listen {
            address: listen,
            why: error.to_string(),
        };
        // The port is bound before the audit log is opened. A second proxy that fails here because
        // the port is taken writes no "start" line into the log of the first.
        let listener = listen_on(listen).map_err(cannot_listen)?;
        let address = listener.local_addr().map_err(cannot_listen)?;
        audit.open(self.config.audit.file.as_deref());
        audit.order("start", &address.to_string());
        let limits = self.config.limits;
        let catalogue = self.catalogue.unwrap_or_else(Catalogue::embedded);
        let metrics = Arc::new(Metrics::default());
        let history = CallHistory::start(catalogue.clone(), Arc::clone(&metrics));
        let client = UpstreamClient::new(&limits, self.outgoing);
        let collector = self.otlp.filter(|target| !target.endpoint.is_empty());
        let collector =
            collector.map(|target| telemetry::start(target, client.clone(), notices.clone()));
        let sinks = [self.sink, collector].into_iter().flatten().collect();
        let recorder = Recorder::new(sinks, record_keeper(&history), Arc::clone(&audit), metrics);
        let shared = Arc::new(SharedState::new(
            CurrentSettings::new(LiveSettings::new(self.config)),
            StoreState::new(self.open, notices.clone(), MemoryBudget::new(&limits)),
            client,
            catalogue,
            (Arc::new(recorder), history),
            notices.clone(),
        ));
        shared.set_checks(self.checks);
        // The task gets a weak reference, so it ends by itself when the proxy is dropped.
        tokio::spawn(retention::run(Arc::downgrade(&shared)));
        let (stop, stopped) = watch::channel(StopSignal::Run);
        let acceptor = ConnectionAcceptor {
            shared: Arc::clone(&shared),
            stopped,
            tls: Arc::clone(&tls),
            address,
        };
        let task = tokio::spawn(acceptor.run(listener));
        Ok(RunningProxy {
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

/// Gives records to the dashboard's history.
fn record_keeper(history: &Arc<CallHistory>) -> RecordKeeper {
    let history = Arc::clone(history);
    Box::new(move |record| history.note_record(record))
}

/// Listens on an address.
fn listen_on(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    // On Unix, a restart then need not wait until the connections of the last run have expired.
    // On Windows, the option would let another process listen on the same port.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// A running proxy. Dropping it stops it at once.
pub struct RunningProxy {
    address: SocketAddr,
    shared: Arc<SharedState>,
    stop: watch::Sender<StopSignal>,
    task: Option<JoinHandle<()>>,
    tls: Arc<InboundTls>,
    audit: Arc<AuditLog>,
    notices: Notices,
}

impl RunningProxy {
    /// The address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Figures of all requests so far.
    pub fn report(&self) -> ProxyReport {
        self.shared.report()
    }

    /// Applies other settings from the next request on; open streams continue. The listening
    /// address and the connections to upstreams keep their settings. Certificate, key and audit log
    /// are opened again.
    pub fn reload(&self, config: ProxyConfig) -> Result<(), ProxyConfigError> {
        if let Err(error) = config.check() {
            self.audit.order("reload", "refused");
            return Err(error);
        }
        // A certificate that cannot be read does not stop the reload: the old one stays in force,
        // and the other settings still apply.
        if let Err(problem) = self.tls.read(config.tls.as_ref()) {
            self.notices.error(&access::unusable_files_notice(&problem));
        }
        self.audit.open(config.audit.file.as_deref());
        self.audit.order("reload", "");
        self.shared.memory.set_limits(&config.limits);
        self.shared.settings.set(LiveSettings::new(config));
        Ok(())
    }

    /// Accepts no more connections, gives open streams the configured time to end, and stops.
    pub async fn shutdown(mut self) {
        let time = self.shared.settings.get().config.limits.drain_time();
        // `/readyz` answers 503 from here on, so a load balancer sends nothing new while we drain.
        self.shared.is_stopping.store(true, Ordering::Relaxed);
        self.stop.send_replace(StopSignal::Drain(time));
        if let Some(task) = self.task.take() {
            // An error means that the task panicked; in both cases it has ended.
            task.await.unwrap_or(());
        }
        let shared = Arc::clone(&self.shared);
        // The store is flushed after the last connection has ended, because its answers still
        // write.
        let flushed = tokio::task::spawn_blocking(move || shared.store_state.close());
        flushed.await.unwrap_or(());
        self.audit.order("stop", "");
        let audit = Arc::clone(&self.audit);
        let written = tokio::task::spawn_blocking(move || audit.close());
        // The timeout keeps a hanging disk from blocking the shutdown.
        drop(tokio::time::timeout(AUDIT_TIME, written).await);
    }
}

impl Drop for RunningProxy {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            self.stop.send_replace(StopSignal::Drain(Duration::ZERO));
            task.abort();
            self.shared.connections.tell_all(ConnectionOrder::Close);
        }
    }
}
