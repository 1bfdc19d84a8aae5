//! The agent, end to end over loopback HTTP against a strict upstream.

mod bad_input;
mod common;
mod faults;
mod kill;
mod overflow;
mod sessions;
