//! What was done with a request, and the figures of all requests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde::Serialize;
use trimtab_model::estimate::Measure;
use trimtab_model::{Dialect, SavedTokens, Usage};

use crate::access::CountedRequest;
use crate::records::audit_log::AuditLog;
use crate::records::metrics::Metrics;
use crate::records::plan_note::PlanNote;
use crate::records::token_fit::TokenFits;

/// What was done with a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordAction {
    /// It passed as it came.
    #[default]
    Passed,
    /// It was looked into and nothing needed to be changed.
    Unchanged,
    /// It was sent with a window of ours.
    Edited,
    /// What would have been done is reported; it was sent as it came.
    Observed,
    /// It was answered by us.
    Answered,
    /// It was refused by us.
    Refused,
    /// It is a request of our own: a model was asked for a summary.
    Asked,
}

impl RecordAction {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Unchanged => "unchanged",
            Self::Edited => "edited",
            Self::Observed => "observed",
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::Asked => "asked",
        }
    }
}

/// A prompt as it came and as it is sent: messages and tools of both, by the same measure.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PromptSizes {
    /// Tokens of what came and of what is sent, as the model is known to count; the same figure
    /// if what is sent is what came.
    pub(crate) tokens: (u64, u64),
    /// What both are made of.
    pub(crate) measures: (Measure, Measure),
}

/// What was done with one request. Holds no header, no body and no key.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Record {
    /// When it came, in milliseconds since 1970.
    pub time_ms: u64,
    /// The id by which it is found in all logs: the client's own, or ours.
    pub request_id: String,
    /// Whose it is, as a digest; empty if nobody knows.
    pub tenant: String,
    /// The name of the token that it carried; empty if it carried none.
    pub token: String,
    /// The address that it came from.
    pub peer: String,
    /// The program that sent it, as it calls itself.
    pub client: String,
    /// The trace that it belongs to, as its header `traceparent` says.
    #[serde(skip)]
    pub trace_parent: String,
    /// Its method.
    pub method: String,
    /// Its path, without the query.
    pub path: String,
    /// The upstream that it went to.
    pub upstream: String,
    /// Its dialect, where it was looked into.
    pub dialect: Option<Dialect>,
    /// The model that it asked for.
    pub model: String,
    /// The session that it belongs to; empty if it has none.
    pub session: String,
    /// What was done with it.
    pub action: RecordAction,
    /// Why nothing was done; empty otherwise.
    pub reason: &'static str,
    /// More about why, where there is more to say.
    pub detail: String,
    /// The status that the client got.
    pub status: u16,
    /// Estimate of the prompt as it came, in tokens: messages and tools.
    pub tokens_before: u64,
    /// Estimate of the prompt as it was sent, in tokens by the same measure. If the action is
    /// `observed`, as it would have been sent.
    pub tokens_after: u64,
    /// What the prompt was made of, as it came and as it was sent.
    #[serde(skip)]
    pub measures: (Measure, Measure),
    /// What it took of a model, and what it would have taken without us. Everything that is
    /// said about saved tokens is a sum of these.
    pub saved: SavedTokens,
    /// Tokens of the original prompt beyond the model's window. Nobody could have been billed for
    /// them, except by a model with a larger window.
    pub beyond_window: u64,
    /// The model's window in tokens; 0 if it is not known.
    pub window: u64,
    /// What the provider reported.
    pub usage: Option<Usage>,
    /// What the provider reported for answers that the client does not see, in which the model
    /// asked for stored outputs; added up.
    pub hidden: Option<Usage>,
    /// How often it was sent again, smaller.
    pub recoveries: u32,
    /// What was repaired in it because its provider would have refused it: kinds of repairs,
    /// with commas between them.
    pub repairs: String,
    /// How many retrieval calls were served.
    pub retrievals: u32,
    /// What its session did since the request before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<PlanNote>,
    /// True if the provider read far less than was sent, and did not say so.
    pub silent_overflow: bool,
    /// Milliseconds of our own work before it was sent.
    pub plan_ms: f64,
    /// Milliseconds until the head of the answer.
    pub answer_ms: f64,
    /// Milliseconds until the end of the answer.
    pub total_ms: f64,
    /// Bytes of its body, as they came.
    pub bytes_in: u64,
    /// Bytes of the answer's body, as they were sent.
    pub bytes_out: u64,
    /// True if the answer did not end by itself.
    pub cut: bool,
}

impl Record {
    /// True if a model answered it.
    pub fn is_answered_call(&self) -> bool {
        self.dialect.is_some() && self.status < 400 && self.action != RecordAction::Answered
    }

    pub(crate) fn set_sizes(&mut self, sizes: PromptSizes) {
        (self.tokens_before, self.tokens_after) = sizes.tokens;
        self.measures = sizes.measures;
    }

    /// What it took and would have taken, with what the session learned from reported usage; and
    /// the tokens of the original prompt beyond the window.
    fn saved_tokens(&self, fits: &mut TokenFits) -> (SavedTokens, u64) {
        if !self.is_answered_call() {
            return (SavedTokens::default(), 0);
        }
        let reported = self.usage.map(|usage| usage.prompt());
        let (came, changed) = self.measures;
        let is_changed = self.action == RecordAction::Edited;
        let sent = if is_changed { changed } else { came };
        let is_managed = sent != Measure::default() && !self.silent_overflow;
        if let Some(reported) = reported.filter(|_| is_managed) {
            fits.learn(&self.session, sent, reported);
        }
        let mut beyond = 0;
        let saved = match self.action {
            RecordAction::Asked => SavedTokens::of_extra(reported.unwrap_or_default()),
            RecordAction::Edited => {
                let window = Some(self.window).filter(|window| *window > 0);
                let tokens = |text: Measure| fits.tokens(&self.session, &text);
                // Some kinds of text may have become more, such as the tools of ours.
                let difference = tokens(came - sent) - tokens(sent - came);
                let sent = self.tokens_after;
                let came = sent.saturating_add_signed(difference);
                let saved = SavedTokens::of_changed(came, sent, reported, window);
                let whole = SavedTokens::of_changed(came, sent, reported, None);
                beyond = whole.without - saved.without;
                saved
            }
            _ => SavedTokens::of_unchanged(reported.unwrap_or(self.tokens_before)),
        };
        let hidden = self.hidden.map_or(0, |usage| usage.prompt());
        (saved + SavedTokens::of_extra(hidden), beyond)
    }
}

/// Figures of all requests so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProxyReport {
    /// Requests that ended.
    pub requests: u64,
    /// Of those, sent with a window of ours.
    pub edited: u64,
    /// Of those, passed on as they came although they were looked into, because something of
    /// ours failed or was too slow.
    pub failed_open: u64,
    /// Tokens of all prompts, as they would have been sent without us.
    pub tokens_before: u64,
    /// Tokens of all prompts that were sent, those for summaries and for answers that no client
    /// sees included.
    pub tokens_after: u64,
    /// The difference: below zero if more was sent.
    pub tokens_saved: i64,
    /// Calls that would not have fit their model's window without us. Each counts as a full
    /// window before.
    pub over_window: u64,
    /// What the providers reported, added up.
    pub usage: Usage,
    /// Overflows that were recovered from.
    pub recovered: u64,
    /// Retrieval calls that were served.
    pub retrievals: u64,
    /// Overflows that nobody reported.
    pub silent_overflows: u64,
    /// Requests of our own for summaries; their usage is in the sum.
    pub summaries: u64,
    /// Requests that passed as they came because there was no memory for them.
    pub over_memory: u64,
    /// Requests that passed as they came because the provider keeps the rest of their
    /// conversation, and it was not seen here.
    pub partial: u64,
    /// Sessions in memory.
    pub sessions: u64,
    /// Connections of clients that are open, tunnels included.
    pub connections: u64,
    /// Bytes of the memory budget that requests and caches take now.
    pub memory_bytes: u64,
    /// Requests that are under way.
    pub open: u64,
    /// What is wrong with the store, if something is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// Lines of the audit log that could not be written.
    pub audit_lost: u64,
}

/// Where records go.
pub type RecordSink = Box<dyn Fn(&Record) + Send + Sync>;

/// Adds records up, and hands them on.
pub(crate) struct Recorder {
    report: Mutex<ProxyReport>,
    fits: Mutex<TokenFits>,
    sinks: Vec<RecordSink>,
    audit: Arc<AuditLog>,
    pub(crate) metrics: Arc<Metrics>,
}

impl Recorder {
    pub(crate) fn new(sinks: Vec<RecordSink>, audit: Arc<AuditLog>, metrics: Arc<Metrics>) -> Self {
        Self {
            report: Mutex::default(),
            fits: Mutex::default(),
            sinks,
            audit,
            metrics,
        }
    }

    /// The figures so far.
    pub(crate) fn report(&self) -> ProxyReport {
        let report = self.with(|report| report.clone()).unwrap_or_default();
        ProxyReport {
            audit_lost: self.audit.lost(),
            ..report
        }
    }

    pub(crate) fn begin(&self) {
        self.with(|report| report.open += 1);
    }

    fn end(&self, record: &mut Record) {
        if let Ok(mut fits) = self.fits.lock() {
            (record.saved, record.beyond_window) = record.saved_tokens(&mut fits);
        }
        self.with(|report| add(report, record));
        self.audit.request(record);
        self.metrics.add(record);
        for sink in &self.sinks {
            sink(record);
        }
    }

    /// A lock that is poisoned only costs its figure.
    fn with<T>(&self, change: impl FnOnce(&mut ProxyReport) -> T) -> Option<T> {
        self.report
            .lock()
            .ok()
            .map(|mut report| change(&mut report))
    }
}

/// Why a request passed that we would have managed, had nothing gone wrong.
pub(crate) const OUR_FAILURES: [&str; 6] =
    ["failed", "panicked", "slow", "busy", "memory", "store"];

fn add(report: &mut ProxyReport, record: &Record) {
    report.open = report.open.saturating_sub(1);
    report.requests += u64::from(record.action != RecordAction::Asked);
    report.summaries += u64::from(record.action == RecordAction::Asked);
    report.edited += u64::from(record.action == RecordAction::Edited);
    report.failed_open += u64::from(OUR_FAILURES.contains(&record.reason));
    report.over_memory += u64::from(record.reason == "memory");
    report.partial += u64::from(record.reason == "partial");
    report.tokens_before += record.saved.without;
    report.tokens_after += record.saved.with;
    report.tokens_saved += record.saved.saved();
    report.over_window += record.saved.over_window;
    report.recovered += u64::from(record.recoveries > 0 && record.status < 300);
    report.retrievals += u64::from(record.retrievals);
    report.silent_overflows += u64::from(record.silent_overflow);
    for usage in [record.usage, record.hidden].into_iter().flatten() {
        report.usage = report.usage + usage;
    }
}

/// A record in the making: it is written when this is dropped, at the end of the answer.
pub(crate) struct PendingRecord {
    pub(crate) record: Record,
    /// Counts the request against the limits of its tenant.
    pub(crate) counted: Option<CountedRequest>,
    /// Counts the bytes of its body.
    pub(crate) body_bytes: Arc<AtomicU64>,
    recorder: Arc<Recorder>,
    started: Instant,
}

impl PendingRecord {
    pub(crate) fn new(book: &Arc<Recorder>, method: &str, path: &str) -> Self {
        book.begin();
        let path = path.split('?').next().unwrap_or_default();
        Self {
            record: Record {
                time_ms: trimtab_store::now_millis(),
                method: method.to_owned(),
                path: path.chars().take(200).collect(),
                ..Record::default()
            },
            counted: None,
            body_bytes: Arc::default(),
            recorder: Arc::clone(book),
            started: Instant::now(),
        }
    }

    /// Says why the request passes as it came.
    pub(crate) fn set_reason(&mut self, reason: &'static str) {
        self.record.reason = reason;
    }

    pub(crate) fn elapsed_ms(&self) -> f64 {
        self.started.elapsed().as_secs_f64() * 1e3
    }
}

impl Drop for PendingRecord {
    fn drop(&mut self) {
        self.record.total_ms = self.elapsed_ms();
        self.record.bytes_in = self.body_bytes.load(Ordering::Relaxed);
        if let Some(counted) = &mut self.counted {
            counted.charge_rest(self.record.bytes_in);
        }
        self.recorder.end(&mut self.record);
    }
}
