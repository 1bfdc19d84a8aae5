//! The five designs as systems: what each states, checked on the requests that reach a strict
//! provider, in `trimtab serve` and in `trimtab chat`.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::string_slice,
    reason = "helpers of tests fail and report as tests do"
)]

mod archive;
mod chatted;
mod checkpoint;
mod long_outputs;
mod long_sessions;
mod proxied;
mod reader;
mod refs;
mod retention;
mod scripted;
mod settings;
mod turns;

#[path = "../proxy/run.rs"]
#[allow(dead_code, reason = "other test binaries use the rest of it")]
mod run;
#[path = "../proxy/talk.rs"]
#[allow(dead_code, reason = "other test binaries use the rest of it")]
mod talk;
