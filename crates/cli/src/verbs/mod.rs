//! One module per verb.

pub mod chat;
pub mod compact;
pub mod config;
pub mod demo;
pub mod doctor;
pub mod inspect;
pub mod mcp;
pub mod models;
pub mod output;
pub mod replay;
pub mod serve;
pub mod store;
pub mod wrap;
