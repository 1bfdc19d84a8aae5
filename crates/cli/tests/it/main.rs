//! The command line from a user's point of view.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::panic,
    reason = "a test fails by panicking and says what it skipped"
)]

mod bad_input;
mod broken_lines;
mod compact;
mod compact_again;
mod compact_growing;
mod config;
mod corpus;
mod documented;
mod forms;
mod generated;
mod growing_form;
mod guides;
mod hook;
mod inspect;
mod models;
mod output;
mod readme;
mod replay;
mod rewinds;
mod run;
mod sbom;
mod snapshots;
mod summary;
mod summary_requests;
