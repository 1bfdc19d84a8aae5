//! How many bytes of the store each tenant uses, and how long sessions are kept. Adding the
//! bytes up reads the list of all sessions, so the totals are reused for a while.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use trimtab_store::{CollectOptions, Store};

use super::tenant::Tenant;
use crate::config::ProxyConfig;

/// The prefix of the sessions of all tenants, before the tenant's name.
pub(crate) const SESSIONS: &str = "proxy/";
/// The shortest time between two readings of the store.
const AT_LEAST: Duration = Duration::from_secs(1);
/// The time between two readings as a multiple of their duration, so that a large store is read
/// less often.
const PAUSE_FACTOR: u32 = 50;

/// The bytes of every tenant at the last reading of the store.
#[derive(Default)]
pub(crate) struct StoreUse {
    totals: Mutex<Option<StoreTotals>>,
    /// Held while the store is read, so that only one request reads it.
    reading: Mutex<()>,
}

struct StoreTotals {
    bytes: HashMap<String, u64>,
    good_until: Instant,
}

impl StoreUse {
    /// The recent size of the tenant's outputs in bytes; none if the store cannot tell.
    pub(crate) fn bytes(&self, store: &dyn Store, tenant: &Tenant) -> Option<u64> {
        let known = self.known(tenant);
        if let Some((bytes, true)) = known {
            return Some(bytes);
        }
        let _reading = match (known, self.reading.try_lock()) {
            (_, Ok(reading)) => reading,
            (_, Err(TryLockError::Poisoned(reading))) => reading.into_inner(),
            // Another request reads the store. That can take long if a database does not answer, so
            // the others go on with what is known.
            (Some((bytes, _)), Err(TryLockError::WouldBlock)) => return Some(bytes),
            (None, Err(TryLockError::WouldBlock)) => {
                self.reading.lock().unwrap_or_else(PoisonError::into_inner)
            }
        };
        // Another request may have read it while this one waited.
        if let Some((bytes, true)) = self.known(tenant) {
            return Some(bytes);
        }
        let now = Instant::now();
        let bytes = added_up(store)?;
        // Reading takes at most a fiftieth of the time, however large the store is.
        let pause = (now.elapsed() * PAUSE_FACTOR).max(AT_LEAST);
        *self.totals() = Some(StoreTotals {
            bytes,
            good_until: now + pause,
        });
        self.known(tenant).map(|(bytes, _)| bytes)
    }

    /// The last known bytes of a tenant, and whether they are recent.
    fn known(&self, tenant: &Tenant) -> Option<(u64, bool)> {
        let totals = self.totals();
        let totals = totals.as_ref()?;
        let bytes = totals.bytes.get(tenant.as_str()).copied().unwrap_or(0);
        Some((bytes, Instant::now() < totals.good_until))
    }

    fn totals(&self) -> MutexGuard<'_, Option<StoreTotals>> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes of all outputs, by tenant.
fn added_up(store: &dyn Store) -> Option<HashMap<String, u64>> {
    let mut bytes = HashMap::new();
    for info in store.sessions().ok()? {
        let inner = info.session.as_str().strip_prefix(SESSIONS);
        if let Some((tenant, _)) = inner.and_then(|inner| inner.split_once('/')) {
            *bytes.entry(tenant.to_owned()).or_insert(0) += info.byte_size;
        }
    }
    Some(bytes)
}

/// The removal of what the settings do not want kept.
pub(crate) fn retention_request(config: &ProxyConfig) -> CollectOptions {
    CollectOptions {
        older_than: config.retention.max_age(),
        doubts_clock: true,
        max_bytes: config.retention.max_bytes(),
        ..CollectOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use trimtab_store::{MemoryStore, Put, SessionId};

    use super::*;
    use crate::access::tenant::{PresentedIdentity, TenantKeys};

    #[test]
    fn request_does_not_wait_while_another_one_reads_the_store() {
        let tenant = TenantKeys::derive(b"secret").tenant(&PresentedIdentity::default());
        let store = MemoryStore::new();
        let name = format!("{SESSIONS}{}/chat/s", tenant.as_str());
        let session = SessionId::new(name).unwrap();
        store.put(&session, Put::new("one", "1234")).unwrap();
        let totals = StoreUse::default();
        assert_eq!(totals.bytes(&store, &tenant), Some(4));
        store.put(&session, Put::new("two", "5678")).unwrap();
        if let Some(totals) = &mut *totals.totals() {
            totals.good_until = Instant::now();
        }
        let reading = totals.reading.lock().unwrap();
        assert_eq!(totals.bytes(&store, &tenant), Some(4), "the last reading");
        drop(reading);
        assert_eq!(totals.bytes(&store, &tenant), Some(8));
    }
}
