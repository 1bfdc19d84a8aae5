//! The limits of a call: the window of its model, the reserve for its answer, and its prices.

use trimtab::session::{Limits, Setup};
use trimtab_wire::catalogue::{PriceTier, Prices};
use trimtab_wire::scan::BodyScan;

use super::ManagedRequest;

/// The largest share of a window that is reserved for an answer, as a divisor. Clients request far
/// more than answers need.
const ANSWER_SHARE: u64 = 8;
/// The reserve for an answer is never capped below this, in tokens.
const FREE_ANSWER: u64 = 4_096;

impl ManagedRequest {
    /// The limits of the request for a model with this window, if the client asks for an answer of
    /// so many tokens.
    pub(crate) fn limits(&self, asked: Option<u64>, window: Option<u64>) -> Limits {
        let rule = self.job.settings.routes.rule(&self.model);
        let longest = rule.and_then(|rule| rule.max_output);
        Limits {
            window,
            max_output: reserve(window, asked, longest),
            // Byte limits of endpoints are not known in advance; an overflow error names them.
            bytes: None,
        }
    }

    /// The setup for sessions of this conversation.
    pub(super) fn setup(&self, scan: &BodyScan<'_>) -> Setup {
        let policy = self.policy().cloned().unwrap_or_default();
        let model = self.model_limits.model.as_ref();
        let tiers = model.map(|model| model.tiers.as_slice());
        Setup {
            dialect: self.job.dialect,
            limits: self.limits(scan.answer_limit(), self.model_limits.window),
            bound_reasoning: self.options.reasoning.bound,
            prices: model
                .and_then(|model| model.prices)
                .map(|prices| self.asked_prices(prices)),
            tiers: tiers
                .into_iter()
                .flatten()
                .map(|tier| PriceTier {
                    prices: self.asked_prices(tier.prices),
                    ..*tier
                })
                .collect(),
            cache_lifetime: self.asked_cache.lifetime,
            calibration: self.job.shared.models.calibration(self.model_key()),
            ..Setup::new(policy)
        }
    }

    /// The prices of what is written for the lifetime that the client asks for.
    fn asked_prices(&self, prices: Prices) -> Prices {
        if self.asked_cache.is_long {
            prices.for_long_lifetime()
        } else {
            prices
        }
    }
}

/// The reserve for the answer: the client's limit, capped by the operator's limit or by a share of
/// the window.
fn reserve(window: Option<u64>, asked: Option<u64>, longest: Option<u64>) -> Option<u64> {
    let share = window.map_or(u64::MAX, |window| (window / ANSWER_SHARE).max(FREE_ANSWER));
    match (asked, longest) {
        // A limit that the operator set is taken as it is. Without one, the client's figure is
        // capped, because it is usually far above what an answer takes.
        (asked, Some(longest)) => Some(asked.map_or(longest, |asked| asked.min(longest))),
        (Some(asked), None) => Some(asked.min(share)),
        (None, None) => window.map(Limits::usual_answer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserve_is_capped_by_the_operator_or_by_a_share_of_the_window() {
        let window = Some(200_000);
        assert_eq!(reserve(window, Some(1_000), None), Some(1_000));
        assert_eq!(reserve(window, Some(128_000), None), Some(25_000));
        assert_eq!(reserve(None, Some(128_000), None), Some(128_000));
        assert_eq!(reserve(window, None, None), Some(6_250));
        assert_eq!(reserve(Some(1_000_000), None, None), Some(8_192));
        assert_eq!(reserve(None, None, None), None);
        // The settings know better than both.
        assert_eq!(reserve(window, Some(128_000), Some(60_000)), Some(60_000));
        assert_eq!(reserve(window, Some(1_000), Some(60_000)), Some(1_000));
        assert_eq!(reserve(window, None, Some(60_000)), Some(60_000));
    }
}
