//! The retry policy for failed calls.

use std::time::Duration;

use super::ModelError;

/// Fewer attempts for an unreachable host, because its name is usually wrong.
const UNREACHABLE: u32 = 2;

/// The retry policy for failed calls.
///
/// A call is repeated only if nothing was delivered, so that the reader never sees text twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The maximum number of further attempts.
    pub most: u32,
    /// The delay before the first of them; it doubles each time.
    pub first_wait: Duration,
    /// The longest delay. If a provider asks for more, the call fails.
    pub longest_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            most: 4,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_mins(1),
        }
    }
}

impl RetryPolicy {
    /// No retries.
    pub const NONE: Self = Self {
        most: 0,
        first_wait: Duration::ZERO,
        longest_wait: Duration::ZERO,
    };

    /// The delay after `attempt` (from 1) failed with `error`; none to give up.
    pub(super) fn wait(&self, attempt: u32, error: &ModelError) -> Option<Duration> {
        let most = match error {
            ModelError::Unreachable { .. } => self.most.min(UNREACHABLE),
            _ => self.most,
        };
        if !error.is_passing() || attempt > most {
            return None;
        }
        if let Some(asked) = error.retry_after() {
            // The provider's own figure is used as it is: coming back earlier would fail again.
            return (asked <= self.longest_wait).then_some(asked);
        }
        let doubled = self
            .first_wait
            .saturating_mul(1 << attempt.saturating_sub(1).min(16))
            .min(self.longest_wait);
        Some(doubled.mul_f64(spread()))
    }
}

/// Jitter between 0.75 and 1.25, so that clients that failed together do not return together.
fn spread() -> f64 {
    let nanos = trimtab_store::since_epoch().subsec_nanos();
    0.75 + f64::from(nanos % 1000) / 2000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(retry_after: Option<Duration>) -> ModelError {
        ModelError::Busy {
            url: String::new(),
            status: 429,
            message: String::new(),
            retry_after,
        }
    }

    #[test]
    fn waits_double_and_end() {
        let retries = RetryPolicy::default();
        let waits: Vec<f64> = (1..=4)
            .map(|attempt| retries.wait(attempt, &busy(None)).unwrap().as_secs_f64())
            .collect();
        for (wait, expected) in waits.iter().zip([0.5, 1.0, 2.0, 4.0]) {
            assert!((expected * 0.75..=expected * 1.25).contains(wait), "{wait}");
        }
        assert_eq!(retries.wait(5, &busy(None)), None);
    }

    #[test]
    fn retry_after_is_honoured_up_to_the_limit() {
        let retries = RetryPolicy::default();
        let asked = Some(Duration::from_secs(7));
        assert_eq!(retries.wait(1, &busy(asked)), asked);
        assert_eq!(retries.wait(1, &busy(Some(Duration::from_hours(1)))), None);
    }

    #[test]
    fn permanent_errors_are_not_retried() {
        let refused = ModelError::Refused {
            url: String::new(),
            status: 400,
            message: String::new(),
        };
        assert_eq!(RetryPolicy::default().wait(1, &refused), None);
        let gone = ModelError::Unreachable {
            url: String::new(),
            why: String::new(),
        };
        assert_eq!(RetryPolicy::default().wait(3, &gone), None);
    }
}
