//! What happened lately, for the dashboard: the calls of each session, and where a provider's
//! cache was lost.
//!
//! Requests only put a note into a channel. A task of its own takes the notes out, so that nobody
//! waits for it; if the channel is full, a note is lost.

mod cache_break;
mod sent_films;
mod sent_print;
mod session_calls;
mod session_entry;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use serde::Serialize;
use tokio::sync::mpsc;
use trimtab_wire::catalogue::Catalogue;

use crate::records::metrics::Metrics;
use crate::records::record::{Record, RecordAction};
use crate::records::savings::{CallMoney, Savings, SavingsTotal};

pub(crate) use sent_films::SentFilms;
use sent_print::SentPrint;
use session_calls::SessionTable;
pub(crate) use session_entry::{CallEntry, SessionEntry};

/// The maximum number of waiting notes. They hold the bodies of requests.
const WAITING: usize = 256;

/// A request that was sent to a model.
pub(crate) struct SentNote {
    pub(crate) session: String,
    /// The body.
    pub(crate) body: Bytes,
    /// The number of messages in the log.
    pub(crate) messages: usize,
    /// The number of active plans that changed earlier messages.
    pub(crate) decisions: usize,
    /// The cache lifetime of the provider in milliseconds; 0 if unknown.
    pub(crate) lifetime_ms: u64,
}

enum HistoryNote {
    Sent(SentNote),
    Ended(Box<Record>),
}

/// The recent calls.
pub(crate) struct CallHistory {
    state: Mutex<HistoryState>,
    inbox: mpsc::Sender<HistoryNote>,
    metrics: Arc<Metrics>,
}

struct HistoryState {
    sessions: SessionTable,
    savings: Savings,
    compared: ComparedCalls,
}

/// The costs of managed calls and of calls in the holdout, for comparison.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct ComparedCalls {
    pub(crate) managed: CallSums,
    pub(crate) holdout: CallSums,
    /// The cost of cache breaks that the proxy caused, in dollars.
    pub(crate) own_breaks: f64,
    /// The cost of our own calls, such as summaries, in dollars.
    pub(crate) own_calls: f64,
}

/// Sums over calls.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct CallSums {
    pub(crate) calls: u64,
    pub(crate) prompt_tokens: u64,
    pub(crate) spent: f64,
}

impl CallSums {
    fn add(&mut self, record: &Record, money: CallMoney) {
        self.calls += 1;
        self.prompt_tokens += record.usage.map_or(0, |usage| usage.prompt());
        self.spent += money.spent;
    }
}

impl CallHistory {
    /// An empty history, with a task that processes its notes until it is dropped.
    pub(crate) fn start(catalogue: Catalogue, metrics: Arc<Metrics>) -> Arc<Self> {
        let (inbox, notes) = mpsc::channel(WAITING);
        let history = Arc::new(Self {
            state: Mutex::new(HistoryState {
                sessions: SessionTable::new(),
                savings: Savings::new(catalogue),
                compared: ComparedCalls::default(),
            }),
            inbox,
            metrics,
        });
        tokio::spawn(take_notes(Arc::downgrade(&history), notes));
        history
    }

    /// Adds a note about a sent request. Never blocks.
    pub(crate) fn note_sent(&self, note: SentNote) {
        // If the channel is full, the note is lost: the dashboard must never slow down a request.
        drop(self.inbox.try_send(HistoryNote::Sent(note)));
    }

    /// Adds a note about a call that ended. Never blocks.
    pub(crate) fn note_record(&self, record: Box<Record>) {
        if record.dialect.is_some() && record.action != RecordAction::Answered {
            drop(self.inbox.try_send(HistoryNote::Ended(record)));
        }
    }

    /// The sessions that were used since the start, the newest first.
    pub(crate) fn sessions(&self) -> Vec<SessionEntry> {
        self.state().sessions.entries()
    }

    /// One session, with its calls.
    pub(crate) fn calls(&self, id: &str) -> Option<(SessionEntry, Vec<Arc<CallEntry>>)> {
        self.state().sessions.calls(id)
    }

    /// One session.
    pub(crate) fn session(&self, id: &str) -> Option<SessionEntry> {
        self.state().sessions.entry(id)
    }

    /// The savings since the start.
    pub(crate) fn savings(&self) -> (SavingsTotal, ComparedCalls) {
        let state = self.state();
        (state.savings.total().clone(), state.compared.clone())
    }

    fn take(&self, note: HistoryNote) {
        match note {
            HistoryNote::Sent(sent) => {
                // Hashed before the lock is taken, because the body may be long.
                let print = SentPrint::of(&sent.body);
                self.state().sessions.add_sent(&sent, print);
            }
            HistoryNote::Ended(record) => self.take_record(&record),
        }
    }

    fn take_record(&self, record: &Record) {
        let mut state = self.state();
        let money = state.savings.add(record);
        if let Some(money) = money {
            if record.action == RecordAction::Asked {
                state.compared.own_calls += money.spent;
            } else if record.reason == "holdout" {
                state.compared.holdout.add(record, money);
            // Calls that passed unmanaged are neither managed nor a fair comparison.
            } else if !record.session.is_empty() {
                state.compared.managed.add(record, money);
            }
        }
        // A call without a session was not managed, so it has no history; the totals still change.
        if record.session.is_empty() {
            return;
        }
        let model = state.savings.priced(&record.model);
        let broken = state.sessions.add_record(record, money, model.as_ref());
        if let Some(broken) = broken {
            self.metrics.add_cache_break(broken.by, broken.tokens);
            if broken.by == "trimtab" {
                state.compared.own_breaks += broken.cost.unwrap_or_default();
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, HistoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn take_notes(history: Weak<CallHistory>, mut notes: mpsc::Receiver<HistoryNote>) {
    while let Some(note) = notes.recv().await {
        let Some(history) = history.upgrade() else {
            return;
        };
        history.take(note);
    }
}
