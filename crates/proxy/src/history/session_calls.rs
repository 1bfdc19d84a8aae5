//! The sessions that were used lately, with their calls.

use std::collections::{HashMap, VecDeque};

use serde::Serialize;
use trimtab_model::{Dialect, Usage};
use trimtab_wire::catalogue::ModelInfo;

use super::SentNote;
use super::cache_break::{CallPair, ObservedBreak};
use super::sent_print::SentPrint;
use crate::records::plan_note::PlanNote;
use crate::records::record::{OUR_FAILURES, Record, RecordAction};
use crate::records::savings::CallMoney;

/// The maximum number of sessions; the oldest are forgotten.
const SESSIONS: usize = 500;
/// The maximum number of calls per session.
const CALLS: usize = 4_000;
/// The assumed lifetime of a prompt in an unknown cache, in milliseconds.
const USUAL_LIFETIME_MS: u64 = 5 * 60 * 1_000;

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

#[derive(Default)]
struct SessionCalls {
    entry: SessionEntry,
    calls: VecDeque<CallEntry>,
    /// The last sent request.
    sent: SentState,
    /// The last answered request.
    answered: SentState,
    last_usage: Option<Usage>,
}

#[derive(Clone, Debug, Default)]
struct SentState {
    print: SentPrint,
    messages: usize,
    decisions: usize,
    lifetime_ms: u64,
}

/// The sessions that were used lately.
#[derive(Default)]
pub(crate) struct SessionTable(HashMap<String, SessionCalls>);

impl SessionTable {
    pub(crate) fn list(&self) -> Vec<SessionEntry> {
        let mut entries: Vec<SessionEntry> =
            self.0.values().map(|calls| calls.entry.clone()).collect();
        // A session that was sent but not answered yet has nothing to show.
        entries.retain(|entry| entry.calls > 0);
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.last_ms));
        entries
    }

    pub(crate) fn get(&self, id: &str) -> Option<(SessionEntry, Vec<CallEntry>)> {
        let found = self.0.get(id)?;
        Some((found.entry.clone(), found.calls.iter().cloned().collect()))
    }

    pub(crate) fn add_sent(&mut self, note: &SentNote) {
        let calls = self.session(&note.session);
        calls.sent = SentState {
            print: SentPrint::of(&note.body),
            messages: note.messages,
            decisions: note.decisions,
            lifetime_ms: note.lifetime_ms,
        };
    }

    /// Adds a call that ended; gives its cache break, if it has one.
    pub(crate) fn add_record(
        &mut self,
        record: &Record,
        money: Option<CallMoney>,
        model: Option<&ModelInfo>,
    ) -> Option<ObservedBreak> {
        let session = self.session(&record.session);
        let broken = session.cache_break(record, model);
        session.update_entry(record, money, broken.as_ref());
        session.entry.cold_cost = session.cold_cost(model);
        session.add_call(record, money, broken.clone());
        broken
    }

    fn session(&mut self, id: &str) -> &mut SessionCalls {
        if !self.0.contains_key(id) && self.0.len() >= SESSIONS {
            let oldest = self.0.iter().min_by_key(|(_, calls)| calls.entry.last_ms);
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                self.0.remove(&oldest);
            }
        }
        let calls = self.0.entry(id.to_owned()).or_default();
        if calls.entry.id.is_empty() {
            id.clone_into(&mut calls.entry.id);
            calls.entry.is_priced = true;
        }
        calls
    }
}

impl SessionCalls {
    /// The cache break of a call. Also updates the state for the next one.
    fn cache_break(&mut self, record: &Record, model: Option<&ModelInfo>) -> Option<ObservedBreak> {
        // Without usage nothing is known about the cache, and the next call is compared with the
        // last one that has it.
        let usage = record.usage?;
        if record.action == RecordAction::Asked || !record.is_answered_call() {
            return None;
        }
        // A record does not say which body it is about, so the last one that was sent is taken.
        let before = std::mem::replace(&mut self.answered, self.sent.clone());
        let last = self.last_usage.replace(usage)?;
        let lifetime = match self.sent.lifetime_ms {
            0 => USUAL_LIFETIME_MS,
            known => known,
        };
        let pair = CallPair {
            usages: (last, usage),
            bytes: (
                before.print.bytes,
                before.print.common_bytes(&self.sent.print),
            ),
            was_planned: before.decisions != self.sent.decisions,
            other_model: !self.entry.model.is_empty() && self.entry.model != record.model,
            went_cold: record.time_ms.saturating_sub(self.entry.last_ms) > lifetime,
        };
        pair.cache_break(model)
    }

    fn update_entry(
        &mut self,
        record: &Record,
        money: Option<CallMoney>,
        broken: Option<&ObservedBreak>,
    ) {
        let is_ours = record.action == RecordAction::Asked;
        let entry = &mut self.entry;
        entry.tokens_without += record.saved.without;
        entry.tokens_with += record.saved.with;
        entry.over_window += record.saved.over_window;
        match money {
            Some(money) => {
                entry.spent += money.spent;
                entry.saved += money.saved;
                entry.saved_unbounded += money.saved_unbounded;
            }
            None => entry.is_priced = false,
        }
        entry.last_event = event_text(record, broken);
        entry.last_ms = record.time_ms;
        // A summary is no call of the client: its model and status say nothing about the session.
        if is_ours {
            entry.own_calls += 1;
            return;
        }
        if entry.first_ms == 0 {
            entry.first_ms = record.time_ms;
        }
        entry.calls += 1;
        entry.client.clone_from(&record.client);
        entry.model.clone_from(&record.model);
        entry.upstream.clone_from(&record.upstream);
        entry.tenant.clone_from(&record.tenant);
        entry.token.clone_from(&record.token);
        entry.dialect = record.dialect;
        entry.window = record.window;
        entry.edited += u64::from(record.action == RecordAction::Edited);
        entry.failures += u64::from(failure(record).is_some());
        entry.recoveries += u64::from(record.recoveries);
        entry.retrievals += u64::from(record.retrievals);
        entry.breaks += u64::from(broken.is_some());
        let reported = record.usage.map(|usage| usage.prompt());
        entry.tokens_now = reported.unwrap_or(record.tokens_after);
        (entry.health, entry.health_reason) = health(entry, record);
        if record
            .usage
            .is_some_and(|usage| usage.cache_read + usage.cache_creation > 0)
        {
            entry.cache_ms = match self.sent.lifetime_ms {
                0 => USUAL_LIFETIME_MS,
                known => known,
            };
        }
    }

    /// The extra cost of the next call if the cache has expired.
    fn cold_cost(&self, model: Option<&ModelInfo>) -> Option<f64> {
        let cached = self.last_usage?.prompt();
        let written = Usage {
            cache_creation: cached,
            ..Usage::default()
        };
        let read = Usage {
            cache_read: cached,
            ..Usage::default()
        };
        let model = model.filter(|_| self.entry.cache_ms > 0)?;
        Some(model.cost(&written)?.dollars() - model.cost(&read)?.dollars())
    }

    fn add_call(
        &mut self,
        record: &Record,
        money: Option<CallMoney>,
        cache_break: Option<ObservedBreak>,
    ) {
        if self.calls.len() >= CALLS {
            self.calls.pop_front();
        }
        let is_ours = record.action == RecordAction::Asked;
        self.calls.push_back(CallEntry {
            time_ms: record.time_ms,
            request_id: record.request_id.clone(),
            messages: if is_ours { 0 } else { self.sent.messages },
            action: record.action.as_str(),
            reason: record.reason,
            status: record.status,
            tokens_before: record.tokens_before,
            tokens_after: record.tokens_after,
            usage: record.usage,
            spent: money.map(|money| money.spent),
            saved: money.map(|money| money.saved),
            saved_unbounded: money.map(|money| money.saved_unbounded),
            plans: record.plans.clone(),
            recoveries: record.recoveries,
            retrievals: record.retrievals,
            plan_ms: record.plan_ms,
            answer_ms: record.answer_ms,
            total_ms: record.total_ms,
            cache_break,
        });
    }
}

/// What went wrong with a call, in words.
fn failure(record: &Record) -> Option<String> {
    if OUR_FAILURES.contains(&record.reason) {
        let reason = record.reason;
        return Some(format!("the last call passed unchanged: {reason}"));
    }
    let status = record.status;
    (status >= 400).then(|| format!("the last call was answered with status {status}"))
}

fn health(entry: &SessionEntry, record: &Record) -> (&'static str, String) {
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
fn event_text(record: &Record, broken: Option<&ObservedBreak>) -> String {
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
