//! `trimtab config`: the settings, resolved and documented.

mod init;
mod show;
mod token;

use std::io::Write;
use std::path::PathBuf;

use trimtab::config::schema;

use crate::common::Common;
use crate::exit::Failure;
use crate::settings;
use crate::ui::Terminal;

/// What `trimtab config` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to do with the settings.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What can be done with the settings.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Write a project file with every setting in it, commented out
    Init {
        /// The file to write
        #[arg(default_value = trimtab::config::PROJECT_FILE)]
        file: PathBuf,
        /// The preset to begin with
        #[arg(long, value_name = "NAME")]
        preset: Option<String>,
        /// Write it even if it is there
        #[arg(long)]
        force: bool,
    },
    /// Show every setting, its value and where that comes from
    Show {
        /// Only settings whose name contains this
        #[arg(default_value = "")]
        filter: String,
    },
    /// Print a JSON schema of all settings
    Schema,
    /// Make a token for the proxy: print it, and what the settings need of it
    Token {
        /// Whose token it is
        #[arg(default_value = "me")]
        name: String,
    },
}

/// What `trimtab config --help` says first.
pub const ABOUT: &str = "\
Show the settings, describe them, or write a file to start from.

A setting comes from, the strongest first: a flag of the verb or --set KEY=VALUE; the environment, \
TRIMTAB_ and its name in capitals with _ for every dot; the project's trimtab.toml, in the working \
folder or above it up to the root of its repository, or the file that --config or TRIMTAB_CONFIG \
names; the user's trimtab/config.toml in the configuration folder; the preset.

A project's file may decide what goes into a window, and nothing else: not where requests, keys \
and outputs go, and not what is protected. It is read only if nobody else can write to it.";

/// What it says last.
pub const EXAMPLES: &str = "\
Examples:
  trimtab config init --preset refs              write trimtab.toml
  trimtab config show                            every setting and where it comes from
  trimtab config show compaction --json          some of them, for scripts
  trimtab config show --set preset=archive       what another preset would say
  TRIMTAB_COMPACTION_AUTO=false trimtab config show auto
  trimtab config schema > trimtab.schema.json    for editors
  trimtab config token ann                       a token for ann, to use the proxy with

Exit codes: 0 done, 1 it failed, 2 a setting or an argument is wrong.
Every setting is described in docs/config.md, every preset in docs/presets.md.";

/// Runs the verb.
pub fn run(args: &Args, common: &Common, terminal: &mut Terminal) -> Result<(), Failure> {
    match &args.verb {
        Verb::Init {
            file,
            preset,
            force,
        } => init::run(file, preset.as_deref(), *force, terminal),
        Verb::Show { filter } => show::run(filter, common, terminal),
        Verb::Token { name } => token::run(name, common, terminal),
        Verb::Schema => {
            let preset = settings::load(common, &[])?.policy.preset;
            let (keys, defaults) = (settings::keys(), settings::defaults());
            let schema = schema(&keys, &preset, &defaults).unwrap_or_default();
            writeln!(terminal.out(), "{schema:#}")?;
            Ok(())
        }
    }
}
