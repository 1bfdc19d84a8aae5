//! The agent, end to end over loopback HTTP against a strict upstream.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod background;
mod bad_input;
mod common;
mod egress;
mod faults;
mod kill;
mod models;
mod overflow;
mod sessions;
