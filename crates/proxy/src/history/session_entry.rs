//! The figures of a session and of its calls, and how they are told in words.

use serde::Serialize;
use trimtab_model::{Dialect, Usage};

use super::cache_break::ObservedBreak;
use crate::records::plan_note::PlanNote;
use crate::records::record::{OUR_FAILURES, Record, RecordAction};

/// A session, in figures.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct SessionEntry {
    pub(crate) id: String,
    pub(crate) client: String,
    pub(crate) model: String,
    pub(crate) upstream: String,
    pub(crate) dialect: Option<Dialect>,
    pub(crate) tenant: String,
    pub(crate) token: String,
    pub(crate) first_ms: u64,
    pub(crate) last_ms: u64,
    /// How many calls of all sessions had ended with its last one.
    #[serde(skip)]
    pub(crate) ended: u64,
    pub(crate) calls: u64,
    pub(crate) edited: u64,
    /// Calls that failed, or passed because the proxy failed.
    pub(crate) failures: u64,
    pub(crate) recoveries: u64,
    pub(crate) retrievals: u64,
    pub(crate) own_calls: u64,
    pub(crate) breaks: u64,
    /// The prompt tokens of the last call, as reported if possible.
    pub(crate) tokens_now: u64,
    pub(crate) window: u64,
    pub(crate) tokens_without: u64,
    pub(crate) tokens_with: u64,
    /// Calls that would not have fit the window without the proxy. Each counts as a full window.
    pub(crate) over_window: u64,
    pub(crate) spent: f64,
    pub(crate) saved: f64,
    /// Money saved against a model with a window that holds everything.
    pub(crate) saved_unbounded: f64,
    /// True if all of its calls have a known price.
    pub(crate) is_priced: bool,
    /// The last event, as text.
    pub(crate) last_event: String,
    /// `ok`, `warning` or `problem`.
    pub(crate) health: &'static str,
    /// Why it is not `ok`, in words; empty if it is.
    pub(crate) health_reason: String,
    /// The cache lifetime in milliseconds; 0 if no cache was seen.
    pub(crate) cache_ms: u64,
    /// The extra cost of the next call if the cache has expired, in dollars.
    pub(crate) cold_cost: Option<f64>,
}

/// One call of a session.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct CallEntry {
    pub(crate) time_ms: u64,
    pub(crate) request_id: String,
    /// The number of messages in the log when it was sent; 0 for our own call.
    pub(crate) messages: usize,
    pub(crate) action: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) status: u16,
    pub(crate) tokens_before: u64,
    pub(crate) tokens_after: u64,
    pub(crate) usage: Option<Usage>,
    pub(crate) spent: Option<f64>,
    pub(crate) saved: Option<f64>,
    /// The same against a model with a window that holds everything.
    pub(crate) saved_unbounded: Option<f64>,
    pub(crate) plans: Vec<PlanNote>,
    pub(crate) recoveries: u32,
    pub(crate) retrievals: u32,
    pub(crate) plan_ms: f64,
    pub(crate) answer_ms: f64,
    pub(crate) total_ms: f64,
    pub(crate) cache_break: Option<ObservedBreak>,
}

impl SessionEntry {
    /// Its approximate memory in bytes. Most of its texts come from clients.
    pub(super) fn bytes(&self) -> usize {
        let texts = [&self.id, &self.client, &self.model, &self.upstream];
        let more = [
            &self.tenant,
            &self.token,
            &self.last_event,
            &self.health_reason,
        ];
        let texts = texts.into_iter().chain(more);
        size_of::<Self>() + texts.map(String::len).sum::<usize>()
    }
}

impl CallEntry {
    /// Its approximate memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        let plan_bytes = |plan: &PlanNote| size_of::<PlanNote>() + plan.trigger.len();
        let plans: usize = self.plans.iter().map(plan_bytes).sum();
        size_of::<Self>() + self.request_id.len() + plans
    }
}

/// What went wrong with a call, in words.
pub(super) fn failure(record: &Record) -> Option<String> {
    if OUR_FAILURES.contains(&record.reason) {
        let reason = record.reason;
        return Some(format!("the last call passed unchanged: {reason}"));
    }
    let status = record.status;
    (status >= 400).then(|| format!("the last call was answered with status {status}"))
}

pub(super) fn health(entry: &SessionEntry, record: &Record) -> (&'static str, String) {
    if let Some(failure) = failure(record) {
        return ("problem", failure);
    }
    let warning = if entry.window > 0 && entry.tokens_now > entry.window / 100 * 95 {
        "the window is almost full"
    } else if entry.saved < 0.0 {
        "Trimtab has cost more than it saved so far"
    } else {
        return ("ok", String::new());
    };
    ("warning", warning.to_owned())
}

/// A number of tokens, rounded to thousands if it has any.
fn thousands(tokens: u64) -> String {
    if tokens < 1_000 {
        tokens.to_string()
    } else {
        format!("{:.1}k", tokens as f64 / 1e3)
    }
}

/// A short description of a call.
pub(super) fn event_text(record: &Record, broken: Option<&ObservedBreak>) -> String {
    if record.action == RecordAction::Asked {
        return "asked a model for a summary".to_owned();
    }
    // Status 0 means that no answer came. The order of these checks is the order of importance: one
    // event is shown.
    if record.status >= 400 || record.status == 0 {
        return format!("status {}", record.status);
    }
    if !record.reason.is_empty() {
        return format!("passed unchanged: {}", record.reason);
    }
    if record.recoveries > 0 {
        return "recovered from an overflow".to_owned();
    }
    if let Some(plan) = record.plans.last() {
        let (before, after) = (thousands(plan.tokens_before), thousands(plan.tokens_after));
        return format!("{}: {before} to {after} tokens", plan.kind_name());
    }
    if record.retrievals > 0 {
        return "the model read an output back".to_owned();
    }
    if let Some(broken) = broken {
        return format!("cache lost by {}", broken.by);
    }
    let words = match record.action {
        RecordAction::Edited => "sent with a shorter window",
        RecordAction::Unchanged => "sent unchanged",
        RecordAction::Observed => "observed",
        other => other.as_str(),
    };
    words.to_owned()
}
