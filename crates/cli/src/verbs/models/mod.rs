//! `trimtab models`: the catalogue of windows, prices and rules.

mod list;
mod reset;
mod show;
mod update;

use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::ui::Terminal;

/// The arguments of `trimtab models`.
#[derive(Debug, clap::Args)]
pub struct ModelsArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub verb: ModelsVerb,
}

/// The subcommands of `trimtab models`.
#[derive(Debug, clap::Subcommand)]
pub enum ModelsVerb {
    /// List models: window, answer, prices
    List {
        /// List only models whose name or provider contains this text
        #[arg(default_value = "")]
        filter: String,
    },
    /// Show everything that is known about one model
    Show {
        /// The name of the model: exact, without its date, as provider/name, or of its family
        model: String,
    },
    /// Add the models of a newer registry to the catalogue
    Update {
        /// The registry, a JSON object of models by name: a file, an http or https URL, or - for
        /// standard input
        #[arg(value_name = "FILE|URL")]
        from: String,
    },
    /// Restore the built-in catalogue
    Reset,
}

/// The first part of `trimtab models --help`.
pub const ABOUT: &str = "\
Show windows, prices and rules of models.

Trimtab contains a registry of about three thousand models. Prices are dollars per million tokens. \
`update` reads a newer registry (LiteLLM's model_prices_and_context_window.json) and adds its \
models to the catalogue, replacing existing entries. The result is kept as models.tsv in the \
configuration folder, or in the file that TRIMTAB_MODELS names, and every verb uses it. `reset` \
removes that file.";

/// The last part of its help.
pub const EXAMPLES: &str = "\
Examples:
  trimtab models list claude                list the models with claude in their name
  trimtab models show gpt-4o                show one model
  trimtab models show gpt-4o --json         the same for scripts
  trimtab models update registry.json       add the models of a newer registry
  trimtab models update https://models.example/registry.json
  echo '{\"my-model\": {\"max_input_tokens\": 32000}}' | trimtab models update -
  trimtab models reset                      restore the built-in catalogue

Exit codes: 0 success, 1 failure, 2 wrong input or arguments.";

/// Runs the verb.
pub fn run(args: &ModelsArgs, common: &CommonArgs, terminal: &mut Terminal) -> Result<(), Failure> {
    match &args.verb {
        ModelsVerb::List { filter } => list::run(filter, common, terminal),
        ModelsVerb::Show { model } => show::run(model, common, terminal),
        ModelsVerb::Update { from } => update::run(from, common, terminal),
        ModelsVerb::Reset => reset::run(common, terminal),
    }
}
