//! All client sessions in memory. The least recently used are dropped when there are too many or
//! they take too much memory; the store keeps them.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use trimtab_store::SessionId;

use super::{CLIENT_SESSION_BYTES, ClientSession};
use crate::resources::memory_budget::MemoryBudget;

/// The minimum number of client sessions that are dropped at once.
const LET_GO: usize = 16;
/// The memory of all client sessions is added up once per this many requests.
const ADDED_UP: u64 = 16;
/// The share of the memory budget for client sessions, as a divisor.
const SHARE: usize = 2;

type ClientSessionsByName = HashMap<String, Arc<ClientSession>>;

/// All client sessions in memory.
pub(crate) struct ClientSessions {
    by_name: Mutex<ClientSessionsByName>,
    clock: AtomicU64,
    started: Instant,
    budget: MemoryBudget,
}

impl ClientSessions {
    /// An empty registry. All client sessions together may use a share of `budget`.
    pub(crate) fn new(budget: MemoryBudget) -> Self {
        Self {
            by_name: Mutex::default(),
            clock: AtomicU64::new(0),
            started: Instant::now(),
            budget,
        }
    }

    fn by_name(&self) -> MutexGuard<'_, ClientSessionsByName> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client session `name`, created if necessary. At most `most` are kept.
    pub(crate) fn get(&self, name: &str, most: usize) -> Arc<ClientSession> {
        // A counter and not a time: it orders requests even within one tick of the clock.
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let mut client_sessions = self.by_name();
        let client_session = client_sessions.entry(name.to_owned()).or_insert_with(|| {
            Arc::new(ClientSession {
                name: name.to_owned(),
                used: AtomicU64::new(now),
                used_at: AtomicU64::new(0),
                memory: Mutex::new(self.budget.always_reserve(None, CLIENT_SESSION_BYTES)),
                branches: Mutex::default(),
            })
        });
        client_session.used.store(now, Ordering::Relaxed);
        let seconds = self.started.elapsed().as_secs();
        client_session.used_at.store(seconds, Ordering::Relaxed);
        let client_session = Arc::clone(client_session);
        let old = self.take_excess(&mut client_sessions, most);
        drop(client_sessions);
        // The client sessions are dropped without the lock, because that takes time.
        drop(old);
        client_session
    }

    /// The client session `name`, if it is in memory.
    pub(crate) fn loaded(&self, name: &str) -> Option<Arc<ClientSession>> {
        self.by_name().get(name).cloned()
    }

    /// Makes the writes of all of them durable.
    pub(crate) fn flush(&self) {
        for client_session in self.all() {
            // Nobody can be told here. The client sends lost messages again.
            client_session.branches().flush().unwrap_or(());
        }
    }

    /// The number of client sessions in memory.
    pub(crate) fn len(&self) -> usize {
        self.by_name().len()
    }

    /// Drops client sessions until this many bytes are free, as far as possible.
    pub(crate) fn evict(&self, bytes: usize) {
        let mut client_sessions = self.by_name();
        let old = evict_oldest(&mut client_sessions, |_, freed| freed >= bytes);
        drop(client_sessions);
        let freed: usize = old.iter().map(|session| session.memory_bytes()).sum();
        drop(old);
        if freed < bytes {
            self.evict_branches(bytes - freed);
        }
    }

    /// Drops unused branches of client sessions that are in use. Otherwise one slow request would
    /// keep all conversations of its client session in memory, and others would get none.
    fn evict_branches(&self, bytes: usize) {
        let mut client_sessions = self.all();
        client_sessions.sort_by_key(|session| session.used.load(Ordering::Relaxed));
        let mut freed = 0;
        for client_session in client_sessions {
            if freed >= bytes {
                break;
            }
            let before = client_session.memory_bytes();
            drop(client_session.take_unused_branches());
            freed += before.saturating_sub(client_session.memory_bytes());
        }
    }

    /// The sessions that are in memory now.
    pub(crate) fn sessions(&self) -> Vec<SessionId> {
        let client_sessions = self.all();
        let mut sessions = Vec::new();
        for client_session in client_sessions {
            // Another thread works on it, so it was just used. It is listed the next time.
            let Some(branches) = client_session.free_branches() else {
                continue;
            };
            sessions.extend(
                branches
                    .loaded
                    .iter()
                    .map(|(_, branch)| branch.id().clone()),
            );
        }
        sessions
    }

    /// Drops these sessions from memory. If a request works on one, that request drops it.
    pub(crate) fn forget(&self, gone: &BTreeSet<SessionId>) {
        for client_session in self.all() {
            let Some(mut branches) = client_session.free_branches() else {
                continue;
            };
            for session in gone {
                branches.forget_session(session.as_str());
            }
        }
    }

    /// Drops client sessions that were not used for this long.
    pub(crate) fn evict_idle(&self, idle: Duration) {
        let now = self.started.elapsed().as_secs();
        let mut client_sessions = self.by_name();
        let old: Vec<Arc<ClientSession>> = client_sessions
            .extract_if(|_, client_session| {
                let idle_for = now.saturating_sub(client_session.used_at.load(Ordering::Relaxed));
                idle_for >= idle.as_secs() && client_session.is_unused()
            })
            .map(|(_, client_session)| client_session)
            .collect();
        drop(client_sessions);
        // The client sessions are dropped without the lock, because that takes time.
        drop(old);
    }

    fn all(&self) -> Vec<Arc<ClientSession>> {
        self.by_name().values().cloned().collect()
    }

    /// Removes the least recently used client sessions, if there are too many or they use too much
    /// memory.
    fn take_excess(
        &self,
        client_sessions: &mut ClientSessionsByName,
        most: usize,
    ) -> Vec<Arc<ClientSession>> {
        // Adding up takes time, so it is not done for every request.
        if client_sessions.len() <= most
            && !self.clock.load(Ordering::Relaxed).is_multiple_of(ADDED_UP)
        {
            return Vec::new();
        }
        let share = self.budget.limit() / SHARE;
        let total: usize = client_sessions
            .values()
            .map(|client_session| client_session.memory_bytes())
            .sum();
        if client_sessions.len() <= most && total <= share {
            return Vec::new();
        }
        let count = client_sessions.len();
        evict_oldest(client_sessions, |gone, freed| {
            // At least a few go at a time, because finding the oldest looks at all of them.
            gone >= LET_GO && count <= most + gone && total <= share + freed
        })
    }
}

/// Removes the least recently used client sessions until `enough` returns true. It gets the number
/// of removed ones and their bytes.
fn evict_oldest(
    client_sessions: &mut ClientSessionsByName,
    enough: impl Fn(usize, usize) -> bool,
) -> Vec<Arc<ClientSession>> {
    let mut oldest: Vec<(u64, String)> = client_sessions
        .values()
        .filter(|client_session| client_session.is_unused())
        .map(|client_session| {
            (
                client_session.used.load(Ordering::Relaxed),
                client_session.name.clone(),
            )
        })
        .collect();
    oldest.sort_unstable();
    let (mut taken, mut freed) = (Vec::new(), 0);
    for (_, name) in oldest {
        if enough(taken.len(), freed) {
            break;
        }
        if let Some(client_session) = client_sessions.remove(&name) {
            freed += client_session.memory_bytes();
            taken.push(client_session);
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ProxyLimits;

    fn client_sessions(memory_bytes: usize) -> ClientSessions {
        ClientSessions::new(MemoryBudget::new(&ProxyLimits {
            memory_bytes,
            ..ProxyLimits::default()
        }))
    }

    #[test]
    fn the_oldest_families_are_let_go() {
        let many = client_sessions(1 << 30);
        for at in 0..100 {
            many.get(&format!("f{at}"), 50);
        }
        assert!(many.len() <= 50);
        let small = client_sessions(40 * CLIENT_SESSION_BYTES);
        for at in 0..100 {
            small.get(&format!("f{at}"), 5_000);
        }
        assert!(small.len() <= 20 + 16, "{}", small.len());
    }

    #[test]
    fn families_make_room_for_requests() {
        let client_sessions = client_sessions(1 << 20);
        for at in 0..10 {
            client_sessions.get(&format!("f{at}"), 50);
        }
        assert_eq!(client_sessions.budget.used(), 10 * CLIENT_SESSION_BYTES);
        client_sessions.evict(3 * CLIENT_SESSION_BYTES);
        assert_eq!(client_sessions.len(), 7);
        assert_eq!(client_sessions.budget.used(), 7 * CLIENT_SESSION_BYTES);
        assert!(client_sessions.by_name().contains_key("f9"));
    }

    #[test]
    fn a_family_in_use_stays() {
        let client_sessions = client_sessions(1 << 30);
        let held = client_sessions.get("held", 1);
        for at in 0..100 {
            client_sessions.get(&format!("f{at}"), 1);
        }
        assert!(Arc::ptr_eq(&held, &client_sessions.get("held", 1)));
    }
}
