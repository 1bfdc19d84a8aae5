//! `trimtab output gc`: removes old sessions.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;
use trimtab::store::{CollectOptions, CollectReport, SessionId};

use super::sessions::tenant_prefix;
use crate::common::CommonArgs;
use crate::common::StoreArgs;
use crate::exit::Failure;
use crate::ui::visible::visible;
use crate::ui::{Terminal, number, units};

/// The arguments of `trimtab output gc`.
#[derive(Debug, clap::Args)]
pub struct OutputGcArgs {
    /// Remove sessions last used longer ago than this (45m, 12h, 7d, 2w)
    #[arg(long, value_name = "AGE", value_parser = units::parse_age)]
    pub older_than: Option<Duration>,
    /// Remove only sessions of this tenant of the proxy, as shown by `trimtab output sessions`
    #[arg(
        long,
        value_name = "T",
        requires = "older_than",
        conflicts_with = "max_size"
    )]
    pub tenant: Option<String>,
    /// Remove the oldest sessions until the store is at most this large (500MB, 2GiB)
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size)]
    pub max_size: Option<u64>,
    /// Only show what would be removed
    #[arg(long)]
    pub dry_run: bool,
}

/// The first part of `trimtab output gc --help`.
pub const ABOUT: &str = "\
Remove old sessions with their outputs, log and journal.

A session counts as used whenever something is stored in it or in one of its children. --max-size \
skips sessions of the last hour, however large they are. Without either option, only files that a \
killed process left behind are removed.

Sessions that a running proxy has in memory are skipped, and so are those of `trimtab compact`; \
`trimtab output erase` removes any session.

Refs of a removed session become invalid. The database is rewritten without the removed data, and \
the space is returned to the disk.";

/// The last part of its help.
pub const EXAMPLES: &str = "\
Examples:
  trimtab output gc --older-than 7d --dry-run
  trimtab output gc --older-than 30d --max-size 2GiB
  trimtab output gc --older-than 7d --tenant 4be1a0c93d1f6b6e51e0c8d7";

/// Runs the verb.
pub fn run(
    args: &OutputGcArgs,
    store: &StoreArgs,
    common: &CommonArgs,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let place = store.open()?;
    let (older_than, older_than_by_prefix) = match &args.tenant {
        None => (args.older_than, Vec::new()),
        // Without a general age, sessions of other tenants are kept.
        Some(tenant) => (None, vec![(tenant_prefix(tenant), args.older_than)]),
    };
    let request = CollectOptions {
        older_than,
        older_than_by_prefix,
        max_bytes: args.max_size,
        // A dry run must not write.
        scrub: !args.dry_run,
        dry_run: args.dry_run,
        ..CollectOptions::default()
    };
    let done = place.store.collect(&request);
    let done = done.map_err(|error| place.failed(&error))?;
    terminal.report(common.json, &as_json(args, &done), &text(args, &done))?;
    if done.traces_left {
        terminal
            .warn("copies of removed text may remain: there was no room to rewrite the database");
    }
    if args.max_size.is_some_and(|max| done.bytes_kept > max) {
        terminal.warn(&format!(
            "the store is still larger than requested, {}: sessions of the last hour stay",
            units::size(done.bytes_kept)
        ));
    }
    Ok(())
}

fn as_json(args: &OutputGcArgs, done: &CollectReport) -> serde_json::Value {
    let sessions: Vec<_> = done.sessions.iter().map(SessionId::as_str).collect();
    json!({
        "dry_run": args.dry_run,
        "sessions": sessions,
        "outputs": done.outputs,
        "bytes_freed": done.bytes_freed,
        "bytes_kept": done.bytes_kept,
        "stray_files": done.stray_files,
    })
}

fn text(args: &OutputGcArgs, done: &CollectReport) -> String {
    let mut text = String::new();
    for session in &done.sessions {
        let _ = writeln!(text, "{}", visible(session.as_str()));
    }
    let verb = if args.dry_run {
        "would remove"
    } else {
        "removed"
    };
    let _ = writeln!(
        text,
        "{verb} {} with {}: {} freed, {} kept",
        number::counted(done.sessions.len(), "session"),
        number::counted(
            usize::try_from(done.outputs).unwrap_or(usize::MAX),
            "output"
        ),
        units::size(done.bytes_freed),
        units::size(done.bytes_kept),
    );
    if done.stray_files > 0 {
        let files = usize::try_from(done.stray_files).unwrap_or(usize::MAX);
        let _ = writeln!(
            text,
            "{verb} {} left behind",
            number::counted(files, "file")
        );
    }
    text
}
