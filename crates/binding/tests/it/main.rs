//! Sessions of hosts, through the surface that the packages use.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::format_collect,
    reason = "helpers of tests fail as tests do, and make texts of lines"
)]

mod hosts;
mod recorded;
mod same_bytes;
mod talk;
