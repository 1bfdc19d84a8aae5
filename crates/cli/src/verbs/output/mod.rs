//! `trimtab output`: manages stored tool outputs.
//!
//! The verbs are thin: `store_location` finds the store and the session, `prefix` resolves
//! abbreviated names, and the store does the work.

pub mod erase;
pub mod gc;
pub mod grep;
mod highlight;
pub mod list;
pub mod prefix;
pub mod put;
pub mod read;
pub mod sessions;
pub mod store_location;

use clap::Subcommand;
use serde_json::{Value, json};
use trimtab::store::OutputMetadata;

use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::ui::Terminal;

/// The arguments of `trimtab output`.
#[derive(Debug, clap::Args)]
pub struct OutputArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub verb: OutputVerb,
}

/// The subcommands of `trimtab output`.
#[derive(Debug, Subcommand)]
pub enum OutputVerb {
    /// Store an output and print its ref
    #[command(long_about = put::ABOUT, after_help = put::EXAMPLES)]
    Put(put::OutputPutArgs),
    /// List the stored outputs
    #[command(after_help = list::EXAMPLES)]
    List(list::OutputListArgs),
    /// Print an output, or some lines of it
    #[command(long_about = read::ABOUT, after_help = read::EXAMPLES)]
    Read(read::OutputReadArgs),
    /// Search an output, or all outputs of a session
    #[command(long_about = grep::ABOUT, after_help = grep::EXAMPLES)]
    Grep(grep::OutputGrepArgs),
    /// List the sessions
    Sessions,
    /// Remove old sessions with everything in them
    #[command(long_about = gc::ABOUT, after_help = gc::EXAMPLES)]
    Gc(gc::OutputGcArgs),
    /// Remove sessions permanently, with every copy of them
    #[command(long_about = erase::ABOUT, after_help = erase::EXAMPLES)]
    Erase(erase::OutputEraseArgs),
}

/// The first part of `trimtab output --help`.
pub const ABOUT: &str = "\
Manage stored tool outputs: put, list, read, search and remove them.

Every output that the proxy or the library shortens is stored in full, byte for byte, under a ref \
that belongs to its session. These verbs give people and scripts access to the same store. A \
unique prefix of a session's name or of a ref is enough; `put` and `erase` need full names.

The store is a folder or a database: --store, else TRIMTAB_STORE, else the folder trimtab in the \
user's data folder. \
Several processes may use it at the same time.";

/// The last part of its help.
pub const EXAMPLES: &str = "\
Examples:
  trimtab output sessions                               list the sessions
  trimtab output list --session S                       list the outputs of a session
  trimtab output read --session S REF --offset 3000 --limit 20
  trimtab output grep --session S REF 'error\\[E' --regex -A 5
  cargo test 2>&1 | trimtab output put --session S -    store an output and print its ref
  trimtab output gc --older-than 7d --dry-run           show what would be removed
  trimtab output erase --session S                      erase a session

Exit codes: 0 success, 1 failure or a search without matches, 2 wrong arguments: an unknown ref or \
session, an offset past the end, a bad pattern, no store.";

/// Runs the verb.
pub fn run(args: &OutputArgs, common: &CommonArgs, terminal: &mut Terminal) -> Result<(), Failure> {
    let store = &common.store;
    match &args.verb {
        OutputVerb::Put(args) => put::run(args, store, common, terminal),
        OutputVerb::List(args) => list::run(args, store, common, terminal),
        OutputVerb::Read(args) => read::run(args, store, common, terminal),
        OutputVerb::Grep(args) => grep::run(args, store, common, terminal),
        OutputVerb::Sessions => sessions::run(store, common, terminal),
        OutputVerb::Gc(args) => gc::run(args, store, common, terminal),
        OutputVerb::Erase(args) => erase::run(args, store, common, terminal),
    }
}

/// An output as one line of JSON.
fn as_json(output: &OutputMetadata, lines: u64) -> Value {
    json!({
        "ref": output.reference.id(),
        "session": output.session.as_str(),
        "call": output.labels.call,
        "tool": output.labels.tool,
        "media_type": output.labels.media_type,
        "byte_size": output.byte_size,
        "stored_size": output.stored_size,
        "line_count": lines,
        "has_text": output.has_text,
        "created": output.created,
    })
}
