//! How long sessions are kept in the store, and how much it may hold.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long and how much is kept in the store. Sessions that are in use stay in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreRetention {
    /// Days after its last use for which a session is kept; 0 keeps all.
    pub max_age_days: u64,
    /// Bytes that the store may hold before the sessions longest out of use are removed; 0
    /// sets no limit.
    pub max_bytes: u64,
}

impl Default for StoreRetention {
    fn default() -> Self {
        Self {
            max_age_days: 30,
            max_bytes: 10 << 30,
        }
    }
}

impl StoreRetention {
    /// The names of all settings with their values and what is allowed.
    pub(super) fn ranges(&self) -> [(&'static str, u64, u64, u64); 2] {
        [
            ("max_age_days", self.max_age_days, 0, 36_500),
            ("max_bytes", self.max_bytes, 0, 1 << 50),
        ]
    }

    /// How long a session is kept after its last use.
    pub(crate) fn max_age(&self) -> Option<Duration> {
        (self.max_age_days > 0).then(|| Duration::from_hours(24 * self.max_age_days))
    }

    /// How many bytes the store may hold.
    pub(crate) fn max_bytes(&self) -> Option<u64> {
        (self.max_bytes > 0).then_some(self.max_bytes)
    }
}
