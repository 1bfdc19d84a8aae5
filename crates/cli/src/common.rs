//! Flags that every verb takes.

use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{Args, ValueEnum};

/// Flags that every verb takes.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Common options")]
pub struct CommonArgs {
    /// Print JSON for scripts instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// Print no progress and no warnings
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: ColorMode,
    /// Settings file to use instead of the project's trimtab.toml
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Change one setting, as listed by `trimtab config show`; can be repeated
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorMode {
    /// On a terminal, unless `NO_COLOR` is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The place of the store.
#[derive(Clone, Default, clap::Args)]
pub struct StoreArgs {
    /// The folder or the URL of the store.
    #[arg(
        long,
        help = "Folder or postgres:// URL of the store [default: $XDG_DATA_HOME/trimtab or \
                ~/.local/share/trimtab]",
        global = true,
        value_name = "PATH",
        env = "TRIMTAB_STORE",
        // Unlike the usual parser of paths, it accepts an empty variable, which counts as unset.
        value_parser = OsStringValueParser::new().map(PathBuf::from),
        // The URL of a database may contain a password.
        hide_env_values = true
    )]
    pub store: Option<PathBuf>,
    /// The URL of the object store for large outputs.
    #[arg(
        long,
        help = "Object store for large outputs, if the store is a database: s3://, gs://, az:// \
                or file://",
        global = true,
        value_name = "URL",
        env = "TRIMTAB_BLOBS",
        hide_env_values = true
    )]
    pub blobs: Option<String>,
}

/// Without the URLs, which may contain passwords.
impl std::fmt::Debug for StoreArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreArgs").finish_non_exhaustive()
    }
}
