//! Sessions of hosts, through the surface that the packages use.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::format_collect,
    clippy::print_stdout,
    reason = "helpers of tests fail as tests do, make texts of lines, and say what they skip"
)]

mod hosts;
mod recorded;
mod same_bytes;
mod talk;
