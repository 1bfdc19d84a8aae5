//! `trimtab models`: windows, prices and rules per model.

mod list;
mod reset;
mod show;
mod update;

use crate::common::Common;
use crate::exit::Failure;
use crate::ui::Terminal;

/// What `trimtab models` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to do with the catalogue.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What can be done with the catalogue.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// List models: window, answer, prices
    List {
        /// Only models whose name or provider contains this
        #[arg(default_value = "")]
        filter: String,
    },
    /// Show all that is known of one model
    Show {
        /// Its name: exact, without its date, as provider/name, or of its family
        model: String,
    },
    /// Add the models of a newer registry to the catalogue
    Update {
        /// The registry, a JSON object of models by name: a file, an http or https URL, or - for
        /// standard input
        #[arg(value_name = "FILE|URL")]
        from: String,
    },
    /// Go back to the built-in catalogue
    Reset,
}

/// What `trimtab models --help` says first.
pub const ABOUT: &str = "\
Windows, prices and rules per model.

Trimtab carries a registry of some three thousand models. Prices are dollars per million \
tokens. `update` reads a newer registry (LiteLLM's model_prices_and_context_window.json) and \
adds its models to the catalogue; a model that is known already gets the newer entry. The result \
is kept as models.tsv in the configuration folder, or in the file that TRIMTAB_MODELS names; from \
then on every verb uses it. `reset` removes that file.";

/// What it says last.
pub const EXAMPLES: &str = "\
Examples:
  trimtab models list claude                the models with claude in their name
  trimtab models show gpt-4o                one model
  trimtab models show gpt-4o --json         the same for scripts
  trimtab models update registry.json       add the models of a newer registry
  trimtab models update https://models.example/registry.json
  echo '{\"my-model\": {\"max_input_tokens\": 32000}}' | trimtab models update -
  trimtab models reset                      go back to the built-in catalogue

Exit codes: 0 done, 1 it failed, 2 the input or the arguments are wrong.";

/// Runs the verb.
pub fn run(args: &Args, common: &Common, terminal: &mut Terminal) -> Result<(), Failure> {
    match &args.verb {
        Verb::List { filter } => list::run(filter, common, terminal),
        Verb::Show { model } => show::run(model, common, terminal),
        Verb::Update { from } => update::run(from, common, terminal),
        Verb::Reset => reset::run(common, terminal),
    }
}
