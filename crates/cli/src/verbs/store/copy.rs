//! `trimtab store copy`.

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
    let from = place(&args.from, ("--from-blobs", args.from_blobs.as_deref()))?;
    let to = place(&args.to, ("--to-blobs", args.to_blobs.as_deref()))?;
    check_apart(&from, &to)?;
    let source = opened(&from, from.open())?;
    let target = opened(&to, to.create())?;
    let sessions = source.sessions().map_err(|error| explain(&from, &error))?;
    // Outputs count too, because one session can have most of them.
    let steps = sessions.iter().map(|session| session.outputs + 1).sum();
    let bar = Progress::steps("copying sessions and outputs", steps, terminal);
    let copied = copy_store(source.as_ref(), target.as_ref(), &mut |_| bar.advance());
    bar.finish();
    let done = copied.map_err(|error| match error {
        // These concern the target only. Others may come from either store.
        Error::NotEmpty | Error::OtherSession { .. } => explain(&to, &error),
        error => explain(&format!("{from} or {to}"), &error),
    })?;
    terminal.report(common.json, &as_json(&done), &text(&done))?;
    Ok(())
}

/// The place of a store whose object store was given with a flag.
fn place(path: &Path, (flag, blobs): (&str, Option<&str>)) -> Result<StorePlace, Failure> {
    let place = StorePlace::new(path, blobs).ok_or_else(|| {
        Failure::input(
            format!("{}: not a store", redact_urls(&path.to_string_lossy())),
            "give the path of a folder, or a postgres:// URL",
        )
    })?;
    let has_blobs = blobs.is_some_and(|url| !url.is_empty());
    if has_blobs && matches!(place, StorePlace::Folder(_)) {
        return Err(Failure::input(
            format!("{flag} needs a store in a database, and {place} is a folder"),
            format!("remove {flag}: a folder holds all outputs itself"),
        ));
    }
    Ok(place)
}

/// Fails if both are the same store, or have the same object store.
fn check_apart(from: &StorePlace, to: &StorePlace) -> Result<(), Failure> {
    let is_same = match (from, to) {
        (StorePlace::Folder(from), StorePlace::Folder(to)) => {
            // The target may not exist yet.
            from.canonicalize().ok() == to.canonicalize().ok() && from.exists()
        }
        (from, to) => from == to,
    };
    if is_same {
        return Err(Failure::input(
            format!("{from} is both the source and the target"),
            "give another target",
        ));
    }
    if from.shares_objects(to) {
        return Err(Failure::input(
            "the source and the target have the same object store, and each would remove the \
             outputs of the other",
            "give the target another bucket or prefix with --to-blobs",
        ));
    }
    Ok(())
}

fn opened(
    place: &StorePlace,
    store: Result<Arc<dyn Store>, Error>,
) -> Result<Arc<dyn Store>, Failure> {
    store.map_err(|error| match error {
        Error::Vanished { .. } | Error::NoTables => Failure::input(
            format!("no store at {place}"),
            "give the folder or the URL of the store to copy",
        ),
        error => explain(place, &error),
    })
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
