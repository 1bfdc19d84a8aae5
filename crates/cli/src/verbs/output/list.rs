//! `trimtab output list`: lists the stored outputs.

use std::io::Write;

use trimtab::store::{OutputMetadata, SessionId};

use super::store_location::StoreLocation;
use crate::common::CommonArgs;
use crate::common::StoreArgs;
use crate::exit::Failure;
use crate::ui::columns::{Align, lined_up_within};
use crate::ui::visible::visible;
use crate::ui::{Terminal, line_width, number, style, units};

/// The arguments of `trimtab output list`.
#[derive(Debug, clap::Args)]
pub struct OutputListArgs {
    /// Only the outputs of this session
    #[arg(
        long,
        short,
        value_name = "S",
        env = "TRIMTAB_SESSION",
        hide_env_values = true
    )]
    pub session: Option<String>,
    /// List the sessions instead, as `trimtab output sessions` does
    #[arg(long)]
    pub sessions: bool,
}

/// The last part of `trimtab output list --help`.
pub const EXAMPLES: &str = "\
Examples:
  trimtab output list                     all sessions, the oldest output first
  trimtab output list --session S
  trimtab output list --sessions          the sessions, the most recently used first
  trimtab output list --json | jq -r 'select(.byte_size > 1e6) | .ref'";

/// Runs the verb.
pub fn run(
    args: &OutputListArgs,
    store: &StoreArgs,
    common: &CommonArgs,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    if args.sessions {
        return super::sessions::run(store, common, terminal);
    }
    let place = store.open()?;
    let sessions = sessions(args, &place)?;
    let mut seen = 0;
    for session in &sessions {
        let outputs = place.store.list(session);
        let outputs = outputs.map_err(|error| place.failed(&error))?;
        if common.json {
            for output in &outputs {
                let lines = place.shown_lines(session, &output.reference);
                terminal.json(&super::as_json(output, lines))?;
            }
        } else if !outputs.is_empty() {
            let gap = if seen > 0 { "\n" } else { "" };
            let text = text(&place, session, &outputs);
            write!(terminal.out(), "{gap}{text}")?;
        }
        seen += outputs.len();
    }
    if seen == 0 {
        terminal.note("no outputs");
    }
    Ok(())
}

fn sessions(args: &OutputListArgs, place: &StoreLocation) -> Result<Vec<SessionId>, Failure> {
    if let Some(name) = &args.session {
        let session = place.session(name)?;
        // An unknown session would look like one without outputs.
        place.known(&session)?;
        return Ok(vec![session]);
    }
    let sessions = place.store.sessions();
    let sessions = sessions.map_err(|error| place.failed(&error))?;
    Ok(sessions.into_iter().map(|info| info.session).collect())
}

fn text(place: &StoreLocation, session: &SessionId, outputs: &[OutputMetadata]) -> String {
    let now = trimtab::store::now_millis();
    let heading = ["REF", "SIZE", "LINES", "AGE", "TOOL", "CALL"].map(str::to_owned);
    let row = |output: &OutputMetadata| {
        [
            output.reference.id().to_owned(),
            units::size(output.byte_size),
            number::grouped(place.shown_lines(session, &output.reference)),
            units::age(now.saturating_sub(output.created)),
            or_dash(&output.labels.tool),
            or_dash(&output.labels.call),
        ]
    };
    let rows: Vec<_> = [heading]
        .into_iter()
        .chain(outputs.iter().map(row))
        .collect();
    let (left, right) = (Align::Left, Align::Right);
    let (strong, name) = (style::STRONG, visible(session.as_str()));
    let rows = lined_up_within(&rows, [left, right, right, right, left, left], line_width());
    format!("{strong}session {name}{strong:#}\n{rows}")
}

fn or_dash(text: &str) -> String {
    if text.is_empty() {
        "-".to_owned()
    } else {
        text.to_owned()
    }
}
