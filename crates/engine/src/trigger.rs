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
pub enum TriggerRule {
    /// Any of them is enough.
    #[default]
    Any,
    /// The first one that can be judged decides.
    FirstKnown,
}

/// What is known before a call. Everything that a decision may depend on comes in here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TriggerInputs {
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

/// A condition needs the model's window, which is not known.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error(
    "the model's window is not known, so `{0}` cannot be judged\n\
     hint: set the window of this model, or compact at a fixed number of tokens"
)]
pub struct WindowUnknown(pub Trigger);

impl Trigger {
    /// Whether it fires; none if what it needs is not known.
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
    /// The figure that is measured; none if nobody knows it.
    pub(crate) fn of(self, inputs: &TriggerInputs) -> Option<u64> {
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
