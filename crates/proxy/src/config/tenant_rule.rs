//! What differs for single tenants.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ProxyConfig;
use super::check::SettingProblems;
use super::retention::{MOST_BYTES, MOST_DAYS, age_of_days};

/// What differs for one tenant from `retention` and `quotas`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TenantRule {
    /// The tenant, as logs and `trimtab output sessions` show it.
    pub tenant: String,
    /// Days after its last use for which a session is kept; 0 keeps all.
    #[serde(default)]
    pub max_age_days: Option<u64>,
    /// Bytes of outputs in the store; 0 is no limit.
    #[serde(default)]
    pub store_bytes: Option<u64>,
}

/// Adds everything that is wrong with the rules.
pub(super) fn check(problems: &mut SettingProblems, rules: &[TenantRule]) {
    let mut known = BTreeSet::new();
    for (at, rule) in rules.iter().enumerate() {
        let table = format!("tenants[{at}]");
        let is_name = rule.tenant.len() == 24
            && rule
                .tenant
                .bytes()
                .all(|byte| b"0123456789abcdef".contains(&byte));
        if !is_name {
            let allowed = "24 hexadecimal digits\n\
                hint: `trimtab output sessions` lists the tenants";
            problems.add(&format!("{table}.tenant"), &rule.tenant, allowed);
        } else if !known.insert(&rule.tenant) {
            let allowed = "a tenant that no other rule names";
            problems.add(&format!("{table}.tenant"), &rule.tenant, allowed);
        }
        let days = ("max_age_days", rule.max_age_days.unwrap_or(0), 0, MOST_DAYS);
        let bytes = ("store_bytes", rule.store_bytes.unwrap_or(0), 0, MOST_BYTES);
        problems.range(&table, days);
        problems.range(&table, bytes);
    }
}

impl ProxyConfig {
    /// The bytes that a tenant may store; 0 is no limit.
    pub(crate) fn store_quota(&self, tenant: &str) -> u64 {
        let mut rules = self.tenants.iter();
        let rule = rules.find(|rule| rule.tenant == tenant);
        let own = rule.and_then(|rule| rule.store_bytes);
        own.unwrap_or(self.quotas.store_bytes)
    }

    /// The tenants whose sessions are kept for another time, and that time.
    pub(crate) fn tenant_ages(&self) -> impl Iterator<Item = (&str, Option<Duration>)> {
        self.tenants.iter().filter_map(|rule| {
            let days = rule.max_age_days?;
            Some((rule.tenant.as_str(), age_of_days(days)))
        })
    }
}
