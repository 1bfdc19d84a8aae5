//! Triggers: the conditions for a compaction, as data.

mod text;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use trimtab_model::Usage;

pub use text::BadTrigger;

/// The measured figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// The total usage of the last call, including its answer.
    UsageTotal,
    /// The uncached input of the last call only.
    UsageInput,
    /// The estimate of the log.
    Log,
    /// The estimate of the whole call: messages, tool definitions and the answer's reserve.
    Call,
    /// The number of messages.
    Messages,
}

/// The comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// At least.
    AtLeast,
    /// More than.
    MoreThan,
}

/// The limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// A fixed figure. Zero disables the trigger.
    Fixed(u64),
    /// A share of the window, rounded down.
    WindowRatio(f64),
    /// Percent of the window, rounded down.
    WindowPercent(u64),
    /// The window minus this many tokens.
    WindowLess(u64),
    /// The window itself.
    Window,
}

/// One condition. Written as text, in settings and reports alike: see [`Trigger::from_str`].
///
/// [`Trigger::from_str`]: std::str::FromStr::from_str
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trigger {
    /// The measured figure.
    pub metric: Metric,
    /// The comparison.
    pub is: Comparison,
    /// The limit.
    pub value: Threshold,
}

/// How the conditions of a list are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerRule {
    /// Any of them is enough.
    #[default]
    Any,
    /// The first one that can be evaluated decides.
    FirstKnown,
}

/// The inputs of triggers: everything that a condition can depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TriggerInputs {
    /// The model's window, if known.
    pub window: Option<u64>,
    /// The last reported usage, unless an edit made it out of date.
    pub usage: Option<Usage>,
    /// The estimate of the log.
    pub log_tokens: u64,
    /// The estimate of the whole call.
    pub call_tokens: u64,
    /// The number of messages.
    pub messages: u64,
}

/// A condition needs the model's window, which is not known.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error(
    "the model's window is not known, so `{0}` cannot be evaluated\n\
     hint: set the window of this model, or compact at a fixed number of tokens"
)]
pub struct WindowUnknown(pub Trigger);

impl Trigger {
    /// Whether it fires; none if an input is unknown.
    pub(crate) fn judge(&self, inputs: &TriggerInputs) -> Option<bool> {
        let measured = self.metric.of(inputs)?;
        let value = self.value.figure(inputs.window)?;
        Some(match self.is {
            Comparison::AtLeast => measured >= value,
            Comparison::MoreThan => measured > value,
        })
    }
}

impl Metric {
    /// The measured figure; none if it is unknown.
    pub fn of(self, inputs: &TriggerInputs) -> Option<u64> {
        match self {
            Self::UsageTotal => inputs.usage.map(|usage| usage.total()),
            Self::UsageInput => inputs.usage.map(|usage| usage.input),
            Self::Log => Some(inputs.log_tokens),
            Self::Call => Some(inputs.call_tokens),
            Self::Messages => Some(inputs.messages),
        }
    }
}

impl Threshold {
    /// The limit for a model with this window; none if it is disabled, or needs a window that is
    /// unknown.
    ///
    /// ```
    /// # use trimtab_engine::trigger::Threshold;
    /// assert_eq!(Threshold::WindowPercent(85).figure(Some(200_000)), Some(170_000));
    /// assert_eq!(Threshold::WindowPercent(85).figure(None), None);
    /// ```
    pub fn figure(self, window: Option<u64>) -> Option<u64> {
        // In settings, a window of 0 means that it is unknown.
        let window = window.filter(|window| *window > 0);
        match self {
            Self::Fixed(value) => Some(value).filter(|value| *value > 0),
            Self::WindowRatio(ratio) => window.map(|window| share(window, ratio)),
            Self::WindowPercent(percent) => {
                window.map(|window| window.saturating_mul(percent) / 100)
            }
            // A reserve that is larger than the window would make every call fire.
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
    // The design `refs` rounds down, and its tests pin exact figures.
    (window as f64 * ratio).floor() as u64
}
