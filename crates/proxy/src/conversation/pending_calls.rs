//! What the client must not lose when we are killed between two of its requests.
//!
//! An answer may call tools of the client's and of ours at once. The client comes back with its
//! own outputs and knows nothing of our calls, so these are kept beside the log until then: the
//! model is sent the same bytes, whether or not we were started again in between.

use trimtab_store::{Result, SessionId, Store, Stream};

use crate::conversation::hidden_rounds::Mixed;

/// Where it is kept: a session beside the one it belongs to.
fn place(session: &SessionId) -> Result<SessionId> {
    SessionId::new(format!("{session}/kept"))
}

/// Keeps the calls of ours that `session` was answered with.
pub(crate) fn keep(store: &dyn Store, session: &SessionId, mixed: &Mixed) -> Result<()> {
    let place = place(session)?;
    let entry = serde_json::to_vec(mixed).unwrap_or_default();
    let position = store.position(&place, Stream::Log)?;
    store.append(&place, Stream::Log, position, &[&entry])?;
    Ok(())
}

/// The calls of ours that `session` was answered with when its log was `at` long.
pub(crate) fn find(store: &dyn Store, session: &SessionId, at: usize) -> Result<Option<Mixed>> {
    let place = place(session)?;
    let position = store.position(&place, Stream::Log)?;
    let Some(last) = position.checked_sub(1) else {
        return Ok(None);
    };
    let entries = store.read(&place, Stream::Log, last, 1)?;
    let mixed = entries.first().and_then(|entry| {
        let mixed: Mixed = serde_json::from_slice(entry).ok()?;
        (mixed.at == at).then_some(mixed)
    });
    Ok(mixed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_model::{Call, Output};
    use trimtab_store::MemoryStore;

    #[test]
    fn the_newest_is_found_where_it_belongs() {
        let store = MemoryStore::new();
        let session = SessionId::new("s").unwrap();
        assert_eq!(find(&store, &session, 0).unwrap(), None);
        let mixed = |at: usize| Mixed {
            at,
            calls: vec![(1, Call::new("h", "mine", "{}"))],
            outputs: vec![Output::new("h", "found")],
            theirs: vec!["c".to_owned()],
        };
        keep(&store, &session, &mixed(3)).unwrap();
        keep(&store, &session, &mixed(7)).unwrap();
        assert_eq!(find(&store, &session, 7).unwrap(), Some(mixed(7)));
        assert_eq!(find(&store, &session, 3).unwrap(), None);
        assert_eq!(find(&store, &session, 8).unwrap(), None);
    }
}
