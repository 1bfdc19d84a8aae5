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
    if let Verb::Mcp(args) = &cli.verb {
        // Before the terminal, which takes standard output for itself.
        let done = verbs::mcp::run(args);
        return exit::code(done, &mut Terminal::new(&cli.common));
    }
    let mut terminal = Terminal::new(&cli.common);
    let done = match &cli.verb {
        Verb::Inspect(args) => verbs::inspect::run(args, &cli.common, &mut terminal),
        Verb::Chat(args) => verbs::chat::run(args, &cli.common, &mut terminal),
        Verb::Models(args) => verbs::models::run(args, &cli.common, &mut terminal),
        Verb::Output(args) => verbs::output::run(args, &cli.common, &mut terminal),
        Verb::Mcp(_) => Ok(()),
    };
    exit::code(done, &mut terminal)
}
