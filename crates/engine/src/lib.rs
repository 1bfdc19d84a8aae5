//! Decides what to keep, show, trim and compact.
//!
//! Everything here is a pure function of values: no I/O, no clock, no randomness, no async.

pub mod budget;
pub mod decide;
mod digest;
pub mod journal;
pub mod log;
pub mod normalise;
pub mod observation;
mod pattern;
pub mod plan;
pub mod policy;
pub mod quote;
pub mod removal;
pub mod trigger;
pub mod verify;
pub mod view;
pub mod window;
