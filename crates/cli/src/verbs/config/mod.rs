//! `trimtab config`: shows, documents and initialises settings.

mod init;
mod show;
mod token;

use std::io::Write;
use std::path::PathBuf;

use trimtab::config::schema;

use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::settings;
use crate::ui::Terminal;

/// The arguments of `trimtab config`.
#[derive(Debug, clap::Args)]
pub struct ConfigArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub verb: ConfigVerb,
}

/// The subcommands of `trimtab config`.
#[derive(Debug, clap::Subcommand)]
pub enum ConfigVerb {
    /// Write a project file that lists every setting, commented out
    Init {
        /// The file to write; - for standard output
        #[arg(default_value = trimtab::config::PROJECT_FILE)]
        file: PathBuf,
        /// The preset to start from
        #[arg(long, value_name = "NAME")]
        preset: Option<String>,
        /// Overwrite an existing file
        #[arg(long)]
        force: bool,
    },
    /// Show every setting with its value and source
    Show {
        /// Show only settings whose name contains this text
        #[arg(default_value = "")]
        filter: String,
    },
    /// Print a JSON schema of all settings
    Schema,
    /// Generate a token for the proxy, and print it with the settings it needs
    Token {
        /// The owner of the token
        #[arg(default_value = "me")]
        name: String,
    },
}

/// The first part of `trimtab config --help`.
pub const ABOUT: &str = "\
Show the settings, describe them, or write a file to start from.

A setting can come from several sources; the first that has a value wins: a flag of the verb or \
--set KEY=VALUE; the environment, TRIMTAB_ and the name in capitals with _ for each dot; the \
project's trimtab.toml, in the working folder or above it up to the root of the repository, or the \
file that --config or TRIMTAB_CONFIG names; the user's trimtab/config.toml in the configuration \
folder; the preset.

A project's file may only decide what goes into a window, not where requests, keys and outputs go, \
and not what is protected. It is read only if nobody else can write to it.";

/// The last part of its help.
pub const EXAMPLES: &str = "\
Examples:
  trimtab config init --preset refs              write trimtab.toml
  trimtab config show                            show every setting and its source
  trimtab config show compaction --json          show some settings, for scripts
  trimtab config show --set preset=archive       show the settings of another preset
  TRIMTAB_COMPACTION_AUTO=false trimtab config show auto
  trimtab config schema > trimtab.schema.json    write a schema for editors
  trimtab config token ann                       generate a proxy token for ann

Exit codes: 0 success, 1 failure, 2 wrong settings or arguments.
docs/config.md describes every setting, docs/presets.md every preset.";

/// Runs the verb.
pub fn run(args: &ConfigArgs, common: &CommonArgs, terminal: &mut Terminal) -> Result<(), Failure> {
    match &args.verb {
        ConfigVerb::Init {
            file,
            preset,
            force,
        } => {
            let text = init::of_preset(preset.as_deref())?;
            init::write(file, &text, *force, terminal)
        }
        ConfigVerb::Show { filter } => show::run(filter, common, terminal),
        ConfigVerb::Token { name } => token::run(name, common, terminal),
        ConfigVerb::Schema => {
            let preset = settings::load(common, &[])?.policy.preset;
            let (keys, defaults) = (settings::keys(), settings::defaults());
            let schema = schema(&keys, &preset, &defaults).unwrap_or_default();
            writeln!(terminal.out(), "{schema:#}")?;
            Ok(())
        }
    }
}
