//! One module per verb.
//!
//! `lib.rs` parses the command line and calls `run` of the chosen verb with its arguments, the
//! common flags and the terminal. A verb returns a `Failure`, which `exit` prints and turns into an
//! exit code.

pub mod chat;
pub mod compact;
pub mod completions;
pub mod config;
pub mod demo;
pub mod doctor;
pub mod hook;
pub mod inspect;
pub mod man;
pub mod mcp;
pub mod models;
pub mod output;
pub mod replay;
pub mod serve;
pub mod store;
pub mod wrap;
