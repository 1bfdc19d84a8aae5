//! What users and clients of the store see.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::panic,
    reason = "a test fails by panicking and says what it skipped"
)]

mod bad_input;
mod disk;
mod mcp;
mod memory;
mod run;
mod verbs;
