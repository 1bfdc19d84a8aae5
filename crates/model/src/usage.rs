//! The usage that a provider reports for a call.

use std::ops::Add;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Dialect;

/// Tokens of one call, normalised across providers: the four figures do not overlap.
///
/// Anthropic counts cached tokens separately from `input_tokens`; `OpenAI` (Chat Completions and
/// Responses), Gemini and most compatible servers include them in their prompt figure, so they are
/// subtracted here. Reasoning tokens are part of `output` for all of them except Gemini, which
/// reports them separately, so they are added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Prompt tokens that were neither read from nor written to a cache.
    pub input: u64,
    /// Prompt tokens written to the provider's cache.
    pub cache_creation: u64,
    /// Prompt tokens read from the provider's cache.
    pub cache_read: u64,
    /// Tokens of the answer, including reasoning.
    pub output: u64,
}

impl Add for Usage {
    type Output = Self;

    // Figures come from providers. A wrong figure must not overflow a sum.
    fn add(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cache_creation: self.cache_creation.saturating_add(other.cache_creation),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            output: self.output.saturating_add(other.output),
        }
    }
}

impl Usage {
    /// `input + cache_creation + cache_read + output`.
    ///
    /// ```
    /// # use trimtab_model::Usage;
    /// let usage = Usage { input: 10, cache_creation: 3, cache_read: 5, output: 7 };
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

    /// Reads Anthropic's `usage` object, where cached tokens are separate from `input_tokens`.
    pub fn from_messages(usage: &Value) -> Self {
        Self {
            input: count(usage, "/input_tokens"),
            cache_creation: count(usage, "/cache_creation_input_tokens"),
            cache_read: count(usage, "/cache_read_input_tokens"),
            output: count(usage, "/output_tokens"),
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

    /// Reads Gemini's `usageMetadata`, where the prompt figure includes cached tokens and reasoning
    /// is separate from the candidates.
    pub fn from_gemini(usage: &Value) -> Self {
        Self::from_inclusive(
            count(usage, "/promptTokenCount"),
            count(usage, "/cachedContentTokenCount"),
            0,
            count(usage, "/candidatesTokenCount")
                .saturating_add(count(usage, "/thoughtsTokenCount")),
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
        }
    }
}

/// The largest figure that is believed, in tokens. No prompt is so long, and millions of such
/// figures can be added up without an overflow.
const MOST_TOKENS: u64 = 1 << 40;

fn count(usage: &Value, pointer: &str) -> u64 {
    // A missing field, a null and a figure that is not a whole number all count as zero: usage is
    // only ever advice, and a call must not fail for it.
    let found = usage.pointer(pointer).and_then(Value::as_u64);
    found.unwrap_or(0).min(MOST_TOKENS)
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
                output: 7
            }
        );
        assert_eq!(chat, responses);
    }

    #[test]
    fn gemini_counts_thoughts_beside_the_answer() {
        let usage = Usage::from_gemini(&json!({
            "promptTokenCount": 18, "cachedContentTokenCount": 5,
            "candidatesTokenCount": 4, "thoughtsTokenCount": 3,
        }));
        assert_eq!((usage.cache_read, usage.output, usage.total()), (5, 7, 25));
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
