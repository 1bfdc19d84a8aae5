//! The `trimtab` command.

use std::process::ExitCode;

/// The proxy allocates long bodies and many small parts on every call. mimalloc makes a decision
/// about a fifth faster than the system allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    trimtab_cli::main()
}
