//! `trimtab completions`: prints the completions of a shell.

use clap::Command;
use clap_complete::Shell;

use crate::exit::Failure;
use crate::ui::Terminal;

/// The arguments of `trimtab completions`.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// The first part of `trimtab completions --help`.
pub const ABOUT: &str = "\
Print the completions of a shell: a script that completes verbs and flags of trimtab.";

/// The last part of its help.
pub const EXAMPLES: &str = "\
Examples:
  trimtab completions bash > ~/.local/share/bash-completion/completions/trimtab
  trimtab completions zsh > ~/.zfunc/_trimtab
  trimtab completions fish > ~/.config/fish/completions/trimtab.fish";

/// Runs the verb.
pub fn run(
    args: &CompletionsArgs,
    mut command: Command,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    // clap writes to memory first: it panics if its writer fails.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "trimtab", &mut script);
    Ok(terminal.data().write_all(&script)?)
}
