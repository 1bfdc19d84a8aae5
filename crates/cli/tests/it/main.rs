//! What a user of the command line sees.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests fail and report as tests do"
)]

mod bad_input;
mod corpus;
mod forms;
mod models;
mod replay;
mod run;
mod snapshots;
