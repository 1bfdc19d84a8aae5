//! `trimtab output sessions`: lists the sessions of the store.

use std::io::Write;

use serde_json::json;
use trimtab::store::{SessionId, SessionInfo};

use crate::common::CommonArgs;
use crate::common::StoreArgs;
use crate::exit::Failure;
use crate::ui::columns::{Align, lined_up};
use crate::ui::visible::visible;
use crate::ui::{Terminal, line_width, number, units};

/// The prefix of the names of all sessions of the proxy.
const PROXY_SESSIONS: &str = "proxy/";

/// Runs the verb.
pub fn run(store: &StoreArgs, common: &CommonArgs, terminal: &mut Terminal) -> Result<(), Failure> {
    let place = store.open()?;
    let mut sessions = place
        .store
        .sessions()
        .map_err(|error| place.failed(&error))?;
    // Users usually look for the session they used last.
    sessions.sort_by_key(|info| std::cmp::Reverse(info.used));
    if common.json {
        for info in &sessions {
            terminal.json(&as_json(info))?;
        }
        return Ok(());
    }
    if sessions.is_empty() {
        terminal.note("no sessions");
        return Ok(());
    }
    terminal.out().write_all(text(&sessions).as_bytes())?;
    Ok(())
}

/// The tenant of the proxy to which a session belongs, from its name.
pub fn tenant(session: &str) -> Option<&str> {
    let (tenant, _) = session.strip_prefix(PROXY_SESSIONS)?.split_once('/')?;
    (!tenant.is_empty()).then_some(tenant)
}

/// The prefix of the names of a tenant's sessions.
pub fn tenant_prefix(tenant: &str) -> String {
    format!("{PROXY_SESSIONS}{tenant}/")
}

fn as_json(info: &SessionInfo) -> serde_json::Value {
    json!({
        "session": info.session.as_str(),
        "tenant": tenant(info.session.as_str()),
        "parent": info.parent.as_ref().map(SessionId::as_str),
        "outputs": info.outputs,
        "byte_size": info.byte_size,
        "created": info.created,
        "used": info.used,
    })
}

fn text(sessions: &[SessionInfo]) -> String {
    let now = trimtab::store::now_millis();
    let heading = ["SESSION", "OUTPUTS", "SIZE", "USED", "PARENT"].map(str::to_owned);
    let row = |info: &SessionInfo| {
        let parent = info.parent.as_ref().map(ToString::to_string);
        [
            info.session.to_string(),
            number::grouped(info.outputs),
            units::size(info.byte_size),
            units::age(now.saturating_sub(info.used)),
            parent.unwrap_or_else(|| "-".to_owned()),
        ]
    };
    let rows: Vec<_> = [heading]
        .into_iter()
        .chain(sessions.iter().map(row))
        .collect();
    let (left, right) = (Align::Left, Align::Right);
    let table = lined_up(&rows, [left, right, right, right, left]);
    let width = line_width().unwrap_or(usize::MAX);
    if table.lines().all(|line| line.chars().count() <= width) {
        return table;
    }
    sessions.iter().map(|info| in_lines(info, now)).collect()
}

/// A session in short lines. Its name is never cut, because other verbs take it.
fn in_lines(info: &SessionInfo, now: u64) -> String {
    let plural = if info.outputs == 1 { "" } else { "s" };
    let mut text = format!(
        "{}\n  {} output{plural}, {}, used {} ago\n",
        visible(info.session.as_str()),
        number::grouped(info.outputs),
        units::size(info.byte_size),
        units::age(now.saturating_sub(info.used)),
    );
    if let Some(parent) = &info.parent {
        text.extend(["  parent ", &*visible(parent.as_str()), "\n"]);
    }
    text
}
