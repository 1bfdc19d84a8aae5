//! Makes the snapshot of models that is part of the crate from a registry file:
//!
//! ```text
//! cargo run -p trimtab-wire --example models_snapshot < registry.json > models.tsv
//! mv models.tsv crates/wire/data/models.tsv
//! ```
//!
//! The registry is `LiteLLM`'s `model_prices_and_context_window.json`, or a cut of it.

use std::error::Error;
use std::io::{self, Read as _, Write as _};

use trimtab_wire::catalogue::Catalogue;

fn main() -> Result<(), Box<dyn Error>> {
    let mut json = String::new();
    io::stdin().read_to_string(&mut json)?;
    let import = Catalogue::from_registry(&json)?;
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "# Made from the model registry of LiteLLM, MIT licence: see models.LICENSE."
    )?;
    out.write_all(import.catalogue.snapshot().as_bytes())?;
    writeln!(
        io::stderr(),
        "{} models, {} left out",
        import.kept,
        import.skipped.len()
    )?;
    Ok(())
}
