//! `trimtab chat`, run as a user or a script runs it. The model is a script, here or behind
//! loopback HTTP: no key, no network.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it leaves out"
)]

mod bad_input;
mod changes;
mod commands;
mod http;
mod kill;
mod print;
mod rendered;
mod resume;
mod run;
mod terminal;
mod tmux;
