//! The scripted upstream, over real connections.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail as tests do"
)]

mod cache;
mod client;
mod faults;
mod overflow;
mod provider_items;
mod rounds;
mod seals;
mod sources;
mod strict;
