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
mod deploy;
mod doctor;
mod documented;
mod hooked;
mod input_limit;
mod installed;
mod model;
mod own_calls;
mod recovered;
mod replayed;
mod resume;
mod retained;
mod run;
mod savings;
mod sdk;
mod serve;
mod serve_log;
mod talk;
#[path = "../attacks/terminal_device.rs"]
#[allow(dead_code, reason = "not every test binary types something")]
mod terminal_device;
mod way_back;
mod windows;
mod wrap;
mod wrapped;

#[path = "../clients/install.rs"]
#[allow(dead_code, reason = "other test binaries use the rest of it")]
mod install;
