//! `trimtab store`: checks, repairs and copies the store.

pub mod check;
pub mod copy;
pub mod repair;

use clap::Subcommand;
use serde_json::{Value, json};
use trimtab::store::StoreCheck;

use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::ui::visible::visible;
use crate::ui::{Terminal, number};

/// The arguments of `trimtab store`.
#[derive(Debug, clap::Args)]
pub struct StoreVerbArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub verb: StoreVerb,
}

/// The subcommands of `trimtab store`.
#[derive(Debug, Subcommand)]
pub enum StoreVerb {
    /// Read everything in the store and report what is lost
    #[command(long_about = check::ABOUT)]
    Check,
    /// Build a new database from the readable parts of a damaged one
    #[command(long_about = repair::ABOUT)]
    Repair,
    /// Copy everything in one store to another, for example from a folder to a database
    #[command(long_about = copy::ABOUT)]
    Copy(copy::StoreCopyArgs),
}

/// The first part of `trimtab store --help`.
pub const ABOUT: &str = "\
Check the store, repair it if it is damaged, and copy it to another place.

A damaged store does not stop a proxy: it passes requests through unchanged and reports the damage.";

/// The last part of its help.
pub const EXAMPLES: &str = "\
Examples:
  trimtab store check
  trimtab store check --json
  trimtab store repair
  trimtab store copy ~/.local/share/trimtab postgres://trimtab@db/trimtab --to-blobs s3://outputs

Exit codes: 0 the store is intact or was repaired, 1 it is damaged or in use, 2 there is no store.";

/// Runs the verb.
pub fn run(
    args: &StoreVerbArgs,
    common: &CommonArgs,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    match &args.verb {
        StoreVerb::Check => check::run(common, terminal),
        StoreVerb::Repair => repair::run(common, terminal),
        StoreVerb::Copy(args) => copy::run(args, common, terminal),
    }
}

/// The result of a check as JSON.
fn as_json(found: &StoreCheck) -> Value {
    let lost = found.lost.iter();
    let lost: Vec<Value> = lost
        .map(|(session, what)| json!({"session": session.as_str(), "what": what}))
        .collect();
    json!({
        "sound": found.is_sound(),
        "sessions": found.sessions,
        "outputs": found.outputs,
        "entries": found.entries,
        "lost_sessions": found.lost_sessions,
        "lost": lost,
        "secret_lost": found.secret_lost,
        "faults": found.faults,
    })
}

/// The result of a check as text.
fn text(found: &StoreCheck) -> String {
    let mut lines: Vec<String> = Vec::new();
    lines.extend(found.faults.iter().map(|fault| format!("damaged: {fault}")));
    if found.secret_lost {
        let lost = "lost: the secret of the store: a proxy will treat all clients as new tenants";
        lines.push(lost.to_owned());
    }
    if found.lost_sessions > 0 {
        let count = found.lost_sessions;
        lines.push(format!(
            "lost: up to {count} sessions whose names are unknown"
        ));
    }
    for (session, what) in &found.lost {
        lines.push(format!(
            "lost: session {}: {what}",
            visible(session.as_str())
        ));
    }
    let counted =
        |count: u64, what| number::counted(usize::try_from(count).unwrap_or(usize::MAX), what);
    lines.push(format!(
        "readable: {}, {}, {} of logs and journals",
        counted(found.sessions, "session"),
        counted(found.outputs, "output"),
        counted(found.entries, "record"),
    ));
    lines.join("\n") + "\n"
}
