//! What the crate promises about the bytes of requests and streams.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::string_slice,
    reason = "helpers of tests fail and report as tests do"
)]

mod common;
mod corpus;
mod large;
#[expect(unreachable_pub, reason = "the fuzz targets see it from outside")]
#[path = "../../../../fuzz/src/properties.rs"]
mod properties;
mod resume;
mod scan;
mod smoke;
mod splice;
