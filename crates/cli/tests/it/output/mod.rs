//! What users and clients of the store see.

mod bad_input;
mod disk;
mod mcp;
mod memory;
mod verbs;
