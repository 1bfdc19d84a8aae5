//! The dashboard in a real browser: headless Chromium, driven over its debugging pipe.
//!
//! Without Chromium the tests say so and pass; `./test` installs it.
//! `TRIMTAB_SCREENSHOTS=FOLDER cargo test -p trimtab-cli --test browser screenshots` writes a
//! picture of every page.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "helpers of tests fail and report as tests do"
)]

mod actions;
mod chromium;
mod hostile;
mod long_session;
mod metrics;
mod pages;
mod people;
mod prometheus;
mod savings;
mod screenshots;
mod session_page;
mod stage;
mod telemetry;

#[path = "../proxy/run.rs"]
#[allow(dead_code, reason = "other test binaries use the rest of it")]
mod run;
