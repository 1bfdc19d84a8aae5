//! Traces and metrics over OTLP, as JSON over HTTP, if an endpoint is set.
//!
//! Requests only put their record into a channel. A task collects records and sends them together.
//! Records that cannot be sent are dropped, so a collector that is down costs nothing.

mod spans;
mod sums;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Method, Request, Uri};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::records::record::{Record, RecordAction, RecordSink};
use crate::resources::notices::Notices;
use crate::transport::body::full_body;
use crate::transport::upstream_client::UpstreamClient;
use spans::spans_of;
use sums::UsageSums;

/// The maximum number of waiting records; further ones are dropped.
const WAITING: usize = 2_048;
/// The maximum number of records per batch.
const BATCH: usize = 256;
/// How long a batch waits for more records.
const PAUSE: Duration = Duration::from_secs(2);
/// The time limit for the collector.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where traces and metrics go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtlpTarget {
    /// The base address, such as `http://127.0.0.1:4318`.
    pub endpoint: String,
    /// Headers to send along, such as a key of the collector.
    pub headers: Vec<(String, String)>,
}

/// Starts sending records to a collector, and returns the sink for them.
pub(crate) fn start(target: OtlpTarget, client: UpstreamClient, notices: Notices) -> RecordSink {
    let (sender, records) = mpsc::channel(WAITING);
    let exporter = OtlpExporter {
        target,
        client,
        notices,
        sums: UsageSums::new(),
        has_failed: AtomicBool::new(false),
    };
    tokio::spawn(exporter.run(records));
    Box::new(move |record: &Record| {
        if record.dialect.is_some() && record.action != RecordAction::Answered {
            drop(sender.try_send(Arc::new(record.clone())));
        }
    })
}

struct OtlpExporter {
    target: OtlpTarget,
    client: UpstreamClient,
    notices: Notices,
    sums: UsageSums,
    /// True if the last batch could not be sent, which was reported.
    has_failed: AtomicBool,
}

impl OtlpExporter {
    async fn run(mut self, mut records: mpsc::Receiver<Arc<Record>>) {
        while let Some(first) = records.recv().await {
            let mut batch = vec![first];
            let until = Instant::now() + PAUSE;
            while batch.len() < BATCH {
                match tokio::time::timeout_at(until, records.recv()).await {
                    Ok(Some(record)) => batch.push(record),
                    Ok(None) | Err(_) => break,
                }
            }
            self.send(&batch).await;
        }
    }

    async fn send(&mut self, batch: &[Arc<Record>]) {
        let spans: Vec<Value> = batch.iter().flat_map(|record| spans_of(record)).collect();
        // The sums are cumulative, so a batch that cannot be sent is contained in the next one.
        for record in batch {
            self.sums.add(record);
        }
        let scope = json!({"name": "trimtab", "version": env!("CARGO_PKG_VERSION")});
        let resource = json!({"attributes": [
            {"key": "service.name", "value": {"stringValue": "trimtab"}},
            {"key": "service.version", "value": {"stringValue": env!("CARGO_PKG_VERSION")}},
        ]});
        let traces = json!({"resourceSpans": [{"resource": resource.clone(),
            "scopeSpans": [{"scope": scope.clone(), "spans": spans}]}]});
        let metrics = json!({"resourceMetrics": [{"resource": resource,
            "scopeMetrics": [{"scope": scope, "metrics": self.sums.metrics()}]}]});
        // If traces cannot be sent, metrics cannot either: it is the same server.
        let sent = match self.post("v1/traces", &traces).await {
            Ok(()) => self.post("v1/metrics", &metrics).await,
            failed => failed,
        };
        self.tell(sent);
    }

    async fn post(&self, path: &str, body: &Value) -> Result<(), String> {
        let base = self.target.endpoint.trim_end_matches('/');
        let uri: Uri = format!("{base}/{path}")
            .parse()
            .map_err(|_| "its address cannot be read".to_owned())?;
        let mut request = Request::new(full_body(body.to_string()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in &self.target.headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
                headers.insert(name, value);
            }
        }
        let sending = self.client.send(request, PATIENCE);
        let answer = match tokio::time::timeout(PATIENCE, sending).await {
            Ok(answer) => answer.map_err(|failed| failed.reason)?,
            Err(_) => return Err("it does not answer".to_owned()),
        };
        if answer.status().is_success() {
            Ok(())
        } else {
            Err(format!("it answered with status {}", answer.status()))
        }
    }

    /// Tells the operator once when it fails, and once when it works again.
    fn tell(&self, sent: Result<(), String>) {
        let before = self.has_failed.swap(sent.is_err(), Ordering::Relaxed);
        match sent {
            Err(why) if !before => self.notices.warning(&format!(
                "traces and metrics cannot be sent to the collector: {why}"
            )),
            Ok(()) if before => self.notices.info("traces and metrics are sent again"),
            _ => {}
        }
    }
}
