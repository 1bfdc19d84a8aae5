//! Attacks and faults, tried from outside: the real binary, real sockets, real files.
//!
//! One file for each kind of attack. The short form of each runs with every test run; what
//! takes long runs with `TRIMTAB_LONG=1`.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "helpers of tests fail and report as tests do"
)]

mod damaged_store;
mod erasure;
mod bounded_work;
mod process;
mod store_secret;
mod agent_tools;
mod terminal;
mod terminal_device;
mod rewinds;
mod two_proxies;
mod untouched;
mod connections;
mod memory;
mod sockets;
mod config_trust;
mod key_routing;
mod network;
mod recorder;
mod repository;
mod access;
mod audit_log;
mod host_origin;
mod inbound_tls;
mod quotas;
mod tenancy;
mod tokens;

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
