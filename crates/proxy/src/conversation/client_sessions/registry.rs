//! All families in memory. The oldest are let go when there are too many; the store has them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use trimtab_store::SessionId;

use super::{ClientSession, FAMILY_BYTES};
use crate::resources::memory_budget::MemoryBudget;

/// How many families are let go at once when there are too many.
const LET_GO: usize = 16;
/// After how many requests it is added up how much memory families take.
const ADDED_UP: u64 = 16;
/// The share of the memory budget that families may take, as a divisor.
const SHARE: usize = 2;

type ClientSessionsByName = HashMap<String, Arc<ClientSession>>;

/// All families in memory. The oldest are let go; the store has them.
pub(crate) struct ClientSessions {
    by_name: Mutex<ClientSessionsByName>,
    clock: AtomicU64,
    started: Instant,
    budget: MemoryBudget,
}

impl ClientSessions {
    /// No family yet; all together may take a share of `budget`.
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

    /// The family of that name.
    pub(crate) fn get(&self, name: &str, most: usize) -> Arc<ClientSession> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let mut families = self.by_name();
        let family = families.entry(name.to_owned()).or_insert_with(|| {
            Arc::new(ClientSession {
                name: name.to_owned(),
                used: AtomicU64::new(now),
                used_at: AtomicU64::new(0),
                memory: Mutex::new(self.budget.always_reserve(None, FAMILY_BYTES)),
                branches: Mutex::default(),
            })
        });
        family.used.store(now, Ordering::Relaxed);
        let seconds = self.started.elapsed().as_secs();
        family.used_at.store(seconds, Ordering::Relaxed);
        let family = Arc::clone(family);
        let old = self.take_excess(&mut families, most);
        drop(families);
        // The families are dropped without the lock, because that takes time.
        drop(old);
        family
    }

    /// Makes durable what all of them have written.
    pub(crate) fn flush(&self) {
        for family in self.all() {
            // There is nobody to tell. What is lost the client brings again.
            family.branches().flush().unwrap_or(());
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.by_name().len()
    }

    /// Lets go of families until so many bytes are free, if there are enough.
    pub(crate) fn evict(&self, bytes: usize) {
        let mut families = self.by_name();
        let old = evict_oldest(&mut families, |_, freed| freed >= bytes);
        drop(families);
        drop(old);
    }

    /// The sessions that are in memory now.
    pub(crate) fn sessions(&self) -> Vec<SessionId> {
        let families = self.all();
        let mut sessions = Vec::new();
        for family in families {
            // Another thread works on it, so it was just used. It is listed the next time.
            let Some(branches) = family.free_branches() else {
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

    /// Lets go of families that were not used for so long.
    pub(crate) fn evict_idle(&self, idle: Duration) {
        let now = self.started.elapsed().as_secs();
        self.by_name().retain(|_, family| {
            let idle_for = now.saturating_sub(family.used_at.load(Ordering::Relaxed));
            let in_use = Arc::strong_count(family) > 1 || !family.is_idle();
            in_use || idle_for < idle.as_secs()
        });
    }

    fn all(&self) -> Vec<Arc<ClientSession>> {
        self.by_name().values().cloned().collect()
    }

    /// Takes out the oldest families, if there are too many or they take too much memory.
    fn take_excess(
        &self,
        families: &mut ClientSessionsByName,
        most: usize,
    ) -> Vec<Arc<ClientSession>> {
        // Adding up takes time, so it is not done for every request.
        if families.len() <= most && !self.clock.load(Ordering::Relaxed).is_multiple_of(ADDED_UP) {
            return Vec::new();
        }
        let share = self.budget.limit() / SHARE;
        let total: usize = families.values().map(|family| family.memory_bytes()).sum();
        if families.len() <= most && total <= share {
            return Vec::new();
        }
        let count = families.len();
        evict_oldest(families, |gone, freed| {
            gone >= LET_GO && count <= most + gone && total <= share + freed
        })
    }
}

/// Takes out the oldest families until it is `enough`: that is told how many were taken out,
/// and their bytes.
fn evict_oldest(
    families: &mut ClientSessionsByName,
    enough: impl Fn(usize, usize) -> bool,
) -> Vec<Arc<ClientSession>> {
    let mut oldest: Vec<(u64, String)> = families
        .values()
        // A family stays that is in use or has something to write.
        .filter(|family| Arc::strong_count(family) == 1 && family.is_idle())
        .map(|family| (family.used.load(Ordering::Relaxed), family.name.clone()))
        .collect();
    oldest.sort_unstable();
    let (mut taken, mut freed) = (Vec::new(), 0);
    for (_, name) in oldest {
        if enough(taken.len(), freed) {
            break;
        }
        if let Some(family) = families.remove(&name) {
            freed += family.memory_bytes();
            taken.push(family);
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ProxyLimits;

    fn families(memory_bytes: usize) -> ClientSessions {
        ClientSessions::new(MemoryBudget::new(&ProxyLimits {
            memory_bytes,
            ..ProxyLimits::default()
        }))
    }

    #[test]
    fn the_oldest_families_are_let_go() {
        let many = families(1 << 30);
        for at in 0..100 {
            many.get(&format!("f{at}"), 50);
        }
        assert!(many.len() <= 50);
        let small = families(40 * FAMILY_BYTES);
        for at in 0..100 {
            small.get(&format!("f{at}"), 5_000);
        }
        assert!(small.len() <= 20 + 16, "{}", small.len());
    }

    #[test]
    fn families_make_room_for_requests() {
        let families = families(1 << 20);
        for at in 0..10 {
            families.get(&format!("f{at}"), 50);
        }
        assert_eq!(families.budget.used(), 10 * FAMILY_BYTES);
        families.evict(3 * FAMILY_BYTES);
        assert_eq!(families.len(), 7);
        assert_eq!(families.budget.used(), 7 * FAMILY_BYTES);
        assert!(families.by_name().contains_key("f9"));
    }

    #[test]
    fn a_family_in_use_stays() {
        let families = families(1 << 30);
        let held = families.get("held", 1);
        for at in 0..100 {
            families.get(&format!("f{at}"), 1);
        }
        assert!(Arc::ptr_eq(&held, &families.get("held", 1)));
    }
}
