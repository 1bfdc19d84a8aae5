//! The verbs that run the proxy, end to end against the scripted upstream.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "helpers of tests fail and report as tests do"
)]

mod agents;
mod demo;
mod doctor;
mod model;
mod run;
mod sdk;
mod serve;
mod talk;
mod windows;
mod wrap;

#[path = "../clients/install.rs"]
#[allow(dead_code, reason = "other test binaries use the rest of it")]
mod install;
