//! `trimtab chat`, run as a user or a script runs it. The model is a script, here or behind
//! loopback HTTP: no key, no network.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "helpers of tests fail as tests do, and say what they skipped"
)]

mod bad_input;
mod http;
mod print;
mod resume;
mod run;
mod terminal;
mod tmux;
