//! Validates settings.

use std::ops::RangeInclusive;

use thiserror::Error;

use super::KeepRule;
use super::Policy;
use crate::trigger::{Threshold, Trigger};
use crate::view::Shape;
use crate::view::policy::{CompiledViews, ToolGlobs};

/// A setting with an invalid value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{setting} = {value} is not valid; allowed: {allowed}")]
pub struct BadSetting {
    /// Its key, as in a config file: `compaction.when[0]`.
    pub setting: String,
    /// The value it has.
    pub value: String,
    /// The allowed values.
    pub allowed: String,
}

/// A figure, none while its feature is disabled.
type RangedFigure = fn(&Policy) -> Option<u64>;

/// The figures that have a range of allowed values.
#[rustfmt::skip]
const RANGES: &[(&str, RangedFigure, RangeInclusive<u64>)] = &[
    ("views.default.head_percent", head_percent, 0..=100),
    ("ageing.placeholder.budget.window_percent", |policy| Some(policy.ageing.placeholder.budget.window_percent), 1..=100),
    ("ageing.rewrite.economy", |policy| policy.ageing.rewrite.enabled.then_some(policy.ageing.rewrite.economy), 1..=20),
    ("ageing.rewrite.high_percent", |policy| policy.ageing.rewrite.enabled.then_some(policy.ageing.rewrite.high_percent), 1..=100),
    ("ageing.archive.cutoff", |policy| policy.ageing.archive.enabled.then_some(policy.ageing.archive.cutoff as u64), 1..=u64::MAX),
    ("compaction.keep_percent", |policy| Some(policy.compaction.keep_percent), 1..=90),
    ("compaction.summary_tokens", |policy| Some(policy.compaction.summary_tokens), 64..=u64::MAX),
    ("compaction.digest.cutoff", |policy| policy.compaction.digest.enabled.then_some(policy.compaction.digest.cutoff as u64), 1..=u64::MAX),
    ("recovery.retries", |policy| Some(policy.recovery.retries.into()), 0..=10),
];

fn head_percent(policy: &Policy) -> Option<u64> {
    match &policy.views.default {
        Shape::Middle(middle) => Some(middle.head_percent.into()),
        _ => None,
    }
}

impl Policy {
    /// All invalid settings, with the allowed values; `window` is that of the model, if known.
    ///
    /// ```
    /// # use trimtab_engine::policy::Policy;
    /// let mut policy = Policy::preset("refs")?;
    /// policy.compaction.when = vec!["usage >= 1.5 x window".parse()?];
    /// let bad = policy.check(None).unwrap_err();
    /// assert_eq!(bad[0].setting, "compaction.when[0]");
    /// assert!(bad[0].allowed.contains("0 to 1"));
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn check(&self, window: Option<u64>) -> Result<(), Vec<BadSetting>> {
        let mut found = SettingFaults::default();
        self.check_globs(&mut found);
        self.check_ranges(&mut found);
        self.check_triggers(window, &mut found);
        self.check_combinations(&mut found);
        if found.0.is_empty() {
            Ok(())
        } else {
            Err(found.0)
        }
    }

    fn check_globs(&self, found: &mut SettingFaults) {
        let allowed = "globs of tool names";
        if let Err(bad) = CompiledViews::new(&self.views) {
            found.add("views", &bad.glob, allowed);
        }
        for (at, keep) in self.compaction.keep.iter().enumerate() {
            if let KeepRule::ProtectedTools { tools } = keep
                && let Err(bad) = ToolGlobs::new(tools)
            {
                found.add(&format!("compaction.keep[{at}].tools"), &bad.glob, allowed);
            }
        }
    }

    fn check_ranges(&self, found: &mut SettingFaults) {
        for (setting, figure, allowed) in RANGES {
            let Some(value) = figure(self).filter(|value| !allowed.contains(value)) else {
                continue;
            };
            let allowed = match (allowed.start(), allowed.end()) {
                (least, &u64::MAX) => format!("{least} or more"),
                (least, most) => format!("{least} to {most}"),
            };
            found.add(setting, &value.to_string(), &allowed);
        }
    }

    fn check_triggers(&self, window: Option<u64>, found: &mut SettingFaults) {
        for (at, trigger) in self.compaction.when.iter().enumerate() {
            if let Some(allowed) = wrong(trigger, window) {
                let key = format!("compaction.when[{at}]");
                found.add(&key, &format!("\"{trigger}\""), &allowed);
            }
        }
    }

    fn check_combinations(&self, found: &mut SettingFaults) {
        let budget = &self.ageing.placeholder.budget;
        if budget.min > budget.max {
            let value = format!("{} (min), {} (max)", budget.min, budget.max);
            let key = "ageing.placeholder.budget";
            found.add(key, &value, "min no larger than max");
        }
        // Conditions that are never evaluated are surely a mistake.
        if !self.compaction.when.is_empty() && self.compaction.moments.is_empty() {
            let allowed = "at least one moment, or an empty compaction.when";
            found.add("compaction.moments", "[]", allowed);
        }
        if self.recovery.retries > 0 && self.recovery.ladder.is_empty() {
            let allowed = "at least one way, or recovery.retries = 0";
            found.add("recovery.ladder", "[]", allowed);
        }
        if self.fit && self.ladder.is_empty() {
            found.add("ladder", "[]", "at least one way, or fit = false");
        }
    }
}

/// The allowed values, if a condition can never be right.
fn wrong(trigger: &Trigger, window: Option<u64>) -> Option<String> {
    match trigger.value {
        // Written as a negation, so that NaN is refused, too.
        Threshold::WindowRatio(ratio) if !(ratio > 0.0 && ratio <= 1.0) => {
            Some("a share of the window above 0 and up to 1 (0 to 1)".to_owned())
        }
        Threshold::WindowPercent(percent) if !(1..=100).contains(&percent) => {
            Some("1 to 100 % of the window".to_owned())
        }
        Threshold::WindowLess(reserve) => {
            let window = window.filter(|window| reserve >= *window)?;
            Some(format!("a reserve below the window of {window} tokens"))
        }
        _ => None,
    }
}

/// The invalid settings found so far.
#[derive(Default)]
struct SettingFaults(Vec<BadSetting>);

impl SettingFaults {
    fn add(&mut self, setting: &str, value: &str, allowed: &str) {
        self.0.push(BadSetting {
            setting: setting.to_owned(),
            value: value.to_owned(),
            allowed: allowed.to_owned(),
        });
    }
}
