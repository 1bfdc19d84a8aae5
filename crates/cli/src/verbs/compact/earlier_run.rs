//! What an earlier run of the verb left in a transcript.

use std::collections::HashSet;

use trimtab::engine::view::placeholder::{called_refs, is_ref_id};
use trimtab::engine::view::tools::READ;
use trimtab::store::{Error, SessionId, Store};
use trimtab_model::{Message, Output, Role};

use super::next_steps::read_command;

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
    own_read_line(message).is_some()
}

/// The last line of a summary of an earlier run. An output that ends with such a line is none, nor
/// is an answer of the model, which can repeat an output.
fn own_read_line(message: &Message) -> Option<String> {
    let text = message.text();
    let last = text.lines().next_back().unwrap_or_default();
    let is_ours = last.starts_with(READ_LINE_START) && last.ends_with(READ_LINE_END);
    let is_said = message.has_outputs() || message.role == Role::Assistant;
    (is_ours && !is_said).then(|| last.to_owned())
}

/// Makes the session of the last run on these messages the parent of `id`, so that it can read the
/// refs of all runs. A ref in the messages finds it, and something that no output can say proves
/// it: the last line of a summary names the session, or the session has that ref for the very call
/// whose output shows it. An output can show a ref of any other session.
pub(super) fn link(store: &dyn Store, id: &SessionId, messages: &[Message]) -> Result<(), Error> {
    let read_lines: Vec<String> = messages.iter().filter_map(own_read_line).collect();
    let is_named = |session: &SessionId| {
        let command = format!("{} ", read_command(session.as_str(), None));
        let end = format!("{}{READ_LINE_END}", read_command(session.as_str(), None));
        let mut lines = read_lines.iter();
        lines.any(|line| line.contains(&command) || line.ends_with(&end))
    };
    let mut seen = HashSet::new();
    let shown = messages.iter().rev().flat_map(shown_refs);
    let shown = shown.filter(|found| seen.insert(found.clone()));
    for (found, call) in shown.take(MOST_LOOKUPS) {
        let sessions = store.sessions_with_ref("", &found)?;
        // The user can name the session of an earlier run.
        if sessions.contains(id) {
            return Ok(());
        }
        let is_of_call = |session: &SessionId| {
            let stored = store.metadata(session, &found);
            call.is_some() && stored.is_ok_and(|stored| Some(stored.labels.call) == call)
        };
        // The most recently used one is that of the last run, which has the earlier ones as parents.
        let mut proven = sessions
            .iter()
            .filter(|one| is_named(one) || is_of_call(one));
        let Some(earlier) = proven.next() else {
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

/// The texts in a message that look like shown refs, each with the call whose output shows it.
fn shown_refs(message: &Message) -> Vec<(String, Option<String>)> {
    if message.has_outputs() {
        let refs = |output: &Output| {
            let call = Some(output.call_id.clone());
            let found = refs_in(&output.text());
            found.into_iter().map(move |found| (found, call.clone()))
        };
        return message.outputs().flat_map(refs).collect();
    }
    let found = refs_in(&message.text());
    found.into_iter().map(|found| (found, None)).collect()
}

/// The texts that look like shown refs.
fn refs_in(text: &str) -> Vec<String> {
    let behind = text.split(NOTE).skip(1);
    let noted = behind.filter_map(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric()).next());
    let noted = noted.filter(|id| is_ref_id(id));
    called_refs(text).chain(noted).map(str::to_owned).collect()
}
