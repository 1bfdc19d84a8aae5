//! Limits that override the registry: set by the user or learned from errors.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::model::{CacheRules, ModelInfo, ModelRules};

/// The known limits of one model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelLimits {
    /// Tokens of prompt and answer together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Tokens of the prompt alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_input: Option<u64>,
    /// Tokens of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
}

impl ModelLimits {
    /// A limit for prompt and answer together.
    pub const fn window(tokens: u64) -> Self {
        Self {
            window: Some(tokens),
            max_input: None,
            max_output: None,
        }
    }

    /// These limits, or `other`'s where unset.
    fn or(self, other: Self) -> Self {
        Self {
            window: self.window.or(other.window),
            max_input: self.max_input.or(other.max_input),
            max_output: self.max_output.or(other.max_output),
        }
    }

    /// The smaller of each limit.
    fn least(self, other: Self) -> Self {
        let least = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Self {
            window: least(self.window, other.window),
            max_input: least(self.max_input, other.max_input),
            max_output: least(self.max_output, other.max_output),
        }
    }
}

/// Limits by the model name in requests.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownLimits {
    set: BTreeMap<String, ModelLimits>,
    learned: BTreeMap<String, ModelLimits>,
}

impl KnownLimits {
    pub(super) fn set(&mut self, name: &str, limits: ModelLimits) {
        let entry = self.set.entry(name.to_owned()).or_default();
        *entry = limits.or(*entry);
    }

    pub(super) fn learn(&mut self, name: &str, limits: ModelLimits) {
        let entry = self.learned.entry(name.to_owned()).or_default();
        *entry = limits.or(*entry);
    }

    pub(super) fn learned(&self) -> &BTreeMap<String, ModelLimits> {
        &self.learned
    }

    /// The limits of a name: the user's setting, lowered by what an error proved.
    pub(super) fn get(&self, name: &str) -> Option<ModelLimits> {
        match (self.set.get(name), self.learned.get(name)) {
            (None, None) => None,
            (set, learned) => Some(
                set.copied()
                    .unwrap_or_default()
                    .least(learned.copied().unwrap_or_default()),
            ),
        }
    }
}

/// The model with these limits.
pub(super) fn apply(mut model: ModelInfo, limits: ModelLimits) -> ModelInfo {
    if let Some(window) = limits.window {
        model.max_input = model.max_input.min(window);
        // A larger window than in the registry also allows a larger prompt.
        if window > model.window {
            model.max_input = window;
        }
        model.window = window;
    }
    if let Some(max_input) = limits.max_input {
        model.max_input = max_input;
        // The window holds at least the prompt.
        model.window = model.window.max(max_input);
    }
    if limits.max_output.is_some() {
        model.max_output = limits.max_output;
    }
    model
}

/// A model with known limits only; none without the size of the prompt.
pub(super) fn from_limits(name: &str, limits: ModelLimits) -> Option<ModelInfo> {
    let size = limits.window.or(limits.max_input)?;
    let model = ModelInfo {
        id: name.to_owned(),
        provider: String::new(),
        window: size,
        max_input: size,
        max_output: None,
        prices: None,
        tiers: Vec::new(),
        cache: CacheRules::default(),
        rules: ModelRules::default(),
        reasons: false,
        vocabulary: None,
        retires: None,
    };
    Some(apply(model, limits))
}
