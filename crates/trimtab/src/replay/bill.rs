//! The cost of windows with a prompt cache.
//!
//! A call reads what it has in common with the previous call from the cache, from the front on, and
//! writes the rest. The front is the tool definitions. The model's answers cost the same under
//! every policy and are not counted.

use trimtab_model::Usage;
use trimtab_wire::catalogue::{Money, Price, Prices};

/// Assumed prices of an unknown model: a dollar per million tokens, a tenth of that for cache
/// reads, a quarter more for cache writes.
pub const USUAL: Prices = Prices {
    input: Price::from_pico(1_000_000),
    output: Price::from_pico(0),
    cache_read: Price::from_pico(100_000),
    cache_write: Price::from_pico(1_250_000),
    cache_write_long: Price::from_pico(1_250_000),
};

/// The cost of a call that reads and writes this many tokens.
pub(crate) fn with_cache(prices: &Prices, read: u64, written: u64) -> Money {
    prices.cost(&Usage {
        cache_read: read,
        cache_creation: written,
        ..Usage::default()
    })
}
