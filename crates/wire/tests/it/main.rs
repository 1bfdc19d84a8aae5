//! What the crate promises about transcripts and scripts.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "helpers of tests fail and report as tests do"
)]

mod corpus;
mod lossless;
mod script;
mod transcripts;
