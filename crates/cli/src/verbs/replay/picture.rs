//! The picture of the longest conversation of a replay.

use trimtab::film::film_under;
use trimtab::replay::{ReplaySettings, TokenCount};

use super::contenders::Contender;
use super::jobs::{ReplayJob, run_job};
use super::recorded_sessions::RecordedSession;
use crate::picture::SessionPicture;

/// The longest conversation under the first contender, compared with the others. Its window and
/// prices are those of its own model, so that `trimtab inspect --html` gives the same figures.
pub(super) fn longest(
    conversations: &[RecordedSession],
    contenders: &[Contender],
) -> Option<SessionPicture> {
    // In reverse, because `max_by_key` returns the last of equal elements.
    let recorded = conversations.iter().rev();
    let recorded = recorded.max_by_key(|recorded| recorded.log.len())?;
    // As the film counts, so that the figures of the picture are comparable.
    let settings = &ReplaySettings {
        count: TokenCount::Estimate,
        ..recorded.settings.clone()
    };
    let (chosen, others) = contenders.split_first()?;
    let managers = chosen.managers(recorded, settings).ok()?.into_iter();
    let films = managers.map(|mut manager| film_under(&recorded.log, manager.as_mut(), settings));
    let (film, report) = films.min_by_key(|(_, report)| (report.over, report.effective()))?;
    let run = |contender| {
        let job = ReplayJob {
            recorded,
            contender,
            place: 0,
        };
        run_job(&job, settings, None)
    };
    let others = others.iter().map(|contender| {
        let done = run(Some(contender));
        (contender.name.clone(), done.sizes, done.report)
    });
    Some(SessionPicture {
        title: recorded.id.clone(),
        preset: chosen.name.clone(),
        film,
        report,
        others: others.collect(),
        everything: run(None).report,
        window: settings.window,
    })
}
