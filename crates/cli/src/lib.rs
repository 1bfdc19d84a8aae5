//! The command line as a library, so that benchmarks and tests can call the verbs.

pub mod args;
pub mod catalogue;
pub mod common;
pub mod exit;
pub mod key_handover;
pub mod model;
pub mod out_file;
pub mod picture;
pub mod proxy;
pub mod recorded_models;
pub mod settings;
pub mod source;
pub mod ui;
pub mod verbs;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::args::{Cli, Verb};
use crate::exit::Failure;
use crate::ui::Terminal;
use crate::ui::visible::visible;

/// Parses the command line, runs the verb and returns the exit code.
pub fn main() -> ExitCode {
    let mut cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(error),
    };
    // An empty variable is the usual way to unset one.
    let store = &mut cli.common.store.store;
    store.take_if(|path| path.as_os_str().is_empty());
    // Its error is reported later, when there is a terminal to print it.
    let found = find_store(&mut cli);
    if reads_settings(&cli.verb) {
        // The terminal is dropped at once, so that `mcp` finds standard output unlocked.
        settings::warn_of_skipped(&cli.common, &mut Terminal::new(&cli.common));
    }
    if let Verb::Mcp(args) = &cli.verb {
        // Must run before `Terminal::new`, which locks standard output.
        let done = found.and_then(|()| verbs::mcp::run(args, &cli.common));
        return exit::code(done, &mut Terminal::new(&cli.common));
    }
    let mut terminal = Terminal::new(&cli.common);
    let done = found.and_then(|()| run(&cli, &mut terminal));
    exit::code(done, &mut terminal)
}

/// Prints a usage error or the requested help, and returns the exit code.
fn usage(error: clap::Error) -> ExitCode {
    // clap quotes the arguments in its text. Parse again with escaped arguments, so that they
    // cannot control the terminal.
    let arguments = std::env::args_os();
    let arguments = arguments.map(|one| visible(&one.to_string_lossy()).into_owned());
    let error = Cli::try_parse_from(arguments).err().unwrap_or(error);
    // If printing fails, there is nowhere to report it.
    let _ = error.print();
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// False for verbs that need no settings.
fn reads_settings(verb: &Verb) -> bool {
    let needs_none = matches!(
        verb,
        Verb::Completions(_) | Verb::Demo(_) | Verb::Inspect(_) | Verb::Man | Verb::Models(_)
    );
    !needs_none
}

/// Looks up the store in the settings, for verbs that use one and got no `--store`.
fn find_store(cli: &mut Cli) -> Result<(), Failure> {
    let uses_store = matches!(
        cli.verb,
        Verb::Chat(_) | Verb::Output(_) | Verb::Store(_) | Verb::Mcp(_)
    );
    if uses_store && cli.common.store.store.is_none() {
        let store = settings::lookup(&cli.common, "store")?;
        let store = store.as_ref().and_then(toml::Value::as_str);
        let store = store.filter(|store| !store.is_empty());
        cli.common.store.store = store.map(Into::into);
    }
    if uses_store && cli.common.store.blobs.is_none() {
        let blobs = settings::lookup(&cli.common, "blobs")?;
        let blobs = blobs.as_ref().and_then(toml::Value::as_str);
        cli.common.store.blobs = blobs.map(str::to_owned);
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
        Verb::Hook(args) => verbs::hook::run(args, &cli.common, terminal),
        Verb::Inspect(args) => verbs::inspect::run(args, &cli.common, terminal),
        Verb::Models(args) => verbs::models::run(args, &cli.common, terminal),
        Verb::Output(args) => verbs::output::run(args, &cli.common, terminal),
        Verb::Replay(args) => verbs::replay::run(args, &cli.common, terminal),
        Verb::Store(args) => verbs::store::run(args, &cli.common, terminal),
        Verb::Serve(args) => verbs::serve::run(args, &cli.common, terminal),
        Verb::Wrap(args) => verbs::wrap::run(args, &cli.common, terminal),
        Verb::Completions(args) => verbs::completions::run(args, Cli::command(), terminal),
        Verb::Man => verbs::man::run(Cli::command(), terminal),
        // `main` runs it.
        Verb::Mcp(_) => Ok(()),
    }
}
