//! The memory budget: how much memory requests and caches may take, in all and per tenant.
//!
//! Memory is reserved before it is used, and freed by dropping the reservation. A request without
//! a reservation is not buffered: it streams through unchanged, in small pieces. Requests take
//! precedence over caches: when the budget runs short, caches are asked to free memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Duration, Instant};

use crate::config::ProxyLimits;

/// How long a request waits for memory that others may free.
pub(crate) const WAIT_FOR_MEMORY: Duration = Duration::from_millis(100);

/// Counts reserved memory. Clones share the same account.
#[derive(Clone)]
pub(crate) struct MemoryBudget(Arc<MemoryAccount>);

/// Frees at least this many bytes of caches, if possible.
type MakeRoom = Box<dyn Fn(usize) + Send + Sync>;

struct MemoryAccount {
    used: Mutex<MemoryUse>,
    make_room: OnceLock<MakeRoom>,
    /// The permit to exceed the share of a tenant.
    beyond_share: Arc<Semaphore>,
}

/// The reserved memory and the limits.
#[derive(Default)]
struct MemoryUse {
    process: usize,
    tenants: HashMap<Arc<str>, usize>,
    process_limit: usize,
    tenant_limit: usize,
}

/// Why a reservation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemoryShortage {
    /// The process lacks this many bytes.
    Process(usize),
    /// The tenant has reached its limit.
    Tenant,
}

impl MemoryBudget {
    /// An unused budget with these limits.
    pub(crate) fn new(limits: &ProxyLimits) -> Self {
        let budget = Self(Arc::new(MemoryAccount {
            used: Mutex::default(),
            make_room: OnceLock::new(),
            beyond_share: Arc::new(Semaphore::new(1)),
        }));
        budget.set_limits(limits);
        budget
    }

    /// Changes the limits. Existing reservations stay.
    pub(crate) fn set_limits(&self, limits: &ProxyLimits) {
        let mut used = self.0.used();
        used.process_limit = limits.memory_bytes;
        used.tenant_limit = limits.tenant_memory_bytes;
    }

    /// Sets the function that frees memory of caches when the process runs short.
    pub(crate) fn when_short(&self, make_room: impl Fn(usize) + Send + Sync + 'static) {
        // Set once, at the start.
        self.0.make_room.set(Box::new(make_room)).unwrap_or(());
    }

    /// Reserves memory for a tenant, or for no tenant. None if a limit is exceeded.
    pub(crate) fn try_reserve(&self, tenant: Option<&str>, bytes: usize) -> Option<Reservation> {
        let mut reservation = self.always_reserve(tenant, 0);
        reservation.grow(bytes).then_some(reservation)
    }

    /// Counts memory that is used in any case, even above the limits.
    pub(crate) fn always_reserve(&self, tenant: Option<&str>, bytes: usize) -> Reservation {
        let mut reservation = Reservation {
            account: Arc::clone(&self.0),
            tenant: tenant.map(Arc::from),
            bytes: 0,
            _beyond_share: None,
        };
        reservation.set(bytes);
        reservation
    }

    /// The reserved bytes.
    pub(crate) fn used(&self) -> usize {
        self.0.used().process
    }

    /// The limit of the process in bytes.
    pub(crate) fn limit(&self) -> usize {
        self.0.used().process_limit
    }
}

impl MemoryAccount {
    fn used(&self) -> MutexGuard<'_, MemoryUse> {
        // The figures are changed together, so they are consistent even after a panic.
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryUse {
    fn try_add(&mut self, tenant: Option<&Arc<str>>, bytes: usize) -> Result<(), MemoryShortage> {
        if let Some(tenant) = tenant {
            let used = self.tenants.get(tenant).copied().unwrap_or(0);
            // The tenant's own limit comes first: caches of others must not be emptied because one
            // tenant asks for too much.
            if used.saturating_add(bytes) > self.tenant_limit {
                return Err(MemoryShortage::Tenant);
            }
        }
        let wanted = self.process.saturating_add(bytes);
        if wanted > self.process_limit {
            return Err(MemoryShortage::Process(wanted - self.process_limit));
        }
        self.add(tenant, bytes);
        Ok(())
    }

    fn add(&mut self, tenant: Option<&Arc<str>>, bytes: usize) {
        self.process = self.process.saturating_add(bytes);
        // An empty reservation adds no entry, or the map would grow with every tenant that ever
        // came.
        if let Some(tenant) = tenant.filter(|_| bytes > 0) {
            let used = self.tenants.entry(Arc::clone(tenant)).or_default();
            *used = used.saturating_add(bytes);
        }
    }

    fn remove(&mut self, tenant: Option<&Arc<str>>, bytes: usize) {
        self.process = self.process.saturating_sub(bytes);
        let Some(tenant) = tenant else { return };
        if let Some(used) = self.tenants.get_mut(tenant) {
            *used = used.saturating_sub(bytes);
            if *used == 0 {
                self.tenants.remove(tenant);
            }
        }
    }
}

/// Memory that is reserved until this is dropped.
pub(crate) struct Reservation {
    account: Arc<MemoryAccount>,
    tenant: Option<Arc<str>>,
    bytes: usize,
    /// Held while it exceeds the share of its tenant.
    _beyond_share: Option<OwnedSemaphorePermit>,
}

impl Reservation {
    /// Reserves more. False if a limit is exceeded; the previous reservation stays.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let try_add = || self.account.used().try_add(self.tenant.as_ref(), bytes);
        let added = match (try_add(), self.account.make_room.get()) {
            (Err(MemoryShortage::Process(missing)), Some(make_room)) => {
                // Called without the lock on the figures: dropping caches gives back reservations,
                // which takes it.
                make_room(missing);
                try_add()
            }
            (added, _) => added,
        };
        if added.is_ok() {
            self.bytes = self.bytes.saturating_add(bytes);
        }
        added.is_ok()
    }

    /// Reserves more, and waits a short time for others to free memory. False if they do not.
    pub(crate) async fn grow_soon(&mut self, bytes: usize) -> bool {
        let deadline = Instant::now() + WAIT_FOR_MEMORY;
        while !self.grow(bytes) {
            if Instant::now() >= deadline {
                return false;
            }
            // Giving memory back wakes nobody, so this tries again at short intervals.
            tokio::time::sleep(WAIT_FOR_MEMORY / 10).await;
        }
        true
    }

    /// Reserves at least this many bytes in total. False if a limit is exceeded.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> bool {
        bytes <= self.bytes || self.grow(bytes - self.bytes)
    }

    /// Like [`Self::grow_to`], for the work on a body. Work that is too large for the share of its
    /// tenant may exceed the share, one request at a time; otherwise the conversation could never be
    /// managed.
    pub(crate) fn grow_for_work(&mut self, bytes: usize) -> bool {
        if self.grow_to(bytes) {
            return true;
        }
        if !self.may_exceed_share(bytes) {
            return false;
        }
        let permit = Arc::clone(&self.account.beyond_share).try_acquire_owned();
        let Ok(permit) = permit else { return false };
        let mut alone = Self {
            account: Arc::clone(&self.account),
            // Without a tenant, only the budget of the process limits it.
            tenant: None,
            bytes: 0,
            _beyond_share: Some(permit),
        };
        let has_room = alone.grow(bytes);
        if has_room {
            *self = alone;
        }
        has_room
    }

    /// True if work of this size may exceed the share of its tenant: no room is kept for it, and
    /// the budget of the process can hold it.
    pub(crate) fn may_exceed_share(&self, bytes: usize) -> bool {
        bytes > self.most_spare() && bytes <= self.account.used().process_limit
    }

    /// The most bytes that must be free for the work on a body while it arrives: half of a tenant's
    /// share, so that a body of a quarter of it always finds room.
    pub(crate) fn most_spare(&self) -> usize {
        let used = self.account.used();
        used.tenant_limit.min(used.process_limit) / 2
    }

    /// Sets the reservation to this many bytes, even above the limits.
    pub(crate) fn set(&mut self, bytes: usize) {
        let mut used = self.account.used();
        if bytes >= self.bytes {
            used.add(self.tenant.as_ref(), bytes - self.bytes);
        } else {
            used.remove(self.tenant.as_ref(), self.bytes - bytes);
        }
        drop(used);
        self.bytes = bytes;
    }

    /// Splits off everything except `keep` bytes as a separate reservation.
    pub(crate) fn split_off(&mut self, keep: usize) -> Self {
        let keep = keep.min(self.bytes);
        let rest = self.bytes - keep;
        self.bytes = keep;
        Self {
            account: Arc::clone(&self.account),
            tenant: self.tenant.clone(),
            bytes: rest,
            _beyond_share: None,
        }
    }

    /// The reserved bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The buffer as `Bytes` that hold the reservation as long as any part of them is alive.
    pub(crate) fn attach(self, buffer: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        Bytes::from_owner(ReservedBytes {
            buffer,
            _reservation: self,
        })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// A buffer with the reservation of its memory.
struct ReservedBytes<B> {
    buffer: B,
    _reservation: Reservation,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for ReservedBytes<B> {
    fn as_ref(&self) -> &[u8] {
        self.buffer.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(process: usize, tenant: usize) -> MemoryBudget {
        MemoryBudget::new(&ProxyLimits {
            memory_bytes: process,
            tenant_memory_bytes: tenant,
            ..ProxyLimits::default()
        })
    }

    #[test]
    fn reservation_is_given_back_when_dropped() {
        let budget = budget(100, 100);
        let mut first = budget.try_reserve(None, 60).unwrap();
        assert!(budget.try_reserve(None, 41).is_none());
        assert!(first.grow(40) && !first.grow(1));
        assert_eq!((first.bytes(), budget.used()), (100, 100));
        drop(first);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn tenant_gets_its_share_only() {
        let budget = budget(100, 60);
        let one = budget.try_reserve(Some("one"), 60).unwrap();
        assert!(budget.try_reserve(Some("one"), 1).is_none());
        let other = budget.try_reserve(Some("other"), 40).unwrap();
        assert!(budget.try_reserve(Some("third"), 1).is_none());
        drop((one, other));
        assert!(budget.0.used().tenants.is_empty());
    }

    #[test]
    fn one_large_work_at_a_time_may_exceed_the_share_of_its_tenant() {
        let budget = budget(100, 40);
        let body = budget.try_reserve(Some("one"), 10).unwrap();
        let mut works = ["one", "other"].map(|tenant| budget.always_reserve(Some(tenant), 0));
        // Half of a share is kept for it while the body arrives.
        assert!(!budget.always_reserve(Some("one"), 0).grow_to(31));
        let small = budget.try_reserve(Some("one"), 15).unwrap();
        assert!(!works[0].grow_for_work(20), "room is kept for small work");
        drop(small);
        assert!(works[0].grow_for_work(45));
        assert!(!works[1].grow_for_work(41), "another one exceeds its share");
        assert!(works[1].grow_for_work(40), "within its share");
        works[0].set(0);
        let [first, mut second] = works;
        drop(first);
        assert!(!second.grow_for_work(101), "more than the process has");
        assert!(second.grow_for_work(41));
        drop((second, body));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn bytes_keep_their_reservation_until_the_last_clone_is_gone() {
        let budget = budget(100, 100);
        let reservation = budget.try_reserve(Some("one"), 10).unwrap();
        let body = reservation.attach(b"0123456789".to_vec());
        let part = body.slice(2..4);
        drop(body);
        assert_eq!((part.as_ref(), budget.used()), (&b"23"[..], 10));
        drop(part);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn caches_make_room_for_requests() {
        let budget = budget(100, 100);
        let cache = Arc::new(Mutex::new(Some(budget.always_reserve(None, 80))));
        let kept = Arc::clone(&cache);
        budget.when_short(move |missing| {
            assert_eq!(missing, 30);
            kept.lock().unwrap().take();
        });
        assert!(budget.try_reserve(Some("one"), 50).is_some());
        assert!(cache.lock().unwrap().is_none());
    }

    #[test]
    fn memory_that_is_taken_anyway_leaves_less_for_others() {
        let budget = budget(100, 100);
        let taken = budget.always_reserve(Some("one"), 150);
        assert!(budget.try_reserve(Some("other"), 1).is_none());
        drop(taken);
        assert!(budget.try_reserve(Some("other"), 1).is_some());
    }
}
