//! What an earlier run of the verb left in a transcript.

use std::collections::HashSet;

use trimtab::engine::view::placeholder::{called_refs, is_ref_id};
use trimtab::engine::view::tools::READ;
use trimtab::store::{Error, SessionId, Store};
use trimtab_model::Message;

/// How the last line of a summary begins, which says how to read refs.
const READ_LINE_START: &str = "[Refs are read with ";
/// How it ends.
const READ_LINE_END: &str = " REF]";
/// The text before a ref in short notes.
const NOTE: &str = "ref=";
/// The maximum of refs that are looked up. A lookup reads all sessions of the store, and a store
/// that was replaced knows none of the refs.
const MOST_LOOKUPS: usize = 16;

/// The last line of a summary.
pub(super) fn read_line(command: &str) -> String {
    format!(
        "{READ_LINE_START}{READ} where there is such a tool, else with the command: \
         {command}{READ_LINE_END}"
    )
}

/// True for a summary of an earlier run, by its last line.
pub(super) fn is_own_summary(message: &Message) -> bool {
    let text = message.text();
    let last = text.lines().next_back().unwrap_or_default();
    last.starts_with(READ_LINE_START) && last.ends_with(READ_LINE_END)
}

/// Makes the session of the last run on these messages the parent of `id`, so that it can read the
/// refs of all runs. That session is found by a ref in the messages, which nobody can guess.
pub(super) fn link(store: &dyn Store, id: &SessionId, messages: &[Message]) -> Result<(), Error> {
    let is_ours = |message: &&Message| message.meta.kind.is_some() || is_own_summary(message);
    // Our own messages come first, because an output can show a ref of any other session.
    let (ours, others): (Vec<_>, Vec<_>) = messages.iter().rev().partition(is_ours);
    let mut seen = HashSet::new();
    let shown = ours.into_iter().chain(others).flat_map(shown_refs);
    let shown = shown.filter(|found| seen.insert(found.clone()));
    for found in shown.take(MOST_LOOKUPS) {
        let sessions = store.sessions_with_ref("", &found)?;
        // The user can name the session of an earlier run.
        if sessions.contains(id) {
            return Ok(());
        }
        // The most recently used one is that of the last run, which has the earlier ones as parents.
        let Some(earlier) = sessions.first() else {
            continue;
        };
        return match store.link(id, earlier) {
            // The user named a session with another parent, which it keeps.
            Err(Error::Link { .. }) => Ok(()),
            linked => linked,
        };
    }
    Ok(())
}

/// The texts in a message that look like shown refs.
fn shown_refs(message: &Message) -> Vec<String> {
    let text = message.text();
    let behind = text.split(NOTE).skip(1);
    let noted = behind.filter_map(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric()).next());
    let noted = noted.filter(|id| is_ref_id(id));
    called_refs(&text).chain(noted).map(str::to_owned).collect()
}
