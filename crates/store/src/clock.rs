//! The only module that reads the system clock. Tests replace it.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the time in milliseconds since 1970.
pub(crate) type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The system clock.
pub(crate) fn system() -> Clock {
    Arc::new(now_millis)
}

/// The time since 1970.
#[expect(clippy::disallowed_methods, reason = "this is the one clock")]
pub fn since_epoch() -> Duration {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    // A clock before 1970 counts as 1970.
    since.unwrap_or_default()
}

/// The time in milliseconds since 1970.
pub fn now_millis() -> u64 {
    u64::try_from(since_epoch().as_millis()).unwrap_or(u64::MAX)
}
