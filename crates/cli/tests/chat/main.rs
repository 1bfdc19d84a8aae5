//! `trimtab chat` as users and scripts run it. The model is a script, local or behind loopback
//! HTTP, without a key or a network.

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
