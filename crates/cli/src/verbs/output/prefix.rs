//! Finds sessions and outputs by a prefix of their names.

use trimtab::store::SessionId;

use super::store_location::{StoreLocation, session_id};
use crate::exit::Failure;
use crate::ui::visible::visible;

/// How many candidates are listed.
const LISTED: usize = 8;

/// The name that `given` selects: an exact match, or the only name with this prefix, at its start,
/// after a `/` or after `chat-`. None if there is none; an error that lists the candidates if there
/// are several.
pub fn unique_name<'a>(
    given: &str,
    what: &str,
    names: impl Iterator<Item = &'a str>,
) -> Result<Option<&'a str>, Failure> {
    let mut found: Vec<&str> = names.filter(|name| begins(name, given)).collect();
    found.sort_unstable();
    found.dedup();
    // A full name counts even if other names begin with it.
    if let Some(same) = found.iter().find(|name| **name == given) {
        return Ok(Some(same));
    }
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        several => Err(Failure::input(
            format!("{} {what}s begin with '{}'", several.len(), visible(given)),
            format!("give a longer prefix; candidates: {}", listed(several)),
        )),
    }
}

fn begins(name: &str, given: &str) -> bool {
    let parts = name
        .match_indices('/')
        .filter_map(|(at, _)| name.get(at + 1..));
    let mut parts = parts.chain([name]).chain(name.strip_prefix("chat-"));
    !given.is_empty() && parts.any(|part| part.starts_with(given))
}

fn listed(names: &[&str]) -> String {
    let shown = names
        .iter()
        .take(LISTED)
        .map(|name| visible(name).into_owned());
    let shown: Vec<String> = shown.collect();
    let more = match names.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", shown.join(", "))
}

impl StoreLocation {
    /// The session that `given` selects, or `given` itself if there is none.
    pub fn session(&self, given: &str) -> Result<SessionId, Failure> {
        let sessions = self.store.sessions().map_err(|error| self.failed(&error))?;
        let names = sessions.iter().map(|info| info.session.as_str());
        let name = unique_name(given, "session", names)?.unwrap_or(given);
        session_id(name)
    }

    /// The ref that `given` selects in a session and its parents, or `given` itself if there is
    /// none.
    pub fn output(&self, session: &SessionId, given: &str) -> Result<String, Failure> {
        if self.store.metadata(session, given).is_ok() {
            return Ok(given.to_owned());
        }
        let sessions = self.store.sessions().map_err(|error| self.failed(&error))?;
        let mut ids = Vec::new();
        let mut at = Some(session);
        // At most one step per session, in case damaged data makes parents cyclic.
        for _ in 0..=sessions.len() {
            let Some(session) = at else { break };
            let outputs = self
                .store
                .list(session)
                .map_err(|error| self.failed(&error))?;
            ids.extend(
                outputs
                    .into_iter()
                    .map(|output| output.reference.id().to_owned()),
            );
            let info = sessions.iter().find(|info| info.session == *session);
            at = info.and_then(|info| info.parent.as_ref());
        }
        let names = ids.iter().map(String::as_str);
        Ok(unique_name(given, "output", names)?
            .unwrap_or(given)
            .to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_may_match_any_part_of_a_name() {
        let names = [
            "chat-20260101-aaaa",
            "proxy/8e01/messages/4ee4",
            "proxy/8e01/chat/77",
        ];
        let found = |given| unique_name(given, "session", names.into_iter());
        assert_eq!(found("4ee").unwrap(), Some("proxy/8e01/messages/4ee4"));
        assert_eq!(found("2026").unwrap(), Some("chat-20260101-aaaa"));
        assert_eq!(found("zz").unwrap(), None);
        assert_eq!(found("").unwrap(), None);
        let several = found("proxy/8e").unwrap_err();
        assert!(several.to_string().contains("2 sessions begin with"));
        let same = unique_name("a", "output", ["a", "ab"].into_iter());
        assert_eq!(same.unwrap(), Some("a"));
    }
}
