//! The picture of the longest conversation of a replay.

use trimtab::engine::policy::Policy;
use trimtab::film::replayed_film;

use super::jobs::{ReplayJob, run_job};
use super::recorded_sessions::RecordedSession;
use crate::picture::SessionPicture;

/// The longest conversation under the first policy, compared with the others. Its window and
/// prices are those of its own model, so that `trimtab inspect --html` gives the same figures.
pub(super) fn longest(
    conversations: &[RecordedSession],
    policies: &[Policy],
) -> Option<SessionPicture> {
    // In reverse, because `max_by_key` returns the last of equal elements.
    let recorded = conversations.iter().rev();
    let recorded = recorded.max_by_key(|recorded| recorded.log.len())?;
    let (chosen, others) = policies.split_first()?;
    let settings = &recorded.settings;
    let (film, report) = replayed_film(&recorded.log, chosen.clone(), settings).ok()?;
    let run = |policy| {
        let job = ReplayJob {
            recorded,
            policy,
            place: 0,
        };
        run_job(&job, settings, None)
    };
    let others = others.iter().map(|policy| {
        let done = run(Some(policy));
        (policy.preset.clone(), done.sizes, done.report)
    });
    Some(SessionPicture {
        title: recorded.id.clone(),
        preset: chosen.preset.clone(),
        film,
        report,
        others: others.collect(),
        everything: run(None).report,
        window: settings.window,
    })
}
