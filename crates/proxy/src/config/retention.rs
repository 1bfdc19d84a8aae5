//! How long sessions are kept in the store, and how much it may hold.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The longest age: a hundred years.
const MOST_DAYS: u64 = 36_500;
/// The largest size: a pebibyte.
const MOST_BYTES: u64 = 1 << 50;

/// The retention of sessions in the store. Sessions in use are always kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreRetention {
    /// How many days a session is kept after its last use; 0 keeps all.
    pub max_age_days: u64,
    /// The maximum size of the store in bytes. Above it the least recently used sessions are
    /// removed; 0 means no limit.
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
    /// All settings: name, value, minimum and maximum.
    pub(super) fn ranges(&self) -> [(&'static str, u64, u64, u64); 2] {
        [
            ("max_age_days", self.max_age_days, 0, MOST_DAYS),
            ("max_bytes", self.max_bytes, 0, MOST_BYTES),
        ]
    }

    /// How long a session is kept after its last use.
    pub(crate) fn max_age(&self) -> Option<Duration> {
        age_of_days(self.max_age_days)
    }

    /// The maximum size of the store.
    pub(crate) fn max_bytes(&self) -> Option<u64> {
        (self.max_bytes > 0).then_some(self.max_bytes)
    }
}

/// An age in days; none if it is 0, which keeps all.
fn age_of_days(days: u64) -> Option<Duration> {
    (days > 0).then(|| Duration::from_hours(24 * days))
}
