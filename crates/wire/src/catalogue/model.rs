//! The facts about one model.

use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};
use trimtab_model::Usage;

use super::price::{Money, PriceTier, Prices};

/// The facts about one model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModelInfo {
    /// Its name in the registry.
    pub id: String,
    /// The provider, as the registry names it; empty if only a limit is known.
    pub provider: String,
    /// Tokens of prompt and answer together.
    pub window: u64,
    /// Tokens of the prompt alone; at most `window`.
    pub max_input: u64,
    /// Tokens of the answer, where known.
    pub max_output: Option<u64>,
    /// The prices per token; none if unknown.
    pub prices: Option<Prices>,
    /// Prices of long prompts, by rising threshold.
    pub tiers: Vec<PriceTier>,
    /// Its prompt cache.
    pub cache: CacheRules,
    /// Its rules for conversations.
    pub rules: ModelRules,
    /// Whether it reasons before it answers.
    pub reasons: bool,
    /// Its vocabulary, such as `o200k_base`, `cl100k_base` or `claude`.
    pub vocabulary: Option<String>,
    /// The day on which it is or was withdrawn, as `2026-11-26`.
    pub retires: Option<String>,
}

impl ModelInfo {
    /// The maximum tokens of a call including its answer: the smaller of the window and the prompt
    /// limit.
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

    /// The cost of a call with this usage, each prompt at its tier.
    ///
    /// ```
    /// # use trimtab_wire::catalogue::Catalogue;
    /// # use trimtab_model::Usage;
    /// let model = Catalogue::embedded().find("gpt-5.4").unwrap().model;
    /// let cost = |input| model.cost(&Usage { input, ..Usage::default() }).unwrap();
    /// assert!(cost(273_000).pico() > cost(272_000).pico() * 2);
    /// ```
    pub fn cost(&self, usage: &Usage) -> Option<Money> {
        let cost = |part: Usage| Some(self.prices_at(part.prompt())?.cost(&part));
        usage.billed().into_iter().map(cost).sum()
    }
}

/// The prompt cache of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CacheRules {
    /// Whether it exists, and how it is used.
    pub kind: CacheKind,
    /// The minimum size of a cached prefix.
    pub minimum: Option<u64>,
    /// The lifetime of an unused prefix.
    #[serde(serialize_with = "seconds")]
    pub lifetime: Option<Duration>,
    /// The lifetime if the longer one is requested and paid for.
    #[serde(serialize_with = "seconds")]
    pub long_lifetime: Option<Duration>,
    /// The maximum number of markers in a request.
    pub markers: Option<u32>,
}

/// Whether a model has a prompt cache, and how it is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheKind {
    /// No known cache.
    #[default]
    None,
    /// Equal prefixes hit automatically.
    Automatic,
    /// Only prefixes that end at a marker are cached.
    Marked,
}

/// The rules of a model for conversations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each rule holds or does not, independently of the others"
)]
pub struct ModelRules {
    /// Signed reasoning is rejected once something before it has changed.
    pub bound_reasoning: bool,
    /// Chat Completions takes no tools from a request that does not switch reasoning off.
    pub no_chat_tools: bool,
    /// Reasoning must be sent back with its calls.
    pub returns_reasoning: bool,
    /// Prompt and output limit may exceed the window: the answer stops when it is full.
    pub answer_may_overrun: bool,
    /// A prompt that is too long is truncated or accepted without an error; only the usage shows
    /// it.
    pub silent_overflow: bool,
}

#[expect(clippy::ref_option, reason = "the signature that serde asks for")]
fn seconds<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_secs()).serialize(serializer)
}
