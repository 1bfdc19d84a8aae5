//! One module per verb.

pub mod chat;
pub mod inspect;
pub mod mcp;
pub mod models;
pub mod output;
