//! `GET /metrics`: counters, histograms and gauges for Prometheus.

use std::sync::Arc;
use std::time::Duration;

use http::Response;

use crate::records::exposition::{Exposition, MEDIA_TYPE, MetricKind};
use crate::request::context::RequestContext;
use crate::request::shared::SharedState;
use crate::resources::deadline;
use crate::transport::body::ProxyBody;

/// How long the store may take to say how much it holds. Without an answer those figures are left
/// out of this scrape.
const STORE_TIME: Duration = Duration::from_secs(5);

pub(super) async fn answer(context: RequestContext) -> Response<ProxyBody> {
    let mut text = Exposition::default();
    context.shared.metrics().write(&mut text);
    write_gauges(&context.shared, &mut text);
    let shared = Arc::clone(&context.shared);
    let sizes = deadline::run_within(STORE_TIME, move || StoreSizes::of(&shared)).await;
    if let Ok(Some(sizes)) = sizes {
        sizes.write(&mut text);
    }
    context.reply_text(MEDIA_TYPE, text.into_text())
}

fn write_gauges(shared: &SharedState, to: &mut Exposition) {
    let report = shared.report();
    let is_usable = shared.store_state.usable().is_some();
    let gauges = [
        (
            "trimtab_open_requests",
            "Requests under way.",
            report.open as f64,
        ),
        (
            "trimtab_connections",
            "Open connections of clients.",
            report.connections as f64,
        ),
        (
            "trimtab_sessions",
            "Client sessions in memory.",
            report.sessions as f64,
        ),
        (
            "trimtab_memory_bytes",
            "Bytes of the memory budget in use.",
            report.memory_bytes as f64,
        ),
        (
            "trimtab_store_usable",
            "1 if requests can be managed with the store, else 0.",
            f64::from(u8::from(is_usable)),
        ),
    ];
    for (name, help, value) in gauges {
        to.single(name, MetricKind::Gauge, help, value);
    }
    let counters = [
        (
            "trimtab_store_errors_total",
            "Failures of the store.",
            shared.store_state.failures(),
        ),
        (
            "trimtab_audit_lost_total",
            "Lines of the audit log that could not be written.",
            report.audit_lost,
        ),
    ];
    for (name, help, value) in counters {
        to.single(name, MetricKind::Counter, help, value as f64);
    }
    // The usual way to export a version in this format: a constant 1 with a label.
    let name = "trimtab_build_info";
    to.family(name, MetricKind::Gauge, "The version, as a label.");
    to.sample(name, &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
}

/// How much the store holds.
struct StoreSizes {
    sessions: usize,
    outputs: u64,
    bytes: u64,
}

impl StoreSizes {
    fn of(shared: &SharedState) -> Option<Self> {
        let sessions = shared.store_state.readable()?.store.sessions().ok()?;
        Some(Self {
            sessions: sessions.len(),
            outputs: sessions.iter().map(|session| session.outputs).sum(),
            bytes: sessions.iter().map(|session| session.byte_size).sum(),
        })
    }

    fn write(&self, to: &mut Exposition) {
        let gauges = [
            (
                "trimtab_store_sessions",
                "Sessions in the store.",
                self.sessions as f64,
            ),
            (
                "trimtab_store_outputs",
                "Outputs in the store.",
                self.outputs as f64,
            ),
            (
                "trimtab_store_bytes",
                "Original size of all outputs in the store.",
                self.bytes as f64,
            ),
        ];
        for (name, help, value) in gauges {
            to.single(name, MetricKind::Gauge, help, value);
        }
    }
}
