//! `trimtab store copy`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use trimtab::redact::redact_urls;
use trimtab::store::{CopyProgress, Error, Store, copy_store};
use trimtab::store_place::StorePlace;

use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::ui::progress::Progress;
use crate::ui::units::size;
use crate::ui::visible::visible_json;
use crate::ui::{Terminal, number};
use crate::verbs::output::store_location::explain;

/// The first part of `trimtab store copy --help`.
pub const ABOUT: &str = "\
Copy everything in one store to another, for example from a folder to a database.

Refs, logs and journals stay the same, so a proxy continues every conversation with the copy. Every \
output is read back from the target and verified by its digest. The target must be empty, or an \
earlier copy of the same store: what it already has is not copied again, so an interrupted copy \
continues where it stopped. Stop the proxies of the source first, or copy again after they have \
stopped.";

/// The arguments of `trimtab store copy`.
#[derive(Debug, clap::Args)]
pub struct StoreCopyArgs {
    /// Folder or postgres:// URL of the source
    pub from: PathBuf,
    /// Folder or postgres:// URL of the target, which is created if it does not exist
    pub to: PathBuf,
    /// Object store of the source, if it is a database with one
    #[arg(long, value_name = "URL")]
    pub from_blobs: Option<String>,
    /// Object store of the target, if it is a database: s3://, gs://, az:// or file://
    #[arg(long, value_name = "URL")]
    pub to_blobs: Option<String>,
}

/// Runs the verb.
pub fn run(
    args: &StoreCopyArgs,
    common: &CommonArgs,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let (from, source) = opened(&args.from, args.from_blobs.as_deref(), StorePlace::open)?;
    let (to, target) = opened(&args.to, args.to_blobs.as_deref(), StorePlace::create)?;
    if from == to {
        return Err(Failure::input(
            format!("{from} is both the source and the target"),
            "give another target",
        ));
    }
    let count = source.sessions().map_err(|error| explain(&from, &error))?;
    let bar = Progress::steps("copying sessions", count.len() as u64, terminal);
    let copied = copy_store(source.as_ref(), target.as_ref(), &mut |_| bar.advance());
    bar.finish();
    let done = copied.map_err(|error| match error {
        // These concern the target only. Others may come from either store.
        Error::NotEmpty | Error::OtherSession { .. } => explain(&to, &error),
        error => explain(&format!("{from} or {to}"), &error),
    })?;
    let report = if common.json {
        visible_json(&as_json(&done)) + "\n"
    } else {
        text(&done)
    };
    terminal.out().write_all(report.as_bytes())?;
    Ok(())
}

type OpenPlace = fn(&StorePlace) -> Result<Arc<dyn Store>, Error>;

fn opened(
    path: &Path,
    blobs: Option<&str>,
    open: OpenPlace,
) -> Result<(StorePlace, Arc<dyn Store>), Failure> {
    let place = StorePlace::new(path, blobs).ok_or_else(|| {
        Failure::input(
            format!("{}: not a store", redact_urls(&path.to_string_lossy())),
            "give the path of a folder, or a postgres:// URL",
        )
    })?;
    let store = open(&place).map_err(|error| match error {
        Error::Vanished { .. } | Error::NoTables => Failure::input(
            format!("no store at {place}"),
            "give the folder or the URL of the store to copy",
        ),
        error => explain(&place, &error),
    })?;
    Ok((place, store))
}

fn as_json(done: &CopyProgress) -> serde_json::Value {
    json!({
        "sessions": done.copied_sessions,
        "outputs": done.copied_outputs,
        "bytes": done.copied_bytes,
        "entries": done.copied_entries,
    })
}

fn text(done: &CopyProgress) -> String {
    let counted =
        |count: u64, what| number::counted(usize::try_from(count).unwrap_or(usize::MAX), what);
    format!(
        "{} complete; copied {} ({}) and {} of logs and journals\n",
        counted(done.copied_sessions, "session"),
        counted(done.copied_outputs, "output"),
        size(done.copied_bytes),
        counted(done.copied_entries, "record"),
    )
}
