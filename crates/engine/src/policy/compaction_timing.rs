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
    use crate::trigger::Comparison;
    use trimtab_model::Usage;

    fn trigger(metric: Metric, is: Comparison, value: Threshold) -> Trigger {
        Trigger { metric, is, value }
    }

    fn compaction(rule: TriggerRule, when: Vec<Trigger>) -> CompactionPolicy {
        CompactionPolicy {
            when,
            rule,
            ..CompactionPolicy::default()
        }
    }

    #[test]
    fn a_ratio_fires_at_its_floor() {
        let ratio = trigger(
            Metric::UsageTotal,
            Comparison::AtLeast,
            Threshold::WindowRatio(0.8),
        );
        let fires = |total| {
            let usage = Usage {
                input: total,
                ..Usage::default()
            };
            let inputs = TriggerInputs {
                window: Some(1_001),
                usage: Some(usage),
                ..TriggerInputs::default()
            };
            compaction(TriggerRule::Any, vec![ratio])
                .fired(&inputs)
                .is_some()
        };
        assert!(!fires(799));
        assert!(fires(800));
    }

    #[test]
    fn trigger_with_an_unknown_value_does_not_fire() {
        let ratio = trigger(
            Metric::UsageTotal,
            Comparison::AtLeast,
            Threshold::WindowRatio(0.8),
        );
        let none = compaction(TriggerRule::Any, vec![ratio]).fired(&TriggerInputs::default());
        assert_eq!(none, None);
    }

    #[test]
    fn an_unknown_window_is_told_only_where_it_is_missed() {
        let ratio = trigger(
            Metric::UsageTotal,
            Comparison::AtLeast,
            Threshold::WindowRatio(0.8),
        );
        let count = trigger(Metric::Messages, Comparison::AtLeast, Threshold::Fixed(50));
        let used = TriggerInputs {
            usage: Some(Usage::default()),
            ..TriggerInputs::default()
        };
        let strict = compaction(TriggerRule::Any, vec![ratio]);
        assert_eq!(strict.check_window(&used), Err(WindowUnknown(ratio)));
        assert_eq!(strict.check_window(&TriggerInputs::default()), Ok(()));
        let known = TriggerInputs {
            window: Some(1_000),
            ..used
        };
        assert_eq!(strict.check_window(&known), Ok(()));
        assert_eq!(
            compaction(TriggerRule::Any, vec![ratio, count]).check_window(&used),
            Ok(())
        );
        let off = CompactionPolicy {
            auto: false,
            ..strict
        };
        assert_eq!(off.check_window(&used), Ok(()));
    }

    #[test]
    fn the_first_known_condition_decides_alone() {
        let list = vec![
            trigger(
                Metric::Log,
                Comparison::AtLeast,
                Threshold::WindowLess(16_384),
            ),
            trigger(Metric::Log, Comparison::AtLeast, Threshold::Fixed(8_000)),
            trigger(Metric::Messages, Comparison::AtLeast, Threshold::Fixed(50)),
        ];
        let inputs = TriggerInputs {
            log_tokens: 10,
            messages: 60,
            ..TriggerInputs::default()
        };
        assert_eq!(
            compaction(TriggerRule::FirstKnown, list.clone()).fired(&inputs),
            None
        );
        assert_eq!(
            compaction(TriggerRule::Any, list.clone()).fired(&inputs),
            Some(list[2])
        );
    }

    #[test]
    fn switched_off_means_never() {
        let always = trigger(Metric::Messages, Comparison::AtLeast, Threshold::Fixed(1));
        let inputs = TriggerInputs {
            messages: 9,
            ..TriggerInputs::default()
        };
        let mut compaction = compaction(TriggerRule::Any, vec![always]);
        compaction.auto = false;
        assert_eq!(compaction.fired(&inputs), None);
    }
}
