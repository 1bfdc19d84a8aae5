//! Finds calls whose prefix a provider should have read from its cache and did not, and who caused
//! it.

use serde::Serialize;
use trimtab_model::Usage;
use trimtab_wire::catalogue::ModelInfo;

/// The minimum loss of a cache break in tokens. Providers cache in blocks and count differently.
const LEAST_TOKENS: u64 = 2_048;

/// A call whose prefix was not read from the cache.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ObservedBreak {
    /// Who caused it: `trimtab`, `client`, `provider`, or `time` if the cache had gone cold.
    pub(crate) by: &'static str,
    /// The first byte that differs from the previous body, to within 256 bytes; none if the body
    /// was not changed.
    pub(crate) byte: Option<usize>,
    /// The tokens that were billed again.
    pub(crate) tokens: u64,
    /// The tokens that were still read from the cache.
    pub(crate) kept: u64,
    /// The extra cost in dollars; none if the price is unknown.
    pub(crate) cost: Option<f64>,
}

/// Two consecutive calls of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallPair {
    /// The reported usage of both.
    pub(crate) usages: (Usage, Usage),
    /// The size of the previous body, and of the common prefix.
    pub(crate) bytes: (usize, usize),
    /// True if a plan of ours changed something that was sent before.
    pub(crate) was_planned: bool,
    /// True if another model was asked.
    pub(crate) other_model: bool,
    /// True if more time passed than the provider keeps a prompt.
    pub(crate) went_cold: bool,
}

impl CallPair {
    /// The cache break between both calls, if there is one.
    pub(crate) fn cache_break(&self, model: Option<&ModelInfo>) -> Option<ObservedBreak> {
        let (before, now) = self.usages;
        // A provider that does not cache, or does not say so, has nothing to break.
        if before.cache_read + before.cache_creation == 0 {
            return None;
        }
        // If nothing breaks the cache, the whole previous prompt is read from it.
        let expected = before.prompt().min(now.prompt());
        let lost = expected.saturating_sub(now.cache_read);
        if lost < LEAST_TOKENS || lost < expected / 10 {
            return None;
        }
        let (sent, common) = self.bytes;
        // The end of a body always differs: closing brackets, and fields after the messages. So
        // only a difference in the first three quarters counts as a change.
        let is_changed = common < sent - sent / 4;
        // Our own plan comes first, so that we never blame others for a break that we caused, even
        // if the cache had expired as well.
        let by = if self.was_planned {
            "trimtab"
        } else if self.went_cold {
            "time"
        } else if self.other_model || is_changed {
            "client"
        } else {
            "provider"
        };
        Some(ObservedBreak {
            by,
            byte: (is_changed || self.was_planned).then_some(common),
            tokens: lost,
            kept: now.cache_read,
            cost: model.and_then(|model| extra_cost(model, lost, &now)),
        })
    }
}

/// The extra cost of sending tokens that could have been read from the cache, if they are billed
/// as most of the new tokens of `like`.
pub(super) fn extra_cost(model: &ModelInfo, tokens: u64, like: &Usage) -> Option<f64> {
    let is_written = like.cache_creation > 0;
    let is_long = like.cache_creation_long > like.cache_creation / 2;
    let all_if = |applies: bool| if applies { tokens } else { 0 };
    let sent = Usage {
        input: all_if(!is_written),
        cache_creation: all_if(is_written),
        cache_creation_long: all_if(is_long),
        ..Usage::default()
    };
    let read = Usage {
        cache_read: tokens,
        ..Usage::default()
    };
    Some(model.cost(&sent)?.dollars() - model.cost(&read)?.dollars())
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_wire::catalogue::Catalogue;

    fn usage(cache_read: u64, cache_creation: u64) -> Usage {
        Usage {
            cache_read,
            cache_creation,
            ..Usage::default()
        }
    }

    fn pair(now: Usage) -> CallPair {
        CallPair {
            usages: (usage(0, 40_000), now),
            bytes: (160_000, 159_000),
            ..CallPair::default()
        }
    }

    #[test]
    fn prefix_that_is_read_is_no_break() {
        assert_eq!(pair(usage(40_000, 2_000)).cache_break(None), None);
        assert_eq!(pair(usage(39_200, 2_000)).cache_break(None), None);
    }

    #[test]
    fn break_names_who_caused_it() {
        let lost = pair(usage(10_000, 32_000));
        let by = |pair: CallPair| pair.cache_break(None).unwrap().by;
        assert_eq!(by(lost.clone()), "provider");
        let planned = CallPair {
            was_planned: true,
            ..lost.clone()
        };
        assert_eq!(by(planned), "trimtab");
        let edited = CallPair {
            bytes: (160_000, 41_000),
            ..lost.clone()
        };
        assert_eq!(by(edited.clone()), "client");
        assert_eq!(edited.cache_break(None).unwrap().byte, Some(41_000));
        let cold = CallPair {
            went_cold: true,
            ..lost
        };
        assert_eq!(by(cold), "time");
    }

    #[test]
    fn break_is_priced_by_the_difference_to_a_read() {
        let model = Catalogue::embedded().find("claude-opus-5-5").unwrap().model;
        let broken = pair(usage(10_000, 32_000)).cache_break(Some(&model));
        let prices = model.prices.unwrap();
        let expected =
            prices.cache_write.of(30_000).dollars() - prices.cache_read.of(30_000).dollars();
        let cost = broken.unwrap().cost.unwrap();
        assert!((cost - expected).abs() < 1e-9, "{cost}");
    }

    #[test]
    fn provider_without_a_cache_has_no_breaks() {
        let mut plain = pair(usage(0, 0));
        plain.usages.0 = Usage {
            input: 40_000,
            ..Usage::default()
        };
        assert_eq!(plain.cache_break(None), None);
    }
}
