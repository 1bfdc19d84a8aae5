//! The scripted upstream, over real connections.

mod cache;
mod client;
mod faults;
mod overflow;
mod rounds;
mod seals;
mod sources;
mod strict;
