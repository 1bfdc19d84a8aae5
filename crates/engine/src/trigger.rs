//! Triggers: when to act, as data.

mod text;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use trimtab_model::Usage;

pub use text::BadTrigger;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Everything the provider reported for the last call, its answer included.
    UsageTotal,
    /// Only the uncached input that the provider reported for the last call.
    UsageInput,
    /// The estimate of the log.
    Log,
    /// The estimate of the whole call: messages, tool definitions and the answer's reserve.
    Call,
    /// The number of messages.
    Messages,
}

/// How it is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// At least.
    AtLeast,
    /// More than.
    MoreThan,
}

/// What it is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// A fixed figure. Zero switches the trigger off.
    Fixed(u64),
    /// A share of the window, rounded down.
    WindowRatio(f64),
    /// Percent of the window, rounded down.
    WindowPercent(u64),
    /// The window less this many tokens.
    WindowLess(u64),
    /// The window itself.
    Window,
}

/// One condition. Written as text, in settings and reports alike: see [`Trigger::from_str`].
///
/// [`Trigger::from_str`]: std::str::FromStr::from_str
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trigger {
    /// What is measured.
    pub metric: Metric,
    /// How it is compared.
    pub is: Comparison,
    /// With what.
    pub value: Threshold,
}

/// How the conditions of a list go together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Any of them is enough.
    #[default]
    Any,
    /// The first one that can be judged decides.
    FirstKnown,
}

/// When to act.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Triggers {
    /// False: never, not even by hand.
    pub enabled: bool,
    /// False: only by hand.
    pub auto: bool,
    /// How the conditions go together.
    #[serde(default)]
    pub rule: Rule,
    /// The conditions, in order.
    pub when: Vec<Trigger>,
}

/// What is known before a call. Everything that a decision may depend on comes in here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Situation {
    /// The model's window, where it is known.
    pub window: Option<u64>,
    /// What the provider reported last, unless an edit made it stale.
    pub usage: Option<Usage>,
    /// The estimate of the log.
    pub log_tokens: u64,
    /// The estimate of the whole call.
    pub call_tokens: u64,
    /// The number of messages.
    pub messages: u64,
}

impl Triggers {
    /// The condition that says it is time, if one does.
    ///
    /// ```
    /// # use trimtab_engine::trigger::*;
    /// let triggers = Triggers {
    ///     enabled: true,
    ///     auto: true,
    ///     rule: Rule::Any,
    ///     when: vec![Trigger {
    ///         metric: Metric::Log,
    ///         is: Comparison::MoreThan,
    ///         value: Threshold::WindowPercent(75),
    ///     }],
    /// };
    /// let situation = Situation { window: Some(32_768), log_tokens: 24_577, ..Situation::default() };
    /// assert_eq!(triggers.fired(&situation).unwrap().to_string(), "log > 75 % of window");
    /// ```
    pub fn fired(&self, situation: &Situation) -> Option<Trigger> {
        if !self.enabled || !self.auto {
            return None;
        }
        let mut known = self.when.iter().filter_map(|trigger| {
            trigger
                .judge(situation)
                .map(|fires| fires.then_some(*trigger))
        });
        match self.rule {
            Rule::Any => known.flatten().next(),
            Rule::FirstKnown => known.next().flatten(),
        }
    }

    /// The tokens at which the first condition about tokens fires that can be judged for a model
    /// with this window.
    ///
    /// ```
    /// # use trimtab_engine::policy::Policy;
    /// let triggers = Policy::preset("archive")?.compaction.triggers();
    /// assert_eq!(triggers.token_limit(Some(100_000)), Some(83_616));
    /// assert_eq!(triggers.token_limit(None), Some(8_000));
    /// # Ok::<_, trimtab_engine::policy::UnknownPreset>(())
    /// ```
    pub fn token_limit(&self, window: Option<u64>) -> Option<u64> {
        let mut of_tokens = self
            .when
            .iter()
            .filter(|trigger| trigger.metric != Metric::Messages);
        of_tokens.find_map(|trigger| trigger.value.figure(window))
    }

    /// An error if it cannot be told whether it is time, because nobody knows the window.
    ///
    /// A caller that is not so strict leaves this out: what is not known does not fire.
    ///
    /// ```
    /// # use trimtab_engine::trigger::*;
    /// let log = Trigger {
    ///     metric: Metric::Log,
    ///     is: Comparison::MoreThan,
    ///     value: Threshold::WindowPercent(75),
    /// };
    /// let triggers = Triggers { enabled: true, auto: true, rule: Rule::Any, when: vec![log] };
    /// assert_eq!(triggers.check(&Situation::default()), Err(WindowUnknown(log)));
    /// ```
    pub fn check(&self, situation: &Situation) -> Result<(), WindowUnknown> {
        let judged = |trigger: &Trigger| trigger.judge(situation).is_some();
        if !self.enabled || !self.auto || self.when.iter().any(judged) {
            return Ok(());
        }
        let lacks_window = |trigger: &&Trigger| {
            let measured = trigger.metric.of(situation).is_some();
            measured && situation.window.is_none() && !matches!(trigger.value, Threshold::Fixed(_))
        };
        let first = self.when.iter().find(lacks_window);
        first.map_or(Ok(()), |trigger| Err(WindowUnknown(*trigger)))
    }
}

/// A condition needs the model's window, which is not known.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error(
    "the model's window is not known, so `{0}` cannot be judged\n\
     hint: set the window of this model, or compact at a fixed number of tokens"
)]
pub struct WindowUnknown(pub Trigger);

impl Trigger {
    /// Whether it fires; none if what it needs is not known.
    fn judge(&self, situation: &Situation) -> Option<bool> {
        let measured = self.metric.of(situation)?;
        let value = self.value.figure(situation.window)?;
        Some(match self.is {
            Comparison::AtLeast => measured >= value,
            Comparison::MoreThan => measured > value,
        })
    }
}

impl Metric {
    fn of(self, situation: &Situation) -> Option<u64> {
        match self {
            Self::UsageTotal => situation.usage.map(|usage| usage.total()),
            Self::UsageInput => situation.usage.map(|usage| usage.input),
            Self::Log => Some(situation.log_tokens),
            Self::Call => Some(situation.call_tokens),
            Self::Messages => Some(situation.messages),
        }
    }
}

impl Threshold {
    /// The figure for a model with this window; none if it is switched off, or if it needs a
    /// window that is not known.
    ///
    /// ```
    /// # use trimtab_engine::trigger::Threshold;
    /// assert_eq!(Threshold::WindowPercent(85).figure(Some(200_000)), Some(170_000));
    /// assert_eq!(Threshold::WindowPercent(85).figure(None), None);
    /// ```
    pub fn figure(self, window: Option<u64>) -> Option<u64> {
        let window = window.filter(|window| *window > 0);
        match self {
            Self::Fixed(value) => Some(value).filter(|value| *value > 0),
            Self::WindowRatio(ratio) => window.map(|window| share(window, ratio)),
            Self::WindowPercent(percent) => {
                window.map(|window| window.saturating_mul(percent) / 100)
            }
            Self::WindowLess(reserve) => window
                .and_then(|window| window.checked_sub(reserve))
                .filter(|room| *room > 0),
            Self::Window => window,
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a window, rounded down, is a window or less"
)]
fn share(window: u64, ratio: f64) -> u64 {
    (window as f64 * ratio).floor() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trigger(metric: Metric, is: Comparison, value: Threshold) -> Trigger {
        Trigger { metric, is, value }
    }

    fn triggers(rule: Rule, when: Vec<Trigger>) -> Triggers {
        Triggers {
            enabled: true,
            auto: true,
            rule,
            when,
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
            let situation = Situation {
                window: Some(1_001),
                usage: Some(usage),
                ..Situation::default()
            };
            triggers(Rule::Any, vec![ratio]).fired(&situation).is_some()
        };
        assert!(!fires(799));
        assert!(fires(800));
    }

    #[test]
    fn what_is_not_known_does_not_fire() {
        let ratio = trigger(
            Metric::UsageTotal,
            Comparison::AtLeast,
            Threshold::WindowRatio(0.8),
        );
        let none = triggers(Rule::Any, vec![ratio]).fired(&Situation::default());
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
        let used = Situation {
            usage: Some(Usage::default()),
            ..Situation::default()
        };
        let strict = triggers(Rule::Any, vec![ratio]);
        assert_eq!(strict.check(&used), Err(WindowUnknown(ratio)));
        assert_eq!(strict.check(&Situation::default()), Ok(()));
        let known = Situation {
            window: Some(1_000),
            ..used
        };
        assert_eq!(strict.check(&known), Ok(()));
        assert_eq!(triggers(Rule::Any, vec![ratio, count]).check(&used), Ok(()));
        let off = Triggers {
            auto: false,
            ..strict
        };
        assert_eq!(off.check(&used), Ok(()));
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
        let situation = Situation {
            log_tokens: 10,
            messages: 60,
            ..Situation::default()
        };
        assert_eq!(
            triggers(Rule::FirstKnown, list.clone()).fired(&situation),
            None
        );
        assert_eq!(
            triggers(Rule::Any, list.clone()).fired(&situation),
            Some(list[2])
        );
    }

    #[test]
    fn switched_off_means_never() {
        let always = trigger(Metric::Messages, Comparison::AtLeast, Threshold::Fixed(1));
        let situation = Situation {
            messages: 9,
            ..Situation::default()
        };
        let mut triggers = triggers(Rule::Any, vec![always]);
        triggers.auto = false;
        assert_eq!(triggers.fired(&situation), None);
    }
}
