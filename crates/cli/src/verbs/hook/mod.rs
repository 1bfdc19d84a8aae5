//! `trimtab hook`: shortens the outputs of a client's tools before they enter its transcript.

mod claude;
mod install;
mod json_file;

use std::io::Read;

use clap::{Subcommand, ValueEnum};

use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::ui::Terminal;

/// The arguments of `trimtab hook`.
#[derive(Debug, clap::Args)]
pub struct HookArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub verb: HookVerb,
}

/// The subcommands of `trimtab hook`.
#[derive(Debug, Subcommand)]
pub enum HookVerb {
    /// Answer the hook that Claude Code runs after each tool, on standard input and output
    Claude,
    /// Add the hook to a client's settings; shows the difference first
    Install(HookFileArgs),
    /// Remove the hook from a client's settings; shows the difference first
    Uninstall(HookFileArgs),
}

/// The arguments of `trimtab hook install` and `uninstall`.
#[derive(Debug, clap::Args)]
pub struct HookFileArgs {
    /// The client
    #[arg(value_name = "CLIENT")]
    pub client: HookClient,
    /// Its settings file [default: the user's]
    #[arg(long, value_name = "FILE")]
    pub file: Option<std::path::PathBuf>,
    /// Write the file; without this, the difference is only shown
    #[arg(long, short)]
    pub yes: bool,
}

/// The clients that may be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HookClient {
    /// Claude Code
    Claude,
    /// Codex, whose hook cannot replace outputs
    Codex,
    /// Qwen Code, whose hook cannot replace outputs
    Qwen,
}

/// The first part of `trimtab hook --help`.
pub const ABOUT: &str = "\
Shorten the outputs of a client's tools before they enter its transcript.

Claude Code runs a hook after each tool, and the hook may replace the output. `trimtab hook claude` \
stores a large output in full and returns a short view, with the command that reads the rest. \
The client's own transcript, gauge and compaction then work with the short view. No proxy is needed.

If anything goes wrong, the hook answers nothing, and the client uses the original output.";

/// The last part of its help.
pub const EXAMPLES: &str = "\
Examples:
  trimtab hook install claude          # shows what would change
  trimtab hook install claude --yes    # keeps a copy of the old file
  trimtab hook uninstall claude --yes

Codex and Qwen Code have such hooks too, but theirs cannot replace outputs: use `trimtab wrap`.";

/// Runs the verb.
pub fn run(args: &HookArgs, common: &CommonArgs, terminal: &mut Terminal) -> Result<(), Failure> {
    match &args.verb {
        HookVerb::Claude => {
            answer(common, terminal);
            Ok(())
        }
        HookVerb::Install(file) => install::install(file, common, terminal),
        HookVerb::Uninstall(file) => install::uninstall(file, common, terminal),
    }
}

/// Answers one event. A failure is only reported: the client continues with the original output.
fn answer(common: &CommonArgs, terminal: &mut Terminal) {
    let mut event = String::new();
    let read = std::io::stdin().read_to_string(&mut event);
    let answered = read
        .map_err(Failure::from)
        .and_then(|_| claude::replacement(&event, common));
    match answered {
        Ok(Some(answer)) => {
            // If the client no longer listens, there is nothing left to do.
            let _ = terminal.json(&answer);
        }
        Ok(None) => {}
        Err(failure) => terminal.warn(&format!("the output is not shortened: {failure}")),
    }
}
