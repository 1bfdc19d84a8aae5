//! The prompt cache.
//!
//! Like those of the providers it knows prompts by their front, step by step: what an earlier
//! request to the same model began with is read from the cache.

use std::collections::HashSet;

use super::canonical::CanonicalPrompt;

/// How the prompt cache works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptCacheRules {
    /// Cached tokens come in multiples of this.
    pub step: u64,
    /// Fewer cached tokens than this are none.
    pub minimum: u64,
    /// Whether a Messages prompt is only cached up to its last marker, as the provider has
    /// it. Otherwise all prompts are cached whole, so that tests see how stable they are.
    pub by_markers: bool,
}

impl Default for PromptCacheRules {
    fn default() -> Self {
        Self {
            step: 128,
            minimum: 1024,
            by_markers: false,
        }
    }
}

/// The tokens of a prompt that have to do with the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CachedTokens {
    /// Read from it.
    pub(super) read: u64,
    /// Written to it; only counted where the provider reports it.
    pub(super) written: u64,
    /// The part of `written` that a marker asked to keep for the long lifetime.
    pub(super) written_long: u64,
}

/// Canonical bytes that are compared at once.
const STEP_BYTES: usize = 64;

/// The fronts of prompts that were seen.
#[derive(Debug, Default)]
pub(super) struct PromptFronts {
    seen: HashSet<u64>,
}

impl PromptFronts {
    /// How many canonical bytes at the front of a prompt were seen before; it is seen now.
    pub(super) fn see(&mut self, model: &str, bytes: &[u8]) -> usize {
        let mut chain = *blake3::hash(model.as_bytes()).as_bytes();
        let mut known = 0;
        let mut broken = false;
        for step in bytes.chunks(STEP_BYTES) {
            let mut hasher = blake3::Hasher::new();
            hasher.update(&chain).update(step);
            chain = *hasher.finalize().as_bytes();
            let key = chain.first_chunk().copied().map(u64::from_le_bytes);
            broken |= self.seen.insert(key.unwrap_or_default());
            if !broken {
                known += step.len();
            }
        }
        known
    }
}

impl PromptCacheRules {
    /// What a prompt of `tokens` reads and writes where only marked fronts are cached.
    pub(super) fn marked(
        &self,
        written: &mut PromptFronts,
        model: &str,
        prompt: &CanonicalPrompt,
        tokens: u64,
    ) -> CachedTokens {
        let total = prompt.bytes.len();
        let end = prompt.marked.unwrap_or(0);
        let front = prompt.bytes.get(..end).unwrap_or_default();
        let known = written.see(model, front);
        let read = self.tokens(tokens, known, total);
        let written_to = |end: usize| self.tokens(tokens, end, total).saturating_sub(read);
        CachedTokens {
            read,
            written: written_to(end),
            written_long: written_to(prompt.marked_long.unwrap_or(0)),
        }
    }

    /// The cached tokens of a prompt of `tokens` and `total` bytes of which `known` were seen.
    pub(super) fn tokens(&self, tokens: u64, known: usize, total: usize) -> u64 {
        let share = u128::from(tokens) * known as u128;
        let exact = share.checked_div(total as u128).unwrap_or(0);
        let exact = u64::try_from(exact).unwrap_or(u64::MAX);
        let cached = exact - exact.checked_rem(self.step).unwrap_or(0);
        if cached < self.minimum { 0 } else { cached }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_an_earlier_prompt_began_with_is_known() {
        let mut fronts = PromptFronts::default();
        let text: Vec<u8> = (0..=255).cycle().take(1000).collect();
        assert_eq!(fronts.see("m", &text), 0);
        assert_eq!(fronts.see("m", &text), 1000);
        assert_eq!(fronts.see("other", &text), 0);
        let mut changed = text.clone();
        changed[500] ^= 1;
        assert_eq!(
            fronts.see("m", &changed),
            448,
            "whole steps before the change"
        );
        assert_eq!(fronts.see("m", &text[..320]), 320);
    }

    #[test]
    fn cached_tokens_come_in_steps() {
        let cache = PromptCacheRules::default();
        assert_eq!(cache.tokens(4000, 500, 1000), 1920);
        assert_eq!(cache.tokens(2000, 500, 1000), 0, "below the minimum");
        assert_eq!(cache.tokens(10, 0, 0), 0);
    }
}
