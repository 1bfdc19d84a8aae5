//! Background work on the store. Every few seconds a task checks that the store can be used,
//! renews the leases of sessions in memory, drops idle sessions from memory, and once an hour
//! removes old sessions from the store. `server::Proxy::run` starts it.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::task::spawn_blocking;
use trimtab_store::SessionId;

use crate::access::retention_request;
use crate::config::ProxyConfig;
use crate::conversation::durability::LEASE;
use crate::conversation::store_state::OpenedStore;
use crate::request::shared::SharedState;

/// The interval between two checks of the store.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// A lease is renewed when it is this old.
const RENEW_AFTER: Duration = Duration::from_mins(5);
/// A conversation is dropped from memory after this time without use. Only then can it expire.
const IDLE: Duration = Duration::from_hours(12);
/// How often old sessions are removed.
const RETAIN_EVERY: Duration = Duration::from_hours(1);

/// Checks the store regularly until the proxy is dropped.
pub(crate) async fn run(shared: Weak<SharedState>) {
    let mut keeper = StoreKeeper::default();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        // The keeper moves into the closure and back, because the work blocks on the disk.
        let checked = spawn_blocking(move || {
            keeper.check_store(&shared);
            keeper
        });
        // After a panic the state is lost. An empty one only renews all leases early.
        keeper = checked.await.unwrap_or_default();
    }
}

#[derive(Default)]
struct StoreKeeper {
    /// The time of each session's last lease, in the store `opened`.
    leased: HashMap<SessionId, Instant>,
    opened: Weak<OpenedStore>,
    /// The number of removals from the store at the last check.
    removals: Option<u64>,
    retained: Option<Instant>,
    /// The time from which ages counted at the last removal of old sessions.
    ages_since: Option<u64>,
}

impl StoreKeeper {
    fn check_store(&mut self, shared: &SharedState) {
        shared.store_state.recheck();
        let Some(opened) = shared.store_state.usable() else {
            return;
        };
        // The store was opened again, or another one was put in its place. Leases of the old one
        // say nothing about this one.
        if !Weak::ptr_eq(&self.opened, &Arc::downgrade(&opened)) {
            *self = Self {
                opened: Arc::downgrade(&opened),
                ..Self::default()
            };
        }
        opened.client_sessions.evict_idle(IDLE);
        // If the store fails, the next check asks again.
        self.forget_erased(shared, &opened).unwrap_or(());
        self.lease(&opened);
        // The first check after a start is due at once, so a proxy that restarts daily removes
        // sessions too.
        let is_due = self.retained.is_none_or(|at| at.elapsed() >= RETAIN_EVERY);
        if is_due {
            self.retained = Some(Instant::now());
            let settings = shared.settings.get();
            self.retain(shared, &opened, &settings.config);
        }
    }

    /// Drops what was removed from the store from memory: erased text must not stay in processes
    /// that get no further request of its session.
    fn forget_erased(
        &mut self,
        shared: &SharedState,
        opened: &OpenedStore,
    ) -> trimtab_store::Result<()> {
        let removals = opened.store.status()?.removals;
        if self.removals == Some(removals) {
            return Ok(());
        }
        // Pages can show sessions that are in no client session.
        shared.sent_films.clear();
        let sessions = opened.client_sessions.sessions();
        let (_, positions) = opened.store.positions(&sessions)?;
        let gone = sessions.into_iter().zip(positions);
        let gone = gone.filter(|(_, stored)| *stored == (0, 0));
        let gone: BTreeSet<SessionId> = gone.map(|(session, _)| session).collect();
        if !gone.is_empty() {
            opened.client_sessions.forget(&gone);
            opened.parsed_bodies.forget_all();
        }
        self.removals = Some(removals);
        Ok(())
    }

    /// Leases the sessions in memory whose lease is missing or old.
    fn lease(&mut self, opened: &OpenedStore) {
        let mut sessions = opened.client_sessions.sessions();
        // A session that left memory is no longer leased by us, so its lease expires by itself.
        self.leased.retain(|session, _| sessions.contains(session));
        sessions.retain(|session| {
            let at = self.leased.get(session);
            at.is_none_or(|at| at.elapsed() >= RENEW_AFTER)
        });
        let now = Instant::now();
        // A failed lease is not noted, so the next check tries again, well before it expires.
        if opened.lease(&sessions, LEASE).is_ok() {
            self.leased
                .extend(sessions.into_iter().map(|session| (session, now)));
        }
    }

    /// Removes sessions that exceed the retention settings, and reports it.
    fn retain(&mut self, shared: &SharedState, opened: &OpenedStore, config: &ProxyConfig) {
        let request = retention_request(config);
        let state = &shared.store_state;
        match opened.store.collect(&request) {
            Ok(done) => {
                if !done.sessions.is_empty() {
                    state.notices().info(&format!(
                        "retention: removed {} sessions with {} outputs, {} bytes freed, {} kept",
                        done.sessions.len(),
                        done.outputs,
                        done.bytes_freed,
                        done.bytes_kept
                    ));
                }
                let is_known = self.ages_since == done.ages_since;
                self.ages_since = done.ages_since;
                state.set_ages_since(done.ages_since);
                if let Some(problem) = state.retention_problem().filter(|_| !is_known) {
                    state.notices().warning(&problem);
                }
            }
            Err(error) => {
                state.note_failure(&error);
                let text = error.to_string();
                // A notice is one line; the hint on the second line of an error is for command
                // lines.
                let line = text.lines().next().unwrap_or_default();
                state
                    .notices()
                    .warning(&format!("retention: nothing was removed: {line}"));
            }
        }
    }
}
