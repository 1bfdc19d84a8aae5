//! Behaviour of the library as a whole.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it skips"
)]

mod all_settings;
mod bounded_work;
mod catch_up;
mod common;
mod designs;
mod docs;
mod growth;
mod lossless;
mod presets;
mod recorded;
mod regressions;
mod request;
mod session;
mod settings;
mod switch;
mod system_places;
