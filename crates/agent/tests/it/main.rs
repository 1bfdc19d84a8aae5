//! The agent, end to end over loopback HTTP against a strict upstream.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and says what it saw"
)]

mod bad_input;
mod common;
mod faults;
mod kill;
mod overflow;
mod sessions;
