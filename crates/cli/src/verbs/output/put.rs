//! `trimtab output put`: stores an output and prints its ref.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde_json::json;
use trimtab::store::Put;

use super::store_location::SessionArgs;
use crate::common::CommonArgs;
use crate::common::StoreArgs;
use crate::exit::Failure;
use crate::ui::progress::Progress;
use crate::ui::{Terminal, number, units};

/// The arguments of `trimtab output put`.
#[derive(Debug, clap::Args)]
pub struct OutputPutArgs {
    /// The session that it belongs to.
    #[command(flatten)]
    pub session: SessionArgs,
    /// The file to store; - for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The name of the tool that produced it
    #[arg(long, value_name = "NAME", default_value = "")]
    pub tool: String,
    /// The id of the call that it answers
    #[arg(long, value_name = "ID", default_value = "")]
    pub call: String,
    /// The media type of the output
    #[arg(long, value_name = "TYPE", default_value = "text/plain")]
    pub media_type: String,
}

/// The first part of `trimtab output put --help`.
pub const ABOUT: &str = "\
Store an output and print its ref as the last line of standard output.

The ref is printed once the bytes are durable. The same bytes of the same call in the same session \
have the same ref. The store is created if it does not exist. Input of any size is streamed.";

/// The last part of its help.
pub const EXAMPLES: &str = "\
Examples:
  cargo test 2>&1 | trimtab output put --session S -
  trimtab output put --session S build.log --tool bash --call call_17
  ref=$(trimtab output put --quiet --session S shot.png --media-type image/png)";

/// Runs the verb.
pub fn run(
    args: &OutputPutArgs,
    store: &StoreArgs,
    common: &CommonArgs,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let session = args.session.id()?;
    // Open the input first: a missing file must not create a store.
    let (mut input, progress) = open(&args.file, terminal)?;
    let place = store.make()?;
    let put = Put::from_reader(&args.call, &mut input)
        .tool(&args.tool)
        .media_type(&args.media_type);
    let stored = place.store.put(&session, put);
    progress.finish();
    let stored = stored.map_err(|error| place.failed(&error))?;
    let bytes = stored.byte_size().unwrap_or(0);
    let lines = place.shown_lines(&session, &stored);
    if common.json {
        let json = json!({"ref": stored.id(), "byte_size": bytes, "line_count": lines});
        terminal.json(&json)?;
    } else {
        terminal.note(&format!(
            "stored {}, {}",
            units::size(bytes),
            number::counted(usize::try_from(lines).unwrap_or(usize::MAX), "line")
        ));
        writeln!(terminal.out(), "{stored}")?;
    }
    Ok(())
}

fn open(path: &Path, terminal: &Terminal) -> Result<(Box<dyn Read>, Progress), Failure> {
    if path.as_os_str() == "-" {
        return Ok((Box::new(io::stdin()), Progress::hidden()));
    }
    let name = path.display();
    let unreadable = |why: &dyn std::fmt::Display| {
        Failure::input(
            format!("{name}: cannot read: {why}"),
            "give the path of a file, or - for standard input",
        )
    };
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    let metadata = file.metadata().map_err(|error| unreadable(&error))?;
    if metadata.is_dir() {
        return Err(unreadable(&"is a folder"));
    }
    let progress = Progress::new(&name.to_string(), metadata.len(), terminal);
    Ok((Box::new(progress.wrap(file)), progress))
}
