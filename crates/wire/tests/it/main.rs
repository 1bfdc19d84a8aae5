//! What the crate promises about real transcripts and scripts.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests fail and report as tests do"
)]

mod corpus;
mod lossless;
mod script;
