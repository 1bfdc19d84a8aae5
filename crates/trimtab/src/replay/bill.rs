//! What windows cost with a prompt cache.
//!
//! A call reads from the cache the messages that it has in common with the call before, from
//! the front, and writes the rest. The model's answers cost the same under every policy and
//! are not counted.

use trimtab_model::Usage;
use trimtab_wire::catalogue::{Money, Price, Prices};

/// Prices of a model that nothing is known of: a dollar per million tokens, a tenth of it for
/// what is read from the cache, a quarter more for what is written to it.
pub const USUAL: Prices = Prices {
    input: Price::from_pico(1_000_000),
    output: Price::from_pico(0),
    cache_read: Price::from_pico(100_000),
    cache_write: Price::from_pico(1_250_000),
    cache_write_long: Price::from_pico(1_250_000),
};

/// What a call costs that reads and writes so many tokens.
pub(crate) fn with_cache(prices: &Prices, read: u64, written: u64) -> Money {
    prices.cost(&Usage {
        cache_read: read,
        cache_creation: written,
        ..Usage::default()
    })
}

/// What it costs where nothing is cached.
pub fn cold(prices: &Prices, tokens: u64) -> Money {
    prices.cost(&Usage {
        input: tokens,
        ..Usage::default()
    })
}
