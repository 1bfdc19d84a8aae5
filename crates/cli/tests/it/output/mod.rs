//! The store from the point of view of users and clients.

mod bad_input;
mod disk;
mod mcp;
mod memory;
mod verbs;
