//! How many bytes of the store each tenant uses, and how long its sessions are kept. Adding the
//! bytes up reads the list of all sessions, so the totals are reused for a while.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
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
pub(crate) struct StoreUse(Mutex<Option<StoreTotals>>);

struct StoreTotals {
    bytes: HashMap<String, u64>,
    good_until: Instant,
}

impl StoreUse {
    /// The recent size of the tenant's outputs in bytes; none if the store cannot tell.
    pub(crate) fn bytes(&self, store: &dyn Store, tenant: &Tenant) -> Option<u64> {
        // The lock is held while the store is read: others that need the totals would otherwise all
        // read it at the same time.
        let mut totals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if !matches!(&*totals, Some(totals) if now < totals.good_until) {
            let bytes = added_up(store)?;
            // Reading takes at most a fiftieth of the time, however large the store is.
            let pause = (now.elapsed() * PAUSE_FACTOR).max(AT_LEAST);
            *totals = Some(StoreTotals {
                bytes,
                good_until: now + pause,
            });
        }
        let totals = totals.as_ref()?;
        Some(totals.bytes.get(tenant.as_str()).copied().unwrap_or(0))
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
    let by_tenant = config
        .tenant_ages()
        .map(|(tenant, age)| (format!("{SESSIONS}{tenant}/"), age));
    CollectOptions {
        older_than: config.retention.max_age(),
        older_than_by_prefix: by_tenant.collect(),
        max_bytes: config.retention.max_bytes(),
        ..CollectOptions::default()
    }
}
