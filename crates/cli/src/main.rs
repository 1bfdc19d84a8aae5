//! The `trimtab` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    trimtab_cli::main()
}
