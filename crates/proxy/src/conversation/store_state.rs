//! The state of the store: whether it can be used, and everything that belongs to the open one.
//!
//! Without a writable store requests pass unchanged, because a ref that is not durable would be
//! lost. A problem is reported once and shown in the status, and the store is checked again until
//! it can be used.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use trimtab_store::{Error, Result, SessionId, Store};

use crate::access::TenantKeys;
use crate::conversation::client_sessions::ClientSessions;
use crate::prefix_cache::parsed_bodies::ParsedBodies;
use crate::resources::memory_budget::MemoryBudget;
use crate::resources::notices::Notices;

/// How a store is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreOpening {
    /// At the start. A missing store may be created.
    First,
    /// After it was lost. No new store is created, because its disk may just not be mounted.
    Again,
}

/// Opens the store.
pub(crate) type OpenStore = Box<dyn Fn(StoreOpening) -> Result<Arc<dyn Store>> + Send + Sync>;

/// An open store, with the keys and caches that belong to it.
pub(crate) struct OpenedStore {
    pub(crate) store: Arc<dyn Store>,
    /// The keys that separate tenants.
    pub(crate) keys: TenantKeys,
    /// The client sessions in memory.
    pub(crate) client_sessions: ClientSessions,
    /// The parsed bodies of recent requests.
    pub(crate) parsed_bodies: ParsedBodies,
}

enum StoreStanding {
    /// It was never opened.
    Unopened(String),
    Usable(Arc<OpenedStore>),
    /// It can be read but not written.
    ReadOnly(Arc<OpenedStore>),
    /// It was opened before, and cannot be used now.
    Lost(String),
}

/// The state of the store.
pub(crate) struct StoreState {
    open: OpenStore,
    notices: Notices,
    /// The memory budget of sessions and parsed bodies.
    memory: MemoryBudget,
    standing: RwLock<StoreStanding>,
    /// Held during a check, so that only one runs at a time.
    looking: Mutex<()>,
    /// The first damage that was found in a usable store.
    damage: Mutex<Option<String>>,
    /// When and why the store failed last, though it could be reached.
    last_failure: Mutex<Option<(Instant, String)>>,
    /// How often the store failed.
    failures: AtomicU64,
    /// The time from which the ages of sessions count, in milliseconds since 1970, if a jump of
    /// the clock keeps old ones; else 0.
    ages_since: AtomicU64,
}

/// How long a failure is shown in the status. A store that still fails fails again within this time,
/// if there are requests.
const SHOWN_FOR: Duration = Duration::from_secs(30);

impl StoreState {
    /// Opens the store, if that is possible.
    pub(crate) fn new(open: OpenStore, notices: Notices, memory: MemoryBudget) -> Self {
        let state = Self {
            open,
            notices,
            memory,
            standing: RwLock::new(StoreStanding::Unopened(String::new())),
            looking: Mutex::default(),
            damage: Mutex::default(),
            last_failure: Mutex::default(),
            failures: AtomicU64::new(0),
            ages_since: AtomicU64::new(0),
        };
        state.recheck();
        state
    }

    /// The memory budget of sessions and parsed bodies.
    pub(crate) fn memory(&self) -> &MemoryBudget {
        &self.memory
    }

    /// The store, if windows can be managed with it.
    pub(crate) fn usable(&self) -> Option<Arc<OpenedStore>> {
        match &*self.standing() {
            StoreStanding::Usable(opened) => Some(Arc::clone(opened)),
            _ => None,
        }
    }

    /// The store, if outputs can be read from it.
    pub(crate) fn readable(&self) -> Option<Arc<OpenedStore>> {
        match &*self.standing() {
            StoreStanding::Usable(opened) | StoreStanding::ReadOnly(opened) => {
                Some(Arc::clone(opened))
            }
            StoreStanding::Unopened(_) | StoreStanding::Lost(_) => None,
        }
    }

    /// The problem of the store, if there is one.
    pub(crate) fn problem(&self) -> Option<String> {
        match &*self.standing() {
            StoreStanding::Usable(_) => self.damage().clone().or_else(|| self.recent_failure()),
            StoreStanding::ReadOnly(_) => Some(READ_ONLY.to_owned()),
            StoreStanding::Unopened(why) | StoreStanding::Lost(why) => Some(unusable(why)),
        }
    }

    /// Checks whether the store is still, or again, usable. May block.
    pub(crate) fn recheck(&self) {
        let _looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        // Computed without holding the lock on `standing`: opening may wait for a disk or a
        // database, and requests read the standing all the time.
        let next = self.new_standing();
        if let Some(next) = next {
            let before = self.problem();
            *self
                .standing
                .write()
                .unwrap_or_else(PoisonError::into_inner) = next;
            self.tell_change(before);
        }
    }

    /// The new standing of the store; none if it has not changed.
    fn new_standing(&self) -> Option<StoreStanding> {
        let standing = self.standing();
        let (opened, was_read_only) = match &*standing {
            StoreStanding::Usable(opened) => (Arc::clone(opened), false),
            StoreStanding::ReadOnly(opened) => (Arc::clone(opened), true),
            StoreStanding::Unopened(_) => {
                drop(standing);
                return Some(self.opened(StoreOpening::First, StoreStanding::Unopened));
            }
            StoreStanding::Lost(_) => {
                drop(standing);
                return Some(self.opened(StoreOpening::Again, StoreStanding::Lost));
            }
        };
        drop(standing);
        match opened.store.status() {
            Ok(status) if status.read_only == was_read_only => {
                // A store that was opened read-only stays so for its lifetime, even if its files
                // can be written now. So it is opened again, and used if that helped.
                let again =
                    was_read_only.then(|| self.opened(StoreOpening::Again, StoreStanding::Lost));
                again.filter(|next| matches!(next, StoreStanding::Usable(_)))
            }
            // It became read-only while it was open; outputs can still be read from it.
            Ok(status) if status.read_only => Some(StoreStanding::ReadOnly(opened)),
            Ok(_) => Some(self.opened(StoreOpening::Again, StoreStanding::Lost)),
            // Another process holds it at the moment, which says nothing about its state.
            Err(Error::Busy) => None,
            Err(error) => Some(StoreStanding::Lost(first_line(&error))),
        }
    }

    fn opened(
        &self,
        opening: StoreOpening,
        failed: impl Fn(String) -> StoreStanding,
    ) -> StoreStanding {
        let opened = (self.open)(opening).and_then(|store| {
            let keys = TenantKeys::derive(&store.secret()?);
            let read_only = store.status()?.read_only;
            let opened = Arc::new(OpenedStore {
                store,
                keys,
                // Sessions and parsed bodies belong to one store: after it was replaced, refs in
                // them would point to outputs that the new store does not have.
                client_sessions: ClientSessions::new(self.memory.clone()),
                parsed_bodies: ParsedBodies::new(self.memory.clone()),
            });
            Ok(if read_only {
                StoreStanding::ReadOnly(opened)
            } else {
                StoreStanding::Usable(opened)
            })
        });
        opened.unwrap_or_else(|error| failed(first_line(&error)))
    }

    fn tell_change(&self, before: Option<String>) {
        *self.damage() = None;
        match (before, self.problem()) {
            // Before the first check the problem is empty, so a good start is not reported.
            (Some(before), None) if before != unusable("") => {
                let notice = "the store can be used again: requests are managed";
                self.notices.info(notice);
            }
            (before, Some(problem)) if before.as_ref() != Some(&problem) => {
                self.notices.error(&problem);
            }
            _ => {}
        }
    }

    /// Records a failure of the store.
    pub(crate) fn note_failure(&self, error: &Error) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        if error.is_damaged() {
            let mut damage = self.damage();
            // Every request of a damaged session fails in the same way; one notice is enough.
            if damage.is_none() {
                let problem = format!(
                    "the store is damaged: {}; `trimtab store check` says what is lost",
                    first_line(error)
                );
                *damage = Some(problem.clone());
                // A notice calls code of the operator, which must not run under the lock.
                drop(damage);
                self.notices.error(&problem);
            }
        } else if matches!(error, Error::Vanished { .. } | Error::ReadOnly) {
            self.recheck();
        } else if !matches!(error, Error::Busy) {
            self.note_recent(first_line(error));
        }
    }

    /// Shows a failure in the status for a while, and tells the operator if it is the first.
    fn note_recent(&self, why: String) {
        let is_first = self.recent_failure().is_none();
        *self.last_failure() = Some((Instant::now(), why));
        if let Some(problem) = self.recent_failure().filter(|_| is_first) {
            self.notices.error(&problem);
        }
    }

    fn recent_failure(&self) -> Option<String> {
        let last = self.last_failure();
        let recent = last.as_ref().filter(|(at, _)| at.elapsed() < SHOWN_FOR);
        recent.map(|(_, why)| format!("the store fails, requests are sent unchanged: {why}"))
    }

    /// How often the store failed.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Records from when the ages of sessions count, if a jump of the clock keeps old ones.
    pub(crate) fn set_ages_since(&self, since: Option<u64>) {
        self.ages_since.store(since.unwrap_or(0), Ordering::Relaxed);
    }

    /// Why old sessions are kept, if they are.
    pub(crate) fn retention_problem(&self) -> Option<String> {
        let since = self.ages_since.load(Ordering::Relaxed);
        (since > 0).then(|| {
            format!(
                "retention: the clock jumped, or nothing ran for long; ages of sessions count \
                 only from then (ages_since_ms={since}), and no older one is removed for its age"
            )
        })
    }

    /// The notices to the operator.
    pub(crate) fn notices(&self) -> &Notices {
        &self.notices
    }

    /// Makes everything durable, and ends the leases of sessions in memory.
    pub(crate) fn close(&self) {
        if let Some(opened) = self.usable() {
            opened.client_sessions.flush();
            let sessions = opened.client_sessions.sessions();
            // If the store cannot be written, the leases expire by themselves.
            opened.lease(&sessions, Duration::ZERO).unwrap_or(());
        }
    }

    fn standing(&self) -> std::sync::RwLockReadGuard<'_, StoreStanding> {
        self.standing.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn last_failure(&self) -> std::sync::MutexGuard<'_, Option<(Instant, String)>> {
        let last = self.last_failure.lock();
        last.unwrap_or_else(PoisonError::into_inner)
    }

    fn damage(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenedStore {
    /// Protects these sessions from collection for a while.
    pub(crate) fn lease(&self, sessions: &[SessionId], time: Duration) -> Result<()> {
        if sessions.is_empty() {
            return Ok(());
        }
        self.store.lease(sessions, time)
    }
}

const READ_ONLY: &str =
    "the store is read-only: what is stored can be read, requests are sent unchanged";

fn unusable(why: &str) -> String {
    format!("the store cannot be used, requests are sent unchanged: {why}")
}

fn first_line(error: &Error) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use trimtab_store::MemoryStore;

    use super::*;
    use crate::config::ProxyLimits;
    use crate::resources::notices::NoticeLevel;

    fn told_to(notices: impl Fn(NoticeLevel, &str) + Send + Sync + 'static) -> Notices {
        Notices::new(Some(Box::new(notices)))
    }

    fn budget() -> MemoryBudget {
        MemoryBudget::new(&ProxyLimits::default())
    }

    #[test]
    fn a_store_that_comes_back_is_used() {
        let (there, told) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(Mutex::new(vec![])),
        );
        let (is_there, telling) = (Arc::clone(&there), Arc::clone(&told));
        let store = Arc::new(MemoryStore::new());
        let open = move |_| {
            let is_there = is_there.load(Ordering::Relaxed);
            let opened = is_there.then(|| Arc::clone(&store) as Arc<dyn Store>);
            opened.ok_or(Error::Full)
        };
        let notices = move |level, notice: &str| {
            telling.lock().unwrap().push((level, notice.to_owned()));
        };
        let state = StoreState::new(Box::new(open), told_to(notices), budget());
        assert!(state.usable().is_none() && state.readable().is_none());
        state.recheck();
        there.store(true, Ordering::Relaxed);
        state.recheck();
        state.recheck();
        assert!(state.usable().is_some() && state.problem().is_none());
        let told = told.lock().unwrap();
        let (levels, texts): (Vec<_>, Vec<_>) = told.iter().cloned().unzip();
        assert_eq!(levels, [NoticeLevel::Error, NoticeLevel::Info]);
        assert!(texts[0].contains("no room left"), "{told:?}");
        assert!(texts[1].contains("can be used again"), "{told:?}");
        assert_eq!(told.len(), 2, "each is told once");
    }

    #[test]
    fn a_usable_store_is_not_worth_a_notice() {
        let store = Arc::new(MemoryStore::new());
        let notices = |_, notice: &str| panic!("{notice}");
        let open = move |_| Ok(Arc::clone(&store) as Arc<dyn Store>);
        let state = StoreState::new(Box::new(open), told_to(notices), budget());
        assert!(state.usable().is_some());
    }
}
