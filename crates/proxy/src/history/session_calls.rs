//! The sessions that were used lately, with their calls.

use std::collections::VecDeque;
use std::sync::Arc;

use hashlink::LruCache;
use trimtab_model::Usage;
use trimtab_wire::catalogue::ModelInfo;

use super::SentNote;
use super::cache_break::{CallPair, ObservedBreak, extra_cost};
use super::sent_print::SentPrint;
use super::session_entry::{CallEntry, SessionEntry, event_text, failure, health};
use crate::records::record::{Record, RecordAction};
use crate::records::savings::CallMoney;

/// The maximum number of sessions; the least recently used are forgotten.
const SESSIONS: usize = 500;
/// The maximum bytes of all sessions together, beyond the memory budget of requests: enough for
/// some 50,000 calls.
const BYTES: usize = 32 << 20;
/// The maximum number of calls per session.
const CALLS: usize = 4_000;
/// The assumed lifetime of a prompt in an unknown cache, in milliseconds.
const USUAL_LIFETIME_MS: u64 = 5 * 60 * 1_000;

#[derive(Default)]
struct SessionCalls {
    entry: SessionEntry,
    /// Shared, so that a look at them takes little time.
    calls: VecDeque<Arc<CallEntry>>,
    call_bytes: usize,
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
pub(crate) struct SessionTable {
    sessions: LruCache<String, SessionCalls>,
    bytes: usize,
    /// The number of calls that ended.
    ended: u64,
}

impl SessionTable {
    pub(crate) fn new() -> Self {
        Self {
            sessions: LruCache::new_unbounded(),
            bytes: 0,
            ended: 0,
        }
    }

    /// The sessions, the newest first.
    pub(crate) fn entries(&self) -> Vec<SessionEntry> {
        let entries = self.sessions.iter().map(|(_, calls)| &calls.entry);
        // A session that was sent but not answered yet has nothing to show.
        let answered = entries.filter(|entry| entry.calls > 0);
        let mut entries: Vec<SessionEntry> = answered.cloned().collect();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.last_ms));
        entries
    }

    pub(crate) fn entry(&self, id: &str) -> Option<SessionEntry> {
        Some(self.sessions.peek(id)?.entry.clone())
    }

    /// A session, with its calls.
    pub(crate) fn calls(&self, id: &str) -> Option<(SessionEntry, Vec<Arc<CallEntry>>)> {
        let found = self.sessions.peek(id)?;
        Some((found.entry.clone(), found.calls.iter().cloned().collect()))
    }

    pub(crate) fn add_sent(&mut self, note: &SentNote, print: SentPrint) {
        self.change(&note.session, |calls| {
            calls.sent = SentState {
                print,
                messages: note.messages,
                decisions: note.decisions,
                lifetime_ms: note.lifetime_ms,
            };
        });
    }

    /// Adds a call that ended; gives its cache break, if it has one.
    pub(crate) fn add_record(
        &mut self,
        record: &Record,
        money: Option<CallMoney>,
        model: Option<&ModelInfo>,
    ) -> Option<ObservedBreak> {
        self.ended += 1;
        let ended = self.ended;
        self.change(&record.session, |session| {
            let broken = session.cache_break(record, model);
            session.entry.ended = ended;
            session.update_entry(record, money, broken.as_ref());
            session.entry.cold_cost = session.cold_cost(model);
            session.add_call(record, money, broken.clone());
            broken
        })
    }

    /// Changes a session, which may be new. Forgets others if the limits are exceeded.
    fn change<T>(&mut self, id: &str, change: impl FnOnce(&mut SessionCalls) -> T) -> T {
        let mut calls = match self.sessions.remove(id) {
            Some(calls) => {
                self.bytes -= calls.bytes();
                calls
            }
            None => SessionCalls::new(id),
        };
        let changed = change(&mut calls);
        self.bytes += calls.bytes();
        // Inserted at the end of the list, so it is forgotten last.
        self.sessions.insert(id.to_owned(), calls);
        while self.sessions.len() > SESSIONS || (self.bytes > BYTES && self.sessions.len() > 1) {
            let oldest = self.sessions.remove_lru();
            self.bytes -= oldest.map_or(0, |(_, calls)| calls.bytes());
        }
        changed
    }
}

impl SessionCalls {
    fn new(id: &str) -> Self {
        let mut calls = Self::default();
        id.clone_into(&mut calls.entry.id);
        calls.entry.is_priced = true;
        calls
    }

    /// Its approximate memory in bytes.
    fn bytes(&self) -> usize {
        let prints = self.sent.print.memory_bytes() + self.answered.print.memory_bytes();
        self.entry.bytes() + self.call_bytes + prints
    }

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
        let model = model.filter(|_| self.entry.cache_ms > 0)?;
        let lifetime = model.cache.long_lifetime;
        let is_long = lifetime.is_some_and(|long| long.as_millis() <= self.entry.cache_ms.into());
        let written = Usage {
            cache_creation: 1,
            cache_creation_long: u64::from(is_long),
            ..Usage::default()
        };
        extra_cost(model, self.last_usage?.prompt(), &written)
    }

    fn add_call(
        &mut self,
        record: &Record,
        money: Option<CallMoney>,
        cache_break: Option<ObservedBreak>,
    ) {
        if self.calls.len() >= CALLS {
            let oldest = self.calls.pop_front();
            self.call_bytes -= oldest.map_or(0, |call| call.bytes());
        }
        let is_ours = record.action == RecordAction::Asked;
        let call = CallEntry {
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
        };
        self.call_bytes += call.bytes();
        self.calls.push_back(Arc::new(call));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(session: &str, model: &str) -> Record {
        Record {
            session: session.to_owned(),
            model: model.to_owned(),
            request_id: "r".repeat(1_000),
            ..Record::default()
        }
    }

    #[test]
    fn sessions_are_bounded_in_bytes() {
        let mut table = SessionTable::new();
        let long = "m".repeat(BYTES / 10);
        for at in 0..30 {
            table.add_record(&record(&format!("s{at}"), &long), None, None);
            // A session in use stays.
            table.add_record(&record("in-use", "m"), None, None);
        }
        assert!(table.bytes <= BYTES);
        assert!(table.entry("in-use").is_some() && table.entry("s29").is_some());
        assert!(table.entry("s0").is_none());
        // What was forgotten is not counted any more.
        let bytes = table.sessions.iter().map(|(_, calls)| calls.bytes());
        assert_eq!(table.bytes, bytes.sum::<usize>());
    }

    #[test]
    fn calls_of_a_session_are_bounded() {
        let mut table = SessionTable::new();
        for _ in 0..CALLS + 100 {
            table.add_record(&record("s", "m"), None, None);
        }
        let calls = &table.sessions.peek("s").unwrap().calls;
        assert_eq!(calls.len(), CALLS);
        assert!(table.bytes >= CALLS * (1_000 + size_of::<CallEntry>()));
        assert!(table.bytes < (CALLS + 1) * (1_000 + size_of::<CallEntry>()) + 10_000);
    }
}
