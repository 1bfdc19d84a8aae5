//! Prices and money, in integers.

use std::fmt;
use std::iter::Sum;
use std::ops::Add;

use serde::Serialize;
use trimtab_model::Usage;

/// The price of one token in pico-dollars (10^-12 of a dollar).
///
/// This equals micro-dollars per million tokens, so every published price is an integer and sums
/// are exact.
///
/// ```
/// # use trimtab_wire::catalogue::Price;
/// let price = Price::parse("2.5").unwrap(); // dollars per million tokens
/// assert_eq!(price.pico(), 2_500_000);
/// assert_eq!(price.to_string(), "2.5");
/// assert_eq!(price.of(1_000_000).to_string(), "$2.50");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Price(u64);

/// The maximum decimals of a price in dollars per million tokens.
const DECIMALS: usize = 6;
/// Pico-dollars per token in a price of one dollar per million tokens.
const ONE: u64 = 1_000_000;
/// The highest plausible price: 100,000 dollars per million tokens.
const HIGHEST: f64 = 0.1;

impl Price {
    /// A price in pico-dollars per token.
    pub const fn from_pico(pico: u64) -> Self {
        Self(pico)
    }

    /// A price in dollars per token, as in registries; none unless it is between 0 and ten cents
    /// per token.
    pub(crate) fn from_dollars_per_token(dollars: f64) -> Option<Self> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range was checked, and rounding is what is meant"
        )]
        (0.0..=HIGHEST)
            .contains(&dollars)
            // A float is exact enough here: prices in registries have few digits, and the result is
            // rounded to a whole pico-dollar.
            .then(|| Self((dollars * 1e12).round() as u64))
    }

    /// Parses dollars per million tokens, with at most six decimals.
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        if decimals.len() > DECIMALS || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        // Parsed as text and not as a float, so that a published price is exact.
        let micros: u64 = format!("{decimals:0<DECIMALS$}").parse().ok()?;
        let whole: u64 = whole.parse().ok()?;
        Some(Self(whole.checked_mul(ONE)?.checked_add(micros)?))
    }

    /// Pico-dollars per token.
    pub const fn pico(self) -> u64 {
        self.0
    }

    /// The cost of this many tokens.
    pub const fn of(self, tokens: u64) -> Money {
        Money(self.0.saturating_mul(tokens))
    }

    /// This price as a multiple of another; 0 if the other is free.
    pub fn ratio(self, other: Self) -> f64 {
        if other.0 == 0 {
            0.0
        } else {
            self.0 as f64 / other.0 as f64
        }
    }

    /// This price times a factor given in thousandths.
    pub(super) const fn scaled(self, thousandths: u64) -> Self {
        Self(self.0.saturating_mul(thousandths) / 1000)
    }
}

impl fmt::Display for Price {
    /// Dollars per million tokens, without trailing zeros.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = format!("{:06}", self.0 % ONE);
        match decimals.trim_end_matches('0') {
            "" => write!(f, "{}", self.0 / ONE),
            decimals => write!(f, "{}.{decimals}", self.0 / ONE),
        }
    }
}

/// An amount of money, in pico-dollars. Sums saturate at some 18 million dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Money(u64);

impl Money {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// An amount in pico-dollars.
    pub const fn from_pico(pico: u64) -> Self {
        Self(pico)
    }

    /// Pico-dollars.
    pub const fn pico(self) -> u64 {
        self.0
    }

    /// Dollars, for display and for ratios.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e12
    }
}

impl Add for Money {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Money {
    /// Dollars: cents from one dollar up, four significant decimals below.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dollars = self.dollars();
        if self.0 == 0 || dollars >= 1.0 {
            write!(f, "${dollars:.2}")
        } else if dollars >= 0.01 {
            write!(f, "${dollars:.4}")
        } else {
            write!(f, "${dollars:.6}")
        }
    }
}

/// The prices of one model, or of one of its tiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Prices {
    /// Prompt tokens without caching.
    pub input: Price,
    /// Tokens of the answer, reasoning included.
    pub output: Price,
    /// Prompt tokens read from the cache; the input price if no discount is known.
    pub cache_read: Price,
    /// Prompt tokens written to the cache for its ordinary lifetime; the input price if writing
    /// costs nothing extra.
    pub cache_write: Price,
    /// Prompt tokens written for the long lifetime; equal to `cache_write` if there is none.
    pub cache_write_long: Price,
}

impl Prices {
    /// The cost of a call with this usage.
    ///
    /// ```
    /// # use trimtab_wire::catalogue::Catalogue;
    /// # use trimtab_model::Usage;
    /// let model = Catalogue::embedded().find("claude-opus-5-5").unwrap().model;
    /// let usage = Usage { input: 1_000, cache_read: 100_000, output: 500, ..Usage::default() };
    /// // 1,000 at $4, 100,000 at $0.20 and 500 at $20 per million
    /// assert_eq!(model.prices.unwrap().cost(&usage).to_string(), "$0.0340");
    /// ```
    pub fn cost(&self, usage: &Usage) -> Money {
        usage.billed().iter().map(|part| self.cost_of(part)).sum()
    }

    fn cost_of(&self, usage: &Usage) -> Money {
        let long = usage.cache_creation_long.min(usage.cache_creation);
        self.input.of(usage.input)
            + self.cache_read.of(usage.cache_read)
            + self.cache_write.of(usage.cache_creation - long)
            + self.cache_write_long.of(long)
            + self.output.of(usage.output)
    }

    /// The prices of a client that lets all it writes be kept for the long lifetime.
    #[must_use]
    pub fn for_long_lifetime(self) -> Self {
        Self {
            cache_write: self.cache_write_long,
            ..self
        }
    }

    /// The price of cache reads as a multiple of the input price.
    pub fn read_ratio(&self) -> f64 {
        self.cache_read.ratio(self.input)
    }

    /// The price of cache writes as a multiple of the input price.
    pub fn write_ratio(&self) -> f64 {
        self.cache_write.ratio(self.input)
    }
}

/// Prices of calls with a prompt above a threshold.
///
/// The whole call is billed at these prices, not only the part above the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PriceTier {
    /// The tier applies to prompts with more tokens than this.
    pub above: u64,
    /// Its prices.
    pub prices: Prices,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_survives_being_written_and_read() {
        for pico in [0, 1, 28_000, 1_250_000, 12_500_000, 9_710_000_000] {
            let price = Price::from_pico(pico);
            assert_eq!(Price::parse(&price.to_string()), Some(price));
        }
    }

    #[test]
    fn a_registry_price_is_rounded_to_the_figure_that_was_meant() {
        let meant = Price::parse("0.89");
        assert_eq!(
            Price::from_dollars_per_token(8.900_000_000_000_001e-7),
            meant
        );
        for nonsense in [-1e-6, f64::NAN, f64::INFINITY, 1.0] {
            assert_eq!(Price::from_dollars_per_token(nonsense), None);
        }
    }

    #[test]
    fn text_that_is_no_price_is_refused() {
        for text in [
            "",
            ".",
            "-1",
            "1.2345678",
            "1e3",
            "1.+5",
            "99999999999999999999",
        ] {
            assert_eq!(Price::parse(text), None, "{text}");
        }
    }

    #[test]
    fn money_saturates() {
        assert_eq!(Price::from_pico(u64::MAX).of(2) + Money(1), Money(u64::MAX));
    }

    #[test]
    fn money_is_shown_with_as_many_decimals_as_it_needs() {
        let shown: Vec<String> = [0, 12_345_678_900_000, 123_450_000_000, 1_234_000_000]
            .map(|pico| Money(pico).to_string())
            .into();
        assert_eq!(shown, ["$0.00", "$12.35", "$0.1235", "$0.001234"]);
    }
}
