//! `trimtab output erase`: removes sessions permanently.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{BufRead, IsTerminal};

use clap::ArgGroup;
use serde_json::json;
use trimtab::store::{CollectOptions, CollectReport, SessionId, SessionInfo};

use super::sessions::tenant;
use super::store_location::{StoreLocation, session_id};
use crate::common::CommonArgs;
use crate::common::StoreArgs;
use crate::exit::Failure;
use crate::ui::visible::visible;
use crate::ui::{Terminal, number, units};

/// The arguments of `trimtab output erase`.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("what").required(true).args(["session", "tenant", "all"]))]
pub struct OutputEraseArgs {
    /// This session, its forks and its child sessions
    #[arg(long, short, value_name = "S")]
    pub session: Option<String>,
    /// All sessions of a tenant of the proxy, as shown by `trimtab output sessions`
    #[arg(long, value_name = "T")]
    pub tenant: Option<String>,
    /// All sessions
    #[arg(long)]
    pub all: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub yes: bool,
}

/// The first part of `trimtab output erase --help`.
pub const ABOUT: &str = "\
Remove sessions permanently: outputs, log and journal, and every copy in the store's files.

The database is rewritten without them, which takes a moment in a large store; meanwhile nobody \
else can write, and a proxy passes requests through unchanged. Databases that a repair moved aside \
are removed too. A proxy that has an erased session in memory starts it over.

Copies in the file system or in backups are out of reach.";

/// The last part of its help.
pub const EXAMPLES: &str = "\
Examples:
  trimtab output sessions                      list sessions and tenants
  trimtab output erase --session S
  trimtab output erase --tenant 4be1a0c93d1f6b6e51e0c8d7 --yes
  trimtab output erase --all";

/// Runs the verb.
pub fn run(
    args: &OutputEraseArgs,
    store: &StoreArgs,
    common: &CommonArgs,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let place = store.open()?;
    let sessions = place.store.sessions();
    let sessions = sessions.map_err(|error| place.failed(&error))?;
    let chosen = choose(args, &place, &sessions)?;
    if !args.yes && !is_confirmed(&chosen, &sessions, terminal)? {
        terminal.note("nothing was erased");
        return Ok(());
    }
    let request = CollectOptions {
        sessions: chosen,
        scrub: true,
        ..CollectOptions::default()
    };
    // Collection with explicit names ignores leases: an erasure must not wait for a proxy.
    let done = place.store.collect(&request);
    let done = done.map_err(|error| place.failed(&error))?;
    terminal.report(common.json, &as_json(&done), &text(&done))?;
    if done.traces_left {
        return Err(Failure::WithHint {
            message: "the sessions are removed, but copies of their text may remain: the \
            database could not be rewritten"
                .to_owned(),
            hint: Some(
                "free as much disk space as the database occupies, and run erase again".to_owned(),
            ),
        });
    }
    Ok(())
}

fn choose(
    args: &OutputEraseArgs,
    place: &StoreLocation,
    sessions: &[SessionInfo],
) -> Result<BTreeSet<SessionId>, Failure> {
    let all = sessions.iter().map(|info| &info.session);
    let chosen: BTreeSet<SessionId> = if let Some(name) = &args.session {
        let session = session_id(name)?;
        place.known(&session)?;
        family(&session, sessions)
    } else if let Some(name) = &args.tenant {
        all.filter(|id| tenant(id.as_str()) == Some(name.as_str()))
            .cloned()
            .collect()
    } else {
        all.cloned().collect()
    };
    if let (Some(name), true) = (&args.tenant, chosen.is_empty()) {
        return Err(Failure::input(
            format!("no session of tenant '{}' in the store", visible(name)),
            "`trimtab output sessions` lists the tenants",
        ));
    }
    Ok(chosen)
}

/// A session, its forks, the sessions that the proxy keeps for it, and all their children.
fn family(session: &SessionId, sessions: &[SessionInfo]) -> BTreeSet<SessionId> {
    let name = session.as_str();
    let belongs = |id: &SessionId| {
        let rest = id.as_str().strip_prefix(name);
        rest.is_some_and(|rest| {
            // The proxy keeps pending calls in a session with this suffix.
            let rest = rest.strip_suffix("/kept").unwrap_or(rest);
            let number = rest.strip_prefix('.').unwrap_or_default();
            rest.is_empty() || (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
        })
    };
    let ids = sessions.iter().map(|info| &info.session);
    let mut found: BTreeSet<SessionId> = ids.filter(|id| belongs(id)).cloned().collect();
    // Children of children too, until nothing new is found.
    loop {
        let before = found.len();
        let below = sessions.iter().filter(|info| {
            let parent = info.parent.as_ref();
            parent.is_some_and(|parent| found.contains(parent))
        });
        let below: Vec<SessionId> = below.map(|info| info.session.clone()).collect();
        found.extend(below);
        if found.len() == before {
            return found;
        }
    }
}

/// Asks for confirmation on the terminal.
fn is_confirmed(
    chosen: &BTreeSet<SessionId>,
    sessions: &[SessionInfo],
    terminal: &mut Terminal,
) -> Result<bool, Failure> {
    let outputs = sessions
        .iter()
        .filter(|info| chosen.contains(&info.session))
        .map(|info| info.outputs);
    let outputs = usize::try_from(outputs.sum::<u64>()).unwrap_or(usize::MAX);
    let what = format!(
        "{} with {}",
        number::counted(chosen.len(), "session"),
        number::counted(outputs, "output")
    );
    // Never erase without a confirmation, not even in a script.
    if !std::io::stdin().is_terminal() {
        return Err(Failure::input(
            format!("this would permanently erase {what}"),
            "use --yes to confirm",
        ));
    }
    terminal.say(&format!("permanently erase {what}? [y/N]"));
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn as_json(done: &CollectReport) -> serde_json::Value {
    let sessions: Vec<_> = done.sessions.iter().map(SessionId::as_str).collect();
    json!({
        "sessions": sessions,
        "outputs": done.outputs,
        "bytes_freed": done.bytes_freed,
        "bytes_kept": done.bytes_kept,
        "traces_left": done.traces_left,
    })
}

fn text(done: &CollectReport) -> String {
    let mut text = String::new();
    for session in &done.sessions {
        let _ = writeln!(text, "{}", visible(session.as_str()));
    }
    let outputs = usize::try_from(done.outputs).unwrap_or(usize::MAX);
    let _ = writeln!(
        text,
        "erased {} with {}: {} freed, {} kept",
        number::counted(done.sessions.len(), "session"),
        number::counted(outputs, "output"),
        units::size(done.bytes_freed),
        units::size(done.bytes_kept),
    );
    text
}
