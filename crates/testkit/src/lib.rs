//! What the tests and benchmarks of every crate share.

pub mod bench;
pub mod history;
