//! The one place that looks at the clock.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Gives the time in milliseconds since 1970.
pub(crate) type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The computer's clock.
pub(crate) fn system() -> Clock {
    Arc::new(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let millis = since.unwrap_or_default().as_millis();
        u64::try_from(millis).unwrap_or(u64::MAX)
    })
}
