//! What the crate promises about the bytes of requests and streams.

mod common;
mod corpus;
mod large;
#[path = "../../../../fuzz/src/properties.rs"]
mod properties;
mod scan;
mod smoke;
mod splice;
