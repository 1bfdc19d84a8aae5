//! Settings that have no effect under a policy, and why.

use super::Policy;

const NO_AUTO: &str = "compaction.auto is false";

/// The prefix of settings that have no effect, the reason as text, and the condition.
type IdleSettingRule = (&'static str, &'static str, fn(&Policy) -> bool);

/// All conditions that disable settings. The first one that holds is reported.
#[rustfmt::skip]
const IDLE: &[IdleSettingRule] = &[
    ("ageing.placeholder.", "ageing.placeholder.enabled is false", |policy| !policy.ageing.placeholder.enabled),
    ("ageing.placeholder.budget.window_percent", "ageing.placeholder.budget.tokens is set", has_budget),
    ("ageing.placeholder.budget.min", "ageing.placeholder.budget.tokens is set", has_budget),
    ("ageing.placeholder.budget.max", "ageing.placeholder.budget.tokens is set", has_budget),
    ("ageing.prefix.", "ageing.prefix.enabled is false", |policy| !policy.ageing.prefix.enabled),
    ("ageing.prefix.chars", "ageing.prefix.input_budget is 0", |policy| policy.ageing.prefix.input_budget == 0),
    ("ageing.archive.", "ageing.archive.enabled is false", |policy| !policy.ageing.archive.enabled),
    ("ageing.rewrite.", "ageing.rewrite.enabled is false", |policy| !policy.ageing.rewrite.enabled),
    ("compaction.moments", "compaction.when is empty", |policy| policy.compaction.when.is_empty()),
    ("compaction.moments", NO_AUTO, |policy| !policy.compaction.auto),
    ("compaction.when", NO_AUTO, |policy| !policy.compaction.auto),
    ("compaction.rule", NO_AUTO, |policy| !policy.compaction.auto),
    ("compaction.rule", "compaction.when has fewer than two conditions", |policy| policy.compaction.when.len() < 2),
    ("compaction.background", NO_AUTO, |policy| !policy.compaction.auto),
    ("compaction.warn_after", NO_AUTO, |policy| !policy.compaction.auto),
    ("compaction.digest.cutoff", "compaction.digest.enabled is false", |policy| !policy.compaction.digest.enabled),
    ("compaction.", "compaction.enabled is false", |policy| !policy.compaction.enabled),
    ("recovery.", NO_AUTO, |policy| !policy.compaction.auto),
    ("recovery.ladder", "recovery.retries is 0", |policy| policy.recovery.retries == 0),
    ("ladder", "fit is false", |policy| !policy.fit),
    ("estimate", "fit and compaction.enabled are false", |policy| !policy.fit && !policy.compaction.enabled),
];

fn has_budget(policy: &Policy) -> bool {
    policy.ageing.placeholder.budget.tokens.is_some()
}

impl Policy {
    /// Why a setting has no effect under this policy, in any conversation; none if it can matter.
    ///
    /// ```
    /// # use trimtab_engine::policy::Policy;
    /// let policy = Policy::preset("refs")?;
    /// let why = policy.why_idle("ageing.prefix.chars");
    /// assert_eq!(why, Some("ageing.prefix.enabled is false"));
    /// assert_eq!(policy.why_idle("ageing.placeholder.budget.min"), None);
    /// # Ok::<_, trimtab_engine::policy::UnknownPreset>(())
    /// ```
    pub fn why_idle(&self, setting: &str) -> Option<&'static str> {
        // A setting is not a reason for itself.
        let is_idle = |(begins, because, holds): &&IdleSettingRule| {
            setting.starts_with(begins) && !because.starts_with(setting) && holds(self)
        };
        IDLE.iter().find(is_idle).map(|(_, because, _)| *because)
    }
}
