//! The command line, as a library: so that benchmarks and tests can call what it runs.

pub mod args;
pub mod catalogue;
pub mod common;
pub mod exit;
pub mod handover;
pub mod model;
pub mod proxy;
pub mod settings;
pub mod source;
pub mod ui;
pub mod verbs;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Verb};
use crate::exit::Failure;
use crate::ui::Terminal;
use crate::ui::visible::visible;

/// Parses the command line, runs its verb and gives the exit code.
pub fn main() -> ExitCode {
    let mut cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(error),
    };
    let found = find_store(&mut cli);
    if reads_settings(&cli.verb) {
        settings::warn_of_skipped(&cli.common, &mut Terminal::new(&cli.common));
    }
    if let Verb::Mcp(args) = &cli.verb {
        // Before the terminal, which takes standard output for itself.
        let done = found.and_then(|()| verbs::mcp::run(args, &cli.common));
        return exit::code(done, &mut Terminal::new(&cli.common));
    }
    let mut terminal = Terminal::new(&cli.common);
    let done = found.and_then(|()| run(&cli, &mut terminal));
    exit::code(done, &mut terminal)
}

/// Tells what is wrong with the arguments, or what they ask to be told, and gives the exit code.
fn usage(error: clap::Error) -> ExitCode {
    // The text quotes arguments, which may act on a terminal: it is made again with visible ones.
    let arguments = std::env::args_os();
    let arguments = arguments.map(|one| visible(&one.to_string_lossy()).into_owned());
    let error = Cli::try_parse_from(arguments).err().unwrap_or(error);
    // There is nowhere left to say that even this failed.
    let _ = error.print();
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// False for the verbs that do without settings.
fn reads_settings(verb: &Verb) -> bool {
    !matches!(verb, Verb::Demo(_) | Verb::Inspect(_) | Verb::Models(_))
}

/// Asks the settings where the store is, for a verb that uses it and was not told.
fn find_store(cli: &mut Cli) -> Result<(), Failure> {
    let uses = matches!(
        cli.verb,
        Verb::Chat(_) | Verb::Output(_) | Verb::Store(_) | Verb::Mcp(_)
    );
    if uses && cli.common.store.store.is_none() {
        cli.common.store.store = settings::load(&cli.common, &[])?.store;
    }
    Ok(())
}

fn run(cli: &Cli, terminal: &mut Terminal) -> Result<(), Failure> {
    match &cli.verb {
        Verb::Chat(args) => verbs::chat::run(args, &cli.common, terminal),
        Verb::Compact(args) => verbs::compact::run(args, &cli.common, terminal),
        Verb::Config(args) => verbs::config::run(args, &cli.common, terminal),
        Verb::Demo(args) => verbs::demo::run(args, &cli.common, terminal),
        Verb::Doctor(args) => verbs::doctor::run(args, &cli.common, terminal),
        Verb::Inspect(args) => verbs::inspect::run(args, &cli.common, terminal),
        Verb::Models(args) => verbs::models::run(args, &cli.common, terminal),
        Verb::Output(args) => verbs::output::run(args, &cli.common, terminal),
        Verb::Replay(args) => verbs::replay::run(args, &cli.common, terminal),
        Verb::Store(args) => verbs::store::run(args, &cli.common, terminal),
        Verb::Serve(args) => verbs::serve::run(args, &cli.common, terminal),
        Verb::Wrap(args) => verbs::wrap::run(args, &cli.common, terminal),
        Verb::Mcp(_) => Ok(()),
    }
}
