//! The store beside what it is built on: plain files, the database, seek and read, ripgrep; and the
//! shared store beside the store in a folder.
//!
//! `TRIMTAB_BENCH_MB` sets the size of the large output (256); `cargo bench -p trimtab-store`. With the
//! argument `shared`, only the shared store is measured.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark may fail, and its tables are what it is for"
)]

#[cfg(unix)]
mod reads;
#[cfg(unix)]
mod shared;
#[cfg(unix)]
mod writes;

fn main() {
    #[cfg(unix)]
    {
        if !std::env::args().any(|argument| argument == "shared") {
            writes::puts();
            writes::appends();
            writes::corpus();
            reads::large_outputs();
        }
        shared::all();
    }
}
