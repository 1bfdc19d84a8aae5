//! What the tests and benchmarks of every crate share.

use proptest::prelude::ProptestConfig;

pub mod bench;
pub mod bodies;
pub mod history;

/// How many times as many cases a long run has.
const LONG: u32 = 40;

/// Settings for a property test: `number` cases, many more in a long run (`./test --long`).
pub fn cases(number: u32) -> ProptestConfig {
    let factor = if is_long() { LONG } else { 1 };
    ProptestConfig {
        cases: number.saturating_mul(factor),
        ..ProptestConfig::default()
    }
}

/// True in a long run: `TRIMTAB_LONG` is set.
pub fn is_long() -> bool {
    std::env::var_os("TRIMTAB_LONG").is_some()
}
