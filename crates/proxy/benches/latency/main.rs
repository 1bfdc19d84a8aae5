//! What the proxy adds, beside a bare reverse proxy and beside no proxy at all, in one run.
//!
//! Each request is one call of a conversation that grows: it has one more round than the one
//! before, so that all the work on it is done, and done for what is new. The store is a
//! folder. Name sections to run only those: `-- bodies events load growth again memory screens`.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark's table is what it is for, and it may stop where a test would"
)]

mod again;
mod bodies;
mod client;
mod events;
mod growth;
mod load;
mod memory;
mod screens;
mod servers;
mod talk;
mod times;

use servers::Servers;

/// The allocator of the command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A section: its name and what it prints.
type Section = (&'static str, fn(&Servers));

const SECTIONS: [Section; 7] = [
    ("bodies", bodies::run),
    ("events", events::run),
    ("load", load::run),
    ("growth", growth::run),
    ("again", again::run),
    ("memory", memory::run),
    ("screens", screens::run),
];

fn main() {
    let named: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let servers = Servers::start();
    for (name, run) in SECTIONS {
        if named.is_empty() || named.iter().any(|wanted| wanted == name) {
            run(&servers);
        }
    }
}
