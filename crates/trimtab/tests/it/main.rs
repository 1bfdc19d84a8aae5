//! Behaviour of the library as a whole, and the house rules.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod lossless;
mod presets;
mod request;
mod session;
mod tidy;
