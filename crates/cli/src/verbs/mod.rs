//! One module per verb.

pub mod compact;
pub mod config;
pub mod inspect;
pub mod mcp;
pub mod models;
pub mod output;
pub mod replay;
