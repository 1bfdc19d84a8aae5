//! Evaluates the conditions of `compaction.when`.

use super::CompactionPolicy;
use crate::trigger::{Metric, Threshold, Trigger, TriggerInputs, TriggerRule, WindowUnknown};

impl CompactionPolicy {
    /// The condition that fires, if one does.
    ///
    /// ```
    /// # use trimtab_engine::policy::Policy;
    /// # use trimtab_engine::trigger::TriggerInputs;
    /// let compaction = Policy::preset("turns")?.compaction;
    /// let situation = TriggerInputs { window: Some(32_768), log_tokens: 24_577, ..TriggerInputs::default() };
    /// assert_eq!(compaction.fired(&situation).unwrap().to_string(), "log > 75 % of window");
    /// # Ok::<_, trimtab_engine::policy::UnknownPreset>(())
    /// ```
    pub fn fired(&self, inputs: &TriggerInputs) -> Option<Trigger> {
        if !self.enabled || !self.auto {
            return None;
        }
        let judged = |trigger: &Trigger| {
            let fires = trigger.judge(inputs)?;
            Some(fires.then_some(*trigger))
        };
        let mut known = self.when.iter().filter_map(judged);
        match self.rule {
            TriggerRule::Any => known.flatten().next(),
            TriggerRule::FirstKnown => known.next().flatten(),
        }
    }

    /// Fails if no condition can be evaluated because the window is unknown.
    ///
    /// A less strict caller skips this: an unknown condition does not fire.
    pub fn check_window(&self, inputs: &TriggerInputs) -> Result<(), WindowUnknown> {
        let judged = |trigger: &Trigger| trigger.judge(inputs).is_some();
        // One condition that can be evaluated is enough for a decision.
        if !self.enabled || !self.auto || self.when.iter().any(judged) {
            return Ok(());
        }
        let lacks_window = |trigger: &&Trigger| {
            let measured = trigger.metric.of(inputs).is_some();
            measured && inputs.window.is_none() && !matches!(trigger.value, Threshold::Fixed(_))
        };
        let first = self.when.iter().find(lacks_window);
        first.map_or(Ok(()), |trigger| Err(WindowUnknown(*trigger)))
    }

    /// The limit of the first condition on tokens that can be evaluated for a model with this
    /// window.
    ///
    /// ```
    /// # use trimtab_engine::policy::Policy;
    /// let compaction = Policy::preset("archive")?.compaction;
    /// assert_eq!(compaction.token_limit(Some(100_000)), Some(83_616));
    /// assert_eq!(compaction.token_limit(None), Some(8_000));
    /// # Ok::<_, trimtab_engine::policy::UnknownPreset>(())
    /// ```
    pub fn token_limit(&self, window: Option<u64>) -> Option<u64> {
        let is_of_tokens = |trigger: &&Trigger| trigger.metric != Metric::Messages;
        let mut of_tokens = self.when.iter().filter(is_of_tokens);
        of_tokens.find_map(|trigger| trigger.value.figure(window))
    }

    /// The tokens of the newest messages to keep if `tokens` are requested: at most half of the
    /// limit, otherwise compaction would be due again at once.
    pub fn recent_tokens(&self, tokens: u64, window: Option<u64>) -> u64 {
        let limit = self.token_limit(window).or(window);
        limit.map_or(tokens, |limit| tokens.min(limit / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_model::Usage;

    fn compaction(rule: TriggerRule, when: &[&str]) -> CompactionPolicy {
        CompactionPolicy {
            when: when.iter().map(|text| text.parse().unwrap()).collect(),
            rule,
            ..CompactionPolicy::default()
        }
    }

    #[test]
    fn a_condition_fires_if_it_is_known_and_holds() {
        let used = |total| TriggerInputs {
            window: Some(1_001),
            usage: Some(Usage {
                input: total,
                ..Usage::default()
            }),
            ..TriggerInputs::default()
        };
        let counted = TriggerInputs {
            log_tokens: 10,
            messages: 60,
            ..TriggerInputs::default()
        };
        let list = ["log >= window - 16384", "log >= 8000", "messages >= 50"];
        let cases: [(TriggerRule, &[&str], &TriggerInputs, Option<&str>); 6] = [
            (
                TriggerRule::Any,
                &["usage >= 0.8 x window"],
                &used(799),
                None,
            ),
            (
                TriggerRule::Any,
                &["usage >= 0.8 x window"],
                &used(800),
                Some("usage >= 0.8 x window"),
            ),
            (TriggerRule::Any, &["usage >= 0.8 x window"], &counted, None),
            (TriggerRule::FirstKnown, &list, &counted, None),
            (TriggerRule::Any, &list, &counted, Some("messages >= 50")),
            (TriggerRule::Any, &[], &counted, None),
        ];
        for (rule, when, inputs, expected) in cases {
            let mut compaction = compaction(rule, when);
            let fired = compaction.fired(inputs).map(|trigger| trigger.to_string());
            assert_eq!(fired.as_deref(), expected, "{rule:?} {when:?}");
            compaction.auto = false;
            assert_eq!(compaction.fired(inputs), None, "it is switched off");
        }
    }

    #[test]
    fn an_unknown_window_is_told_only_where_it_is_missed() {
        let used = TriggerInputs {
            usage: Some(Usage::default()),
            ..TriggerInputs::default()
        };
        let strict = compaction(TriggerRule::Any, &["usage >= 0.8 x window"]);
        let ratio = strict.when[0];
        assert_eq!(strict.check_window(&used), Err(WindowUnknown(ratio)));
        assert_eq!(strict.check_window(&TriggerInputs::default()), Ok(()));
        let known = TriggerInputs {
            window: Some(1_000),
            ..used
        };
        assert_eq!(strict.check_window(&known), Ok(()));
        let one_known = compaction(
            TriggerRule::Any,
            &["usage >= 0.8 x window", "messages >= 50"],
        );
        assert_eq!(one_known.check_window(&used), Ok(()));
        let off = CompactionPolicy {
            auto: false,
            ..strict
        };
        assert_eq!(off.check_window(&used), Ok(()));
    }
}
