//! Attacks and faults from outside: the real binary, real sockets, real files.
//!
//! There is one file per kind of attack. The short form of each runs with every test run;
//! `TRIMTAB_LONG=1` runs the long form.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::similar_names,
    reason = "helpers of tests fail and report as tests do, and a server is served"
)]

mod access;
mod agent_tools;
mod audit_log;
mod bounded_work;
mod config_trust;
mod connections;
mod damaged_store;
mod erasure;
mod host_origin;
mod inbound_tls;
mod key_routing;
mod long_bodies;
mod memory;
mod network;
mod process;
mod quotas;
mod recorder;
mod repository;
mod rewinds;
mod shared_store;
mod sockets;
mod store_secret;
mod tenancy;
mod terminal;
mod terminal_device;
mod tokens;
mod two_proxies;
mod untouched;

#[path = "../chat/run.rs"]
#[allow(dead_code, reason = "other test binaries use the rest of it")]
mod chat_place;
#[path = "../proxy/run.rs"]
#[allow(dead_code, reason = "other test binaries use the rest of it")]
mod run;
#[path = "../proxy/talk.rs"]
#[allow(dead_code, reason = "other test binaries use the rest of it")]
mod talk;

/// True if the long forms were asked for.
#[allow(dead_code, reason = "not every attack has a long form")]
fn is_long_run() -> bool {
    std::env::var_os("TRIMTAB_LONG").is_some()
}
