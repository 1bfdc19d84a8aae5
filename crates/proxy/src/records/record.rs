//! The record of a request: what was done with it, and the figures of all requests. It is written
//! when the last byte of the answer is sent.

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

/// The longest name of a model in a record, in characters. It comes from a client, and records wait
/// in channels and are kept for the dashboard.
const LONGEST_MODEL: usize = 256;
/// The longest detail in a record, in characters. It can quote the request.
const LONGEST_DETAIL: usize = 2_000;

/// What was done with a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordAction {
    /// It passed unchanged.
    #[default]
    Passed,
    /// It was managed, and its messages went unchanged; our tools may have been added.
    Unchanged,
    /// It was sent with a changed window.
    Edited,
    /// It was sent unchanged, and the possible changes are reported.
    Observed,
    /// The proxy answered it.
    Answered,
    /// The proxy refused it.
    Refused,
    /// It is our own request for a summary.
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

/// The original and the sent prompt, messages and tools, by the same measure.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PromptSizes {
    /// The calibrated tokens of both; equal if nothing was changed.
    pub(crate) tokens: (u64, u64),
    /// The measures of both.
    pub(crate) measures: (Measure, Measure),
    /// The measure of our tools in the sent prompt.
    pub(crate) our_tools: Measure,
}

/// How many messages with reasoning a conversation has, and how many are sent with it. The others
/// were replaced, or their reasoning would not be valid any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KeptReasoning {
    /// Those that the client sent.
    pub received: usize,
    /// Those whose reasoning is sent on.
    pub kept: usize,
}

/// The parts of an original prompt that the client sent before, in any branch of its session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentBefore<T> {
    /// The part that was sent within the lifetime of the provider's cache.
    pub recently: T,
    /// The part that was sent at an unknown time, before a restart or through another proxy.
    pub sometime: T,
}

/// The parts of an original prompt that the client's cache markers cover. A provider that caches by
/// markers keeps nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkedParts<T> {
    /// The part up to the last marker.
    pub all: T,
    /// The part up to the last marker that asks for the long lifetime.
    pub long: T,
}

/// The record of one request. It contains no header, no body and no key.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Record {
    /// The time of its arrival, in milliseconds since 1970.
    pub time_ms: u64,
    /// Its id in all logs: the client's own, or ours.
    pub request_id: String,
    /// Its tenant, as a digest; empty if it has none.
    pub tenant: String,
    /// The name of its token; empty if it has none.
    pub token: String,
    /// The address of its client.
    pub peer: String,
    /// The name of its client program.
    pub client: String,
    /// Its `traceparent` header.
    #[serde(skip)]
    pub trace_parent: String,
    /// Its method.
    pub method: String,
    /// Its path, without the query.
    pub path: String,
    /// The name of its upstream.
    pub upstream: String,
    /// Its dialect, if it calls a model and its body was read.
    pub dialect: Option<Dialect>,
    /// The requested model; the beginning of a very long name.
    pub model: String,
    /// The known model that the requested one is assumed to be like, if it is not known itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub assumed_model: String,
    /// Its session; empty if it has none.
    pub session: String,
    /// Its client session, which contains the sessions of all branches.
    #[serde(skip)]
    pub client_session: String,
    /// The action.
    pub action: RecordAction,
    /// Why it passed unchanged; empty otherwise.
    pub reason: &'static str,
    /// Further details.
    pub detail: String,
    /// The status of the answer.
    pub status: u16,
    /// The estimated tokens of the original prompt, messages and tools.
    pub tokens_before: u64,
    /// The estimated tokens of the sent prompt, by the same measure. If the action is `observed`,
    /// of the prompt that would have been sent.
    pub tokens_after: u64,
    /// The measure of our tools in the sent prompt.
    #[serde(skip)]
    pub our_tools_measure: Measure,
    /// The same in tokens, as the provider counts them.
    #[serde(skip)]
    pub our_tools: u64,
    /// The measures of the original and the sent prompt.
    #[serde(skip)]
    pub measures: (Measure, Measure),
    /// The prompt tokens with and without the proxy. All figures of saved tokens are sums of these.
    pub saved: SavedTokens,
    /// Tokens of the original prompt beyond the model's window. Nobody could have been billed for
    /// them, except by a model with a larger window.
    pub beyond_window: u64,
    /// The parts of the original prompt that the client sent before.
    #[serde(skip)]
    pub sent_before_measures: SentBefore<Measure>,
    /// The same in tokens, as the provider counts them.
    #[serde(skip)]
    pub sent_before: SentBefore<u64>,
    /// The parts of the original prompt that the client's cache markers cover; none if the model
    /// caches without markers.
    #[serde(skip)]
    pub marked_measures: Option<MarkedParts<Measure>>,
    /// The same in tokens, as the provider counts them.
    #[serde(skip)]
    pub marked: Option<MarkedParts<u64>>,
    /// The model's window in tokens; 0 if unknown.
    pub window: u64,
    /// The reported usage.
    pub usage: Option<Usage>,
    /// The total usage of hidden answers, in which the model called the retrieval tools.
    pub hidden: Option<Usage>,
    /// The number of smaller requests after an overflow.
    pub recoveries: u32,
    /// The messages with reasoning, in the original and in the sent prompt.
    pub reasoning: KeptReasoning,
    /// The kinds of repairs without which the provider would have rejected it, separated by commas.
    pub repairs: String,
    /// The number of served retrieval calls.
    pub retrievals: u32,
    /// The plans of its session since the previous request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<PlanNote>,
    /// True if the provider read far less than was sent, without reporting it.
    pub silent_overflow: bool,
    /// Milliseconds until planning was done.
    pub plan_ms: f64,
    /// Milliseconds until the head of the answer.
    pub answer_ms: f64,
    /// Milliseconds until the end of the answer.
    pub total_ms: f64,
    /// The bytes of its body, as received.
    pub bytes_in: u64,
    /// The bytes of the answer's body, as sent.
    pub bytes_out: u64,
    /// True if the answer did not reach its end.
    pub cut: bool,
}

impl Record {
    /// True if a model answered it.
    pub fn is_answered_call(&self) -> bool {
        self.dialect.is_some() && self.status < 400 && self.action != RecordAction::Answered
    }

    /// True if a body of ours was sent: a changed window, or only our tools before the messages.
    pub(crate) fn is_changed(&self) -> bool {
        let has_our_tools = self.measures.0 != self.measures.1;
        self.action == RecordAction::Edited
            || (self.action == RecordAction::Unchanged && has_our_tools)
    }

    pub(crate) fn set_sizes(&mut self, sizes: &PromptSizes) {
        (self.tokens_before, self.tokens_after) = sizes.tokens;
        self.measures = sizes.measures;
        self.our_tools_measure = sizes.our_tools;
    }

    /// The prompt tokens with and without the proxy, scaled by the usage that was reported for the
    /// session; and the tokens of the original prompt beyond the window.
    fn saved_tokens(&self, fits: &mut TokenFits) -> (SavedTokens, u64) {
        if !self.is_answered_call() {
            return (SavedTokens::default(), 0);
        }
        let reported = self.usage.map(|usage| usage.prompt());
        let (came, changed) = self.measures;
        let is_changed = self.is_changed();
        let sent = if is_changed { changed } else { came };
        // A prompt that was not measured, or that the provider truncated, says nothing about its
        // counting.
        let is_managed = sent != Measure::default() && !self.silent_overflow;
        if let Some(reported) = reported.filter(|_| is_managed) {
            fits.learn(&self.session, sent, reported);
        }
        let mut beyond = 0;
        let saved = match self.action {
            RecordAction::Asked => SavedTokens::of_extra(reported.unwrap_or_default()),
            RecordAction::Edited | RecordAction::Unchanged => {
                let window = Some(self.window).filter(|window| *window > 0);
                let tokens = |text: Measure| fits.tokens(&self.session, &text);
                // Both differences, because a measure cannot be negative: some kinds of text
                // grow, for example by our tools.
                let difference = tokens(came - sent) - tokens(sent - came);
                // Only the difference is scaled by what the provider counted. The sent side is
                // reported, or our estimate.
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

impl Record {
    /// Converts parts of the original prompt to tokens, as the provider counts that prompt.
    fn set_part_tokens(&mut self, fits: &TokenFits) {
        let (came, whole) = (self.measures.0, self.saved.without + self.beyond_window);
        let tokens = |part: Measure| {
            if part == Measure::default() {
                return 0;
            }
            // Only the rest is scaled, because the whole prompt is known better.
            let rest = fits.tokens(&self.session, &(came - part));
            whole.saturating_sub(u64::try_from(rest).unwrap_or(0))
        };
        let sent_before = SentBefore {
            recently: tokens(self.sent_before_measures.recently),
            sometime: tokens(self.sent_before_measures.sometime),
        };
        self.marked = self.marked_measures.map(|marked| MarkedParts {
            all: tokens(marked.all),
            long: tokens(marked.long),
        });
        let ours = fits.tokens(&self.session, &self.our_tools_measure);
        self.our_tools = u64::try_from(ours).unwrap_or(0);
        self.sent_before = sent_before;
    }
}

/// Figures of all requests so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProxyReport {
    /// Requests that ended.
    pub requests: u64,
    /// Of those, sent with a changed window.
    pub edited: u64,
    /// Of those, passed unchanged because the proxy failed or was too slow.
    pub failed_open: u64,
    /// The tokens of all prompts without the proxy.
    pub tokens_before: u64,
    /// The tokens of all prompts that were sent, including those for summaries and hidden answers.
    pub tokens_after: u64,
    /// The difference; negative if more was sent.
    pub tokens_saved: i64,
    /// Calls that would not have fit their model's window without the proxy. Each counts as a full
    /// window in `tokens_before`.
    pub over_window: u64,
    /// The total reported usage.
    pub usage: Usage,
    /// Overflows that were recovered from.
    pub recovered: u64,
    /// Retrieval calls that were served.
    pub retrievals: u64,
    /// Overflows that nobody reported.
    pub silent_overflows: u64,
    /// Our own requests for summaries. Their usage is included in the total.
    pub summaries: u64,
    /// Requests that passed unchanged for lack of memory.
    pub over_memory: u64,
    /// Requests that passed unchanged because the provider has a part of their conversation that
    /// was not seen here.
    pub partial: u64,
    /// Sessions in memory.
    pub sessions: u64,
    /// Open client connections, including tunnels.
    pub connections: u64,
    /// The used bytes of the memory budget.
    pub memory_bytes: u64,
    /// Open requests.
    pub open: u64,
    /// The problem of the store, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// Why old sessions are kept, if they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<String>,
    /// Lines of the audit log that could not be written.
    pub audit_lost: u64,
}

/// Where records go.
pub type RecordSink = Box<dyn Fn(&Record) + Send + Sync>;

/// Where records stay.
pub(crate) type RecordKeeper = Box<dyn Fn(Box<Record>) + Send + Sync>;

/// Adds up records, and passes them to the sinks.
pub(crate) struct Recorder {
    report: Mutex<ProxyReport>,
    fits: Mutex<TokenFits>,
    sinks: Vec<RecordSink>,
    keeper: RecordKeeper,
    audit: Arc<AuditLog>,
    pub(crate) metrics: Arc<Metrics>,
}

impl Recorder {
    pub(crate) fn new(
        sinks: Vec<RecordSink>,
        keeper: RecordKeeper,
        audit: Arc<AuditLog>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            report: Mutex::default(),
            fits: Mutex::default(),
            sinks,
            keeper,
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

    fn end(&self, mut record: Box<Record>) {
        // Savings are computed before the sinks see the record: all of them report the same
        // figures.
        if let Ok(mut fits) = self.fits.lock() {
            (record.saved, record.beyond_window) = record.saved_tokens(&mut fits);
            record.set_part_tokens(&fits);
        }
        self.with(|report| add(report, &record));
        self.audit.request(&record);
        self.metrics.add(&record);
        for sink in &self.sinks {
            sink(&record);
        }
        (self.keeper)(record);
    }

    /// Changes the report. With a poisoned lock, only figures are lost.
    fn with<T>(&self, change: impl FnOnce(&mut ProxyReport) -> T) -> Option<T> {
        self.report
            .lock()
            .ok()
            .map(|mut report| change(&mut report))
    }
}

/// The reasons for which a request passed because the proxy itself failed.
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

/// A record under construction. It is written when this is dropped, at the end of the answer.
pub(crate) struct PendingRecord {
    /// Boxed, because it is large and moved often.
    pub(crate) record: Box<Record>,
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
            record: Box::new(Record {
                time_ms: trimtab_store::now_millis(),
                method: method.to_owned(),
                path: path.chars().take(200).collect(),
                ..Record::default()
            }),
            counted: None,
            body_bytes: Arc::default(),
            recorder: Arc::clone(book),
            started: Instant::now(),
        }
    }

    /// Sets the reason why the request passes unchanged.
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
        shorten(&mut self.record.model, LONGEST_MODEL);
        shorten(&mut self.record.detail, LONGEST_DETAIL);
        if let Some(counted) = &mut self.counted {
            counted.charge_rest(self.record.bytes_in);
        }
        self.recorder.end(std::mem::take(&mut self.record));
    }
}

fn shorten(text: &mut String, most: usize) {
    if let Some((end, _)) = text.char_indices().nth(most) {
        text.truncate(end);
        text.shrink_to_fit();
    }
}
