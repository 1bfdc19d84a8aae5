//! `trimtab output`: the store of tool outputs.

pub mod erase;
pub mod gc;
pub mod grep;
mod highlight;
pub mod list;
pub mod place;
pub mod prefix;
pub mod put;
pub mod read;
pub mod sessions;

use clap::Subcommand;
use serde_json::{Value, json};
use trimtab::store::Metadata;

use crate::common::Common;
use crate::exit::Failure;
use crate::ui::Terminal;

/// What `trimtab output` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to do with the store.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What can be done with the store.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Store an output and print its ref
    #[command(long_about = put::ABOUT, after_help = put::EXAMPLES)]
    Put(put::Args),
    /// Show which outputs there are
    #[command(after_help = list::EXAMPLES)]
    List(list::Args),
    /// Print an output, or some lines of it
    #[command(long_about = read::ABOUT, after_help = read::EXAMPLES)]
    Read(read::Args),
    /// Search an output, or all of a session
    #[command(long_about = grep::ABOUT, after_help = grep::EXAMPLES)]
    Grep(grep::Args),
    /// Show which sessions there are
    Sessions,
    /// Remove old sessions with all that they hold
    #[command(long_about = gc::ABOUT, after_help = gc::EXAMPLES)]
    Gc(gc::Args),
    /// Remove sessions for good, with every copy of them
    #[command(long_about = erase::ABOUT, after_help = erase::EXAMPLES)]
    Erase(erase::Args),
}

/// What `trimtab output --help` says first.
pub const ABOUT: &str = "\
Keep tool outputs in a store: put, list, read, search and remove them.

Every output that the proxy or the library shortens is stored whole, byte for byte, under a ref \
that belongs to its session. Here a person or a script gets at the same store. The beginning of a \
session's name or of a ref is enough where it means only one; `put` and `erase` want whole names.

The store is a folder: --store, else TRIMTAB_STORE, else trimtab in the user's data folder. Several \
processes may use it at the same time.";

/// What it says last.
pub const EXAMPLES: &str = "\
Examples:
  trimtab output sessions                               which sessions there are
  trimtab output list --session S                       the outputs of one
  trimtab output read --session S REF --offset 3000 --limit 20
  trimtab output grep --session S REF 'error\\[E' --regex -A 5
  cargo test 2>&1 | trimtab output put --session S -    store one, print its ref
  trimtab output gc --older-than 7d --dry-run           what would be removed
  trimtab output erase --session S                      remove one for good

Exit codes: 0 done, 1 it failed or a search found nothing, 2 the arguments are wrong: an \
unknown ref or session, an offset past the end, a bad pattern, no store.";

/// Runs the verb.
pub fn run(args: &Args, common: &Common, terminal: &mut Terminal) -> Result<(), Failure> {
    let store = &common.store;
    match &args.verb {
        Verb::Put(args) => put::run(args, store, common, terminal),
        Verb::List(args) => list::run(args, store, common, terminal),
        Verb::Read(args) => read::run(args, store, common, terminal),
        Verb::Grep(args) => grep::run(args, store, common, terminal),
        Verb::Sessions => sessions::run(store, common, terminal),
        Verb::Gc(args) => gc::run(args, store, common, terminal),
        Verb::Erase(args) => erase::run(args, store, common, terminal),
    }
}

/// An output of so many lines as one line of JSON.
fn as_json(output: &Metadata, lines: u64) -> Value {
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
