//! The command line, as a library: so that benchmarks and tests can call what it runs.

pub mod args;
pub mod catalogue;
pub mod estimate;
pub mod exit;
pub mod source;
pub mod ui;
pub mod verbs;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Verb};
use crate::ui::Terminal;

/// Parses the command line, runs its verb and gives the exit code.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut terminal = Terminal::new(&cli.common);
    let done = match &cli.verb {
        Verb::Inspect(args) => verbs::inspect::run(args, &cli.common, &mut terminal),
        Verb::Models(args) => verbs::models::run(args, &cli.common, &mut terminal),
    };
    exit::code(done, &mut terminal)
}
