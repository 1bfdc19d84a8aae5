//! Behaviour of the library as a whole, and the house rules.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod lossless;
mod presets;
mod regressions;
mod request;
mod session;
mod tidy;
mod transcripts;
