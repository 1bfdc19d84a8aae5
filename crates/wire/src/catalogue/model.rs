//! What is known about one model.

use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};
use trimtab_model::Usage;

use super::price::{Money, Prices, Tier};

/// What is known about one model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Model {
    /// Its name in the registry.
    pub id: String,
    /// Who serves it, in the registry's words; empty where only a limit is known.
    pub provider: String,
    /// Tokens of prompt and answer together.
    pub window: u64,
    /// Tokens of the prompt alone; at most `window`.
    pub max_input: u64,
    /// Tokens of the answer, where known.
    pub max_output: Option<u64>,
    /// What a token costs; `None` where unknown.
    pub prices: Option<Prices>,
    /// Prices of long prompts, by rising threshold.
    pub tiers: Vec<Tier>,
    /// How its prompt cache works.
    pub cache: Cache,
    /// What it demands of a conversation.
    pub rules: Rules,
    /// Whether it reasons before it answers.
    pub reasons: bool,
    /// The vocabulary that its tokens come from, such as `o200k_base`, `cl100k_base` or `claude`.
    pub vocabulary: Option<String>,
    /// The day on which it is or was withdrawn, as `2026-11-26`.
    pub retires: Option<String>,
}

impl Model {
    /// The most tokens that a call may have, its answer included: the smaller of what is known
    /// of the window and of the prompt.
    ///
    /// ```
    /// # use trimtab_wire::catalogue::Catalogue;
    /// let model = Catalogue::embedded().find("gpt-5").unwrap().model;
    /// assert_eq!((model.window, model.call_limit()), (400_000, 272_000));
    /// ```
    pub fn call_limit(&self) -> u64 {
        self.window.min(self.max_input)
    }

    /// The prices of a call with a prompt of this size.
    pub fn prices_at(&self, prompt: u64) -> Option<&Prices> {
        self.tiers
            .iter()
            .rev()
            .find(|tier| prompt > tier.above)
            .map(|tier| &tier.prices)
            .or(self.prices.as_ref())
    }

    /// What a call with this usage costs, at the tier that its prompt falls into.
    ///
    /// ```
    /// # use trimtab_wire::catalogue::Catalogue;
    /// # use trimtab_model::Usage;
    /// let model = Catalogue::embedded().find("gpt-5.4").unwrap().model;
    /// let cost = |input| model.cost(&Usage { input, ..Usage::default() }).unwrap();
    /// assert!(cost(273_000).pico() > cost(272_000).pico() * 2);
    /// ```
    pub fn cost(&self, usage: &Usage) -> Option<Money> {
        Some(self.prices_at(usage.prompt())?.cost(usage))
    }
}

/// How a model's prompt cache works.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cache {
    /// Whether there is one and what it takes to be used.
    pub kind: CacheKind,
    /// A prefix of fewer tokens is not cached.
    pub minimum: Option<u64>,
    /// How long an unused prefix stays.
    #[serde(serialize_with = "seconds")]
    pub lifetime: Option<Duration>,
    /// How long it stays where the longer lifetime is asked and paid for.
    #[serde(serialize_with = "seconds")]
    pub long_lifetime: Option<Duration>,
    /// How many markers a request may carry.
    pub markers: Option<u32>,
}

/// Whether a model has a prompt cache, and what it takes to be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheKind {
    /// Not known to have one.
    #[default]
    None,
    /// Equal prefixes hit without being asked for.
    Automatic,
    /// Only what a marker in the request ends is kept.
    Marked,
}

/// What a model demands of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rules {
    /// Whether reasoning is refused when what stood before it has changed.
    pub bound_reasoning: Binding,
    /// Reasoning must be sent back with the calls that it led to.
    pub returns_reasoning: bool,
    /// Prompt and answer limit may together exceed the window: the answer stops when it is full.
    pub answer_may_overrun: bool,
    /// A prompt that is too long is cut or accepted without an error: only usage shows it.
    pub silent_overflow: bool,
}

/// Whether a model's reasoning is bound to the exact prompt that it was produced after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Binding {
    /// It is not.
    #[default]
    Free,
    /// In some of its modes.
    Partly,
    /// A change before it makes it invalid.
    Bound,
}

#[expect(clippy::ref_option, reason = "the signature that serde asks for")]
fn seconds<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_secs()).serialize(serializer)
}
