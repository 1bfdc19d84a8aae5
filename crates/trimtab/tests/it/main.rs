//! Behaviour of the library as a whole, and the house rules.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod docs;
mod lossless;
mod presets;
mod recorded;
mod regressions;
mod request;
mod session;
mod switch;
mod tidy;
mod transcripts;
