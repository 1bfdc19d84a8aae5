//! All clients, and how each is set up and run without a user.

mod agents;
mod editors;
mod libraries;

use crate::setup::ClientSetup;

/// Any key will do.
const KEY: &str = "sk-test";

/// Every client in every way that is tested.
pub(crate) fn clients() -> Vec<&'static ClientSetup> {
    let all = [agents::CLIENTS, editors::CLIENTS, libraries::CLIENTS];
    all.into_iter().flatten().collect()
}
