//! The film of a recorded conversation under a policy.

use std::sync::Arc;

use trimtab_engine::policy::Policy;
use trimtab_model::{Message, Role};

use super::{Film, film_of};
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
    let entries = projection.journal().entries();
    let film = film_of(&projection.measured_log(), entries, session.setup());
    Ok((film, report))
}
