//! Limits of a tenant: requests and bytes per minute, and requests at a time.
//!
//! The allowance of a minute may be used at once, and is refilled evenly. So one time is enough
//! to represent each limit: the time when the allowance is full again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::refusal::AccessRefusal;
use crate::config::TenantQuotas;

const MINUTE: Duration = Duration::from_mins(1);
/// The maximum number of tenants that are counted. Above it, idle ones are forgotten.
const TENANTS: usize = 10_000;
/// The suggested delay if too many requests are in progress: their duration is unknown.
const TRY_AGAIN: Duration = Duration::from_secs(1);

type TenantUseByName = HashMap<String, TenantUse>;

/// The current use of all tenants.
#[derive(Clone, Default)]
pub(crate) struct TenantRates(Arc<Mutex<TenantUseByName>>);

/// The current use of one tenant.
struct TenantUse {
    requests: MinuteAllowance,
    input_bytes: MinuteAllowance,
    concurrent: u64,
}

/// An allowance per minute, which may be partly used.
#[derive(Clone, Copy)]
struct MinuteAllowance {
    /// The time when it is full again.
    whole_at: Instant,
}

/// A request in progress, counted until this is dropped.
pub(crate) struct CountedRequest {
    rates: TenantRates,
    name: String,
    input_bytes_per_minute: u64,
    charged_bytes: u64,
}

impl TenantRates {
    /// Counts a request of the tenant `name` with a body of `bytes`, 0 if unknown.
    pub(super) fn begin(
        &self,
        name: &str,
        quotas: &TenantQuotas,
        bytes: u64,
    ) -> Result<CountedRequest, AccessRefusal> {
        let now = Instant::now();
        let mut by_name = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        forget_idle(&mut by_name, now);
        let tenant = by_name.entry(name.to_owned()).or_insert(TenantUse {
            requests: MinuteAllowance { whole_at: now },
            input_bytes: MinuteAllowance { whole_at: now },
            concurrent: 0,
        });
        // All limits are checked before any is charged: a refused request costs nothing.
        tenant.check(quotas, now)?;
        tenant.concurrent += 1;
        tenant.requests.charge(quotas.requests_per_minute, 1, now);
        let per_minute = quotas.input_bytes_per_minute;
        tenant.input_bytes.charge(per_minute, bytes, now);
        Ok(CountedRequest {
            rates: self.clone(),
            name: name.to_owned(),
            input_bytes_per_minute: per_minute,
            charged_bytes: bytes,
        })
    }
}

impl TenantUse {
    fn check(&self, quotas: &TenantQuotas, now: Instant) -> Result<(), AccessRefusal> {
        let most = quotas.concurrent_requests;
        if most > 0 && self.concurrent >= most {
            return Err(AccessRefusal::rate("concurrent_requests", TRY_AGAIN));
        }
        let limits = [
            (
                "requests_per_minute",
                quotas.requests_per_minute,
                self.requests,
            ),
            (
                "input_bytes_per_minute",
                quotas.input_bytes_per_minute,
                self.input_bytes,
            ),
        ];
        for (limit, per_minute, allowance) in limits {
            if let Some(wait) = allowance.wait(per_minute, now) {
                return Err(AccessRefusal::rate(limit, wait));
            }
        }
        Ok(())
    }

    fn is_idle(&self, now: Instant) -> bool {
        self.concurrent == 0 && self.requests.whole_at <= now && self.input_bytes.whole_at <= now
    }
}

impl MinuteAllowance {
    /// The delay until one more can be used; none if it can be used now.
    fn wait(self, per_minute: u64, now: Instant) -> Option<Duration> {
        if per_minute == 0 {
            return None;
        }
        // An allowance that is full again after a minute is empty now. There is room for one more
        // if the time to refill, with that one added, is at most a minute.
        let missing = self.whole_at.saturating_duration_since(now) + time_of(per_minute, 1);
        missing.checked_sub(MINUTE).filter(|wait| !wait.is_zero())
    }

    /// Uses an amount. One request may exceed the allowance; the next one then waits longer.
    fn charge(&mut self, per_minute: u64, amount: u64, now: Instant) {
        if per_minute > 0 {
            self.whole_at = self.whole_at.max(now) + time_of(per_minute, amount);
        }
    }
}

/// The time until an amount is refilled.
fn time_of(per_minute: u64, amount: u64) -> Duration {
    let nanoseconds = MINUTE.as_nanos() * u128::from(amount) / u128::from(per_minute);
    // Without a bound, one huge body at a low rate could overflow the clock. A day is longer than
    // any client waits.
    let longest = Duration::from_hours(24);
    u64::try_from(nanoseconds).map_or(longest, |time| Duration::from_nanos(time).min(longest))
}

impl CountedRequest {
    /// Charges the bytes of a body that did not announce its length.
    pub(crate) fn charge_rest(&mut self, bytes: u64) {
        // A body that ended early is not refunded.
        let rest = bytes.saturating_sub(self.charged_bytes);
        self.charged_bytes += rest;
        if rest == 0 || self.input_bytes_per_minute == 0 {
            return;
        }
        let per_minute = self.input_bytes_per_minute;
        self.with(|tenant| tenant.input_bytes.charge(per_minute, rest, Instant::now()));
    }

    fn with(&self, change: impl FnOnce(&mut TenantUse)) {
        let mut by_name = self.rates.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tenant) = by_name.get_mut(&self.name) {
            change(tenant);
        }
    }
}

impl Drop for CountedRequest {
    fn drop(&mut self) {
        self.with(|tenant| tenant.concurrent = tenant.concurrent.saturating_sub(1));
    }
}

/// Keeps the number of tenants within its bound. Invented credentials are forgotten within a minute
/// of their last request, and sooner if there are too many.
fn forget_idle(by_name: &mut TenantUseByName, now: Instant) {
    if by_name.len() < TENANTS {
        return;
    }
    by_name.retain(|_, tenant| !tenant.is_idle(now));
    if by_name.len() < TENANTS {
        return;
    }
    // All tenants are in use. Half of those without an open request go, those that are refilled
    // first: removing one at a time would scan the whole table for every request.
    let at_rest = by_name.iter().filter(|(_, tenant)| tenant.concurrent == 0);
    let mut ends: Vec<Instant> = at_rest
        .map(|(_, tenant)| tenant.requests.whole_at)
        .collect();
    ends.sort_unstable();
    let Some(median) = ends.get(ends.len() / 2).copied() else {
        return;
    };
    by_name.retain(|_, tenant| tenant.concurrent > 0 || tenant.requests.whole_at > median);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(rates: &TenantRates, quotas: &TenantQuotas, bytes: u64) -> Result<(), &'static str> {
        match rates.begin("t", quotas, bytes) {
            Ok(_) => Ok(()),
            Err(refusal) if refusal.retry_after_seconds() >= Some(1) => Err("later"),
            Err(_) => Err("never"),
        }
    }

    #[test]
    fn a_minute_of_requests_may_come_at_once() {
        let rates = TenantRates::default();
        let quotas = TenantQuotas {
            requests_per_minute: 3,
            ..TenantQuotas::default()
        };
        for _ in 0..3 {
            assert_eq!(begin(&rates, &quotas, 0), Ok(()));
        }
        assert_eq!(begin(&rates, &quotas, 0), Err("later"));
        assert!(rates.begin("other", &quotas, 0).is_ok());
    }

    #[test]
    fn a_large_body_uses_up_the_minutes_to_come() {
        let rates = TenantRates::default();
        let quotas = TenantQuotas {
            input_bytes_per_minute: 1_000,
            ..TenantQuotas::default()
        };
        let mut counted = rates.begin("t", &quotas, 500).unwrap();
        assert_eq!(begin(&rates, &quotas, 100), Ok(()));
        counted.charge_rest(3_000);
        let refusal = rates.begin("t", &quotas, 1).err().unwrap();
        let wait = refusal.retry_after_seconds().unwrap();
        assert!((100..=130).contains(&wait), "{wait}");
    }

    #[test]
    fn concurrent_requests_end() {
        let rates = TenantRates::default();
        let quotas = TenantQuotas {
            concurrent_requests: 1,
            ..TenantQuotas::default()
        };
        let first = rates.begin("t", &quotas, 0).unwrap();
        assert_eq!(begin(&rates, &quotas, 0), Err("later"));
        drop(first);
        assert_eq!(begin(&rates, &quotas, 0), Ok(()));
    }

    #[test]
    fn made_up_tenants_are_bounded() {
        let rates = TenantRates::default();
        let quotas = TenantQuotas {
            requests_per_minute: 3,
            ..TenantQuotas::default()
        };
        for at in 0..3 * TENANTS {
            drop(rates.begin(&at.to_string(), &quotas, 0));
        }
        assert!(rates.0.lock().unwrap().len() <= TENANTS);
    }

    #[test]
    fn the_largest_figures_do_not_overflow() {
        let rates = TenantRates::default();
        let quotas = TenantQuotas {
            requests_per_minute: u64::MAX,
            input_bytes_per_minute: 1,
            ..TenantQuotas::default()
        };
        assert_eq!(begin(&rates, &quotas, u64::MAX), Ok(()));
        assert_eq!(begin(&rates, &quotas, u64::MAX), Err("later"));
    }
}
