//! What the tests and benchmarks of every crate share.
//!
//! Behind features, so that each user gets only what it needs: `generate` (the default) makes
//! histories and request bodies for property tests, `servers` starts PostgreSQL and an S3-compatible
//! server, and `upstream` is a strict provider on loopback that answers from a script.

pub mod bench;
#[cfg(feature = "generate")]
pub mod bodies;
#[cfg(feature = "generate")]
pub mod history;
#[cfg(all(unix, feature = "servers"))]
pub mod servers;
#[cfg(feature = "upstream")]
pub mod upstream;

#[cfg(feature = "upstream")]
pub use trimtab_wire::script;

/// A ref for tests that have no store.
#[expect(clippy::disallowed_methods, reason = "nobody redeems it")]
pub fn made_ref(id: &str, byte_size: Option<u64>, line_count: Option<u64>) -> trimtab_model::Ref {
    trimtab_model::Ref::issue(id, byte_size, line_count)
}

/// How many times as many cases a long run has.
#[cfg(feature = "generate")]
const LONG: u32 = 40;

/// Settings for a property test: `number` cases, many more in a long run (`./test --long`).
#[cfg(feature = "generate")]
pub fn cases(number: u32) -> proptest::prelude::ProptestConfig {
    let factor = if is_long() { LONG } else { 1 };
    proptest::prelude::ProptestConfig {
        cases: number.saturating_mul(factor),
        ..proptest::prelude::ProptestConfig::default()
    }
}

/// True in a long run: `TRIMTAB_LONG` is set.
pub fn is_long() -> bool {
    std::env::var_os("TRIMTAB_LONG").is_some()
}
