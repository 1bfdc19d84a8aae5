//! The film of a recorded conversation under a policy.

use std::sync::Arc;

use trimtab_engine::policy::Policy;
use trimtab_model::{Message, Role};

use super::{Film, FilmOptions, LogFilm};
use crate::replay::{ReplayError, ReplayReport, ReplaySettings, replayed_session};

/// What a policy would have sent at each call of a recorded conversation, and the cost.
pub fn replayed_film(
    log: &[Arc<Message>],
    policy: Policy,
    settings: &ReplaySettings,
) -> Result<(Film, ReplayReport), ReplayError> {
    // What follows the last answer was never sent.
    let answer = log
        .iter()
        .rposition(|message| message.role == Role::Assistant);
    let sent = log.get(..=answer.unwrap_or_default()).unwrap_or_default();
    let (report, session) = replayed_session(sent, policy, settings, &mut |_| {})?;
    let projection = session.projection();
    let mut film = LogFilm::new(FilmOptions::of(session.setup()));
    let messages = projection.log().messages().iter().enumerate();
    let messages = messages.map(|(at, message)| {
        let measure = projection.measure(at).copied().unwrap_or_default();
        (Arc::clone(message), measure)
    });
    // A new film can follow any journal.
    let _ = film.follow(
        &messages.collect::<Vec<_>>(),
        projection.journal().entries(),
    );
    Ok((film.into_film(), report))
}
