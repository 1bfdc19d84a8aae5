//! The usage that a provider reports for a call.

use std::ops::Add;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Dialect;

/// Tokens of one call, normalised across providers: `input`, `cache_creation`, `cache_read` and
/// `output` do not overlap.
///
/// Anthropic counts cached tokens separately from `input_tokens`; `OpenAI` (Chat Completions and
/// Responses) and compatible servers include them in their prompt figure, so they are subtracted
/// here. Reasoning tokens are part of `output`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Prompt tokens that were neither read from nor written to a cache.
    pub input: u64,
    /// Prompt tokens written to the provider's cache.
    pub cache_creation: u64,
    /// The part of `cache_creation` that was written for the cache's long lifetime, which costs
    /// more.
    pub cache_creation_long: u64,
    /// Prompt tokens read from the provider's cache.
    pub cache_read: u64,
    /// Tokens of the answer, including reasoning.
    pub output: u64,
    /// What the provider used to compact the conversation itself before it answered. It is billed,
    /// and is no part of the window.
    #[serde(skip_serializing_if = "CompactionUsage::is_none")]
    pub compaction: CompactionUsage,
}

/// Tokens of a provider's own compaction: the same figures as those of [`Usage`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CompactionUsage {
    /// See [`Usage::input`].
    pub input: u64,
    /// See [`Usage::cache_creation`].
    pub cache_creation: u64,
    /// See [`Usage::cache_creation_long`].
    pub cache_creation_long: u64,
    /// See [`Usage::cache_read`].
    pub cache_read: u64,
    /// See [`Usage::output`].
    pub output: u64,
}

impl CompactionUsage {
    /// The part of `all` that `answer` does not have.
    fn beyond(all: &Usage, answer: &Usage) -> Self {
        let beyond = |figure: fn(&Usage) -> u64| figure(all).saturating_sub(figure(answer));
        Self {
            input: beyond(|usage| usage.input),
            cache_creation: beyond(|usage| usage.cache_creation),
            cache_creation_long: beyond(|usage| usage.cache_creation_long),
            cache_read: beyond(|usage| usage.cache_read),
            output: beyond(|usage| usage.output),
        }
    }

    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl From<CompactionUsage> for Usage {
    fn from(compaction: CompactionUsage) -> Self {
        Self {
            input: compaction.input,
            cache_creation: compaction.cache_creation,
            cache_creation_long: compaction.cache_creation_long,
            cache_read: compaction.cache_read,
            output: compaction.output,
            compaction: CompactionUsage::default(),
        }
    }
}

impl Add for Usage {
    type Output = Self;

    // Figures come from providers. A wrong figure must not overflow a sum.
    fn add(self, other: Self) -> Self {
        let sum = Self {
            input: self.input.saturating_add(other.input),
            cache_creation: self.cache_creation.saturating_add(other.cache_creation),
            cache_creation_long: self
                .cache_creation_long
                .saturating_add(other.cache_creation_long),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            output: self.output.saturating_add(other.output),
            compaction: CompactionUsage::default(),
        };
        if self.compaction.is_none() && other.compaction.is_none() {
            return sum;
        }
        let compaction = Self::from(self.compaction) + Self::from(other.compaction);
        Self {
            compaction: CompactionUsage::beyond(&compaction, &Self::default()),
            ..sum
        }
    }
}

impl Usage {
    /// `input + cache_creation + cache_read + output`.
    ///
    /// ```
    /// # use trimtab_model::Usage;
    /// let usage = Usage { input: 10, cache_creation: 3, cache_read: 5, output: 7, ..Usage::default() };
    /// assert_eq!(usage.total(), 25);
    /// ```
    pub fn total(&self) -> u64 {
        self.prompt().saturating_add(self.output)
    }

    /// All prompt tokens: the size of the window as the provider saw it.
    pub fn prompt(&self) -> u64 {
        self.input
            .saturating_add(self.cache_creation)
            .saturating_add(self.cache_read)
    }

    /// The prompts that are billed, each at the price of its own size: the one that was answered,
    /// and that of the provider's own compaction.
    pub fn billed(&self) -> [Self; 2] {
        let answered = Self {
            compaction: CompactionUsage::default(),
            ..*self
        };
        [answered, self.compaction.into()]
    }

    /// Reads Anthropic's `usage` object, where cached tokens are separate from `input_tokens`.
    pub fn from_messages(usage: &Value) -> Self {
        Self::default().updated_from_messages(usage)
    }

    /// These figures with those that Anthropic's `usage` object has: the end of a stream repeats
    /// only some of the figures of its start.
    #[must_use]
    pub fn updated_from_messages(self, usage: &Value) -> Self {
        let answered = self.messages_figures(usage);
        let iterations = usage.get("iterations").and_then(Value::as_array);
        let Some(iterations) = iterations.filter(|list| !list.is_empty()) else {
            return answered;
        };
        // All rounds of sampling are listed here, and only the figures above leave out those that
        // wrote a summary.
        let rounds = iterations.iter();
        let all = rounds.fold(Self::default(), |all, round| {
            all + Self::default().messages_figures(round)
        });
        Self {
            compaction: CompactionUsage::beyond(&all, &answered),
            ..answered
        }
    }

    fn messages_figures(self, usage: &Value) -> Self {
        let newest = |pointer: &str, known: u64| given(usage, pointer).unwrap_or(known);
        let cache_creation = newest("/cache_creation_input_tokens", self.cache_creation);
        let long = newest(
            "/cache_creation/ephemeral_1h_input_tokens",
            self.cache_creation_long,
        );
        Self {
            input: newest("/input_tokens", self.input),
            cache_creation,
            cache_creation_long: long.min(cache_creation),
            cache_read: newest("/cache_read_input_tokens", self.cache_read),
            output: newest("/output_tokens", self.output),
            compaction: self.compaction,
        }
    }

    /// Reads the `usage` object of an answer of `dialect`.
    pub fn read(dialect: Dialect, usage: &Value) -> Self {
        match dialect {
            Dialect::Chat => Self::from_chat(usage),
            Dialect::Messages => Self::from_messages(usage),
            Dialect::Responses => Self::from_responses(usage),
        }
    }

    /// Reads the `usage` object of Chat Completions, where `prompt_tokens` includes cached tokens.
    pub fn from_chat(usage: &Value) -> Self {
        Self::from_inclusive(
            count(usage, "/prompt_tokens"),
            // DeepSeek reports its cache hits in a different field.
            count(usage, "/prompt_tokens_details/cached_tokens")
                .max(count(usage, "/prompt_cache_hit_tokens")),
            count(usage, "/prompt_tokens_details/cache_write_tokens"),
            count(usage, "/completion_tokens"),
        )
    }

    /// Reads the `usage` object of Responses, where `input_tokens` includes cached tokens.
    pub fn from_responses(usage: &Value) -> Self {
        Self::from_inclusive(
            count(usage, "/input_tokens"),
            count(usage, "/input_tokens_details/cached_tokens"),
            count(usage, "/input_tokens_details/cache_write_tokens"),
            count(usage, "/output_tokens"),
        )
    }

    fn from_inclusive(prompt: u64, cache_read: u64, cache_creation: u64, output: u64) -> Self {
        // Some servers report inconsistent figures. Clamp them, so that the parts never exceed the
        // prompt.
        let cache_read = cache_read.min(prompt);
        let cache_creation = cache_creation.min(prompt - cache_read);
        let input = prompt - cache_read - cache_creation;
        Self {
            input,
            cache_creation,
            cache_read,
            output,
            ..Self::default()
        }
    }
}

/// The largest figure that is believed, in tokens. No prompt is so long, and millions of such
/// figures can be added up without an overflow.
const MOST_TOKENS: u64 = 1 << 40;

fn count(usage: &Value, pointer: &str) -> u64 {
    given(usage, pointer).unwrap_or(0)
}

/// The figure at `pointer`; none if it is missing or null.
fn given(usage: &Value, pointer: &str) -> Option<u64> {
    let figure = usage.pointer(pointer).filter(|figure| !figure.is_null())?;
    // A figure that is not a whole number counts as zero: usage is only ever advice, and a call
    // must not fail for it.
    Some(figure.as_u64().unwrap_or(0).min(MOST_TOKENS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn anthropic_counts_cached_tokens_beside_input() {
        let usage = Usage::from_messages(&json!({
            "input_tokens": 10, "cache_creation_input_tokens": 3,
            "cache_read_input_tokens": 5, "output_tokens": 7,
        }));
        assert_eq!((usage.prompt(), usage.total()), (18, 25));
    }

    #[test]
    fn anthropic_names_the_tokens_that_were_written_for_the_long_lifetime() {
        let start = json!({
            "input_tokens": 10, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 5,
            "cache_creation": {"ephemeral_5m_input_tokens": 12, "ephemeral_1h_input_tokens": 18},
            "output_tokens": 1,
        });
        let usage = Usage::from_messages(&start);
        assert_eq!((usage.cache_creation, usage.cache_creation_long), (30, 18));
        // The end of a stream repeats a few figures only.
        let end = usage.updated_from_messages(&json!({
            "cache_creation_input_tokens": 30, "cache_read_input_tokens": null, "output_tokens": 7,
        }));
        assert_eq!(
            (end.cache_creation_long, end.cache_read, end.output),
            (18, 5, 7)
        );
        let more = json!({
            "cache_creation_input_tokens": 3, "cache_creation": {"ephemeral_1h_input_tokens": 9},
        });
        assert_eq!(Usage::from_messages(&more).cache_creation_long, 3);
    }

    #[test]
    fn compaction_of_the_provider_is_billed_beside_the_window() {
        let usage = Usage::from_messages(&json!({
            "input_tokens": 23_000, "output_tokens": 1_000,
            "iterations": [
                {"type": "compaction", "input_tokens": 30_000, "output_tokens": 3_500,
                    "cache_read_input_tokens": 150_000},
                {"type": "message", "input_tokens": 23_000, "output_tokens": 1_000},
            ],
        }));
        assert_eq!((usage.prompt(), usage.output), (23_000, 1_000));
        let [answered, compaction] = usage.billed();
        assert_eq!((answered.prompt(), answered.output), (23_000, 1_000));
        assert_eq!((compaction.input, compaction.cache_read), (30_000, 150_000));
        assert_eq!(compaction.output, 3_500);
        let both = usage + usage;
        assert_eq!(both.billed()[1].prompt(), 360_000);
        let plain = json!({"input_tokens": 5, "iterations": [{"input_tokens": 5}]});
        assert_eq!(
            Usage::from_messages(&plain).compaction,
            CompactionUsage::default()
        );
    }

    #[test]
    fn openai_counts_cached_tokens_inside_input() {
        let chat = Usage::from_chat(&json!({
            "prompt_tokens": 18, "completion_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 3},
        }));
        let responses = Usage::from_responses(&json!({
            "input_tokens": 18, "output_tokens": 7,
            "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 3},
        }));
        assert_eq!(
            chat,
            Usage {
                input: 10,
                cache_creation: 3,
                cache_read: 5,
                output: 7,
                ..Usage::default()
            }
        );
        assert_eq!(chat, responses);
    }

    #[test]
    fn inconsistent_figures_do_not_underflow() {
        let usage = Usage::from_chat(&json!({
            "prompt_tokens": 4, "prompt_tokens_details": {"cached_tokens": 9},
        }));
        assert_eq!((usage.input, usage.prompt()), (0, 4));
        assert_eq!(Usage::from_messages(&json!(null)), Usage::default());
    }
}
