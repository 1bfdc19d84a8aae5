//! The picture of the longest conversation of a replay.

use trimtab::film::film_under;
use trimtab::replay::ReplaySettings;

use super::contenders::Contender;
use super::recorded_sessions::RecordedSession;
use super::rows::ReplayRows;
use crate::picture::SessionPicture;

/// The longest conversation under the first contender, beside the others.
pub(super) fn longest(
    conversations: &[RecordedSession],
    contenders: &[Contender],
    settings: &ReplaySettings,
    rows: &ReplayRows,
) -> Option<SessionPicture> {
    let numbered = conversations.iter().enumerate();
    let (at, recorded) = numbered.max_by_key(|(_, recorded)| recorded.log.len())?;
    let chosen = contenders.first()?;
    let mut managers = chosen.managers(recorded, settings).ok()?;
    let manager = managers.first_mut()?;
    let (film, report) = film_under(&recorded.log, manager.as_mut(), settings);
    let everything = rows.presets.first()?.rows.get(at)?.all.clone();
    let others = rows.presets.iter().skip(1).filter_map(|preset| {
        let row = preset.rows.get(at)?;
        Some((preset.name.clone(), row.sizes.clone(), row.report.clone()))
    });
    Some(SessionPicture {
        title: recorded.id.clone(),
        preset: chosen.name.clone(),
        film,
        report,
        everything,
        others: others.collect(),
        window: settings.window,
    })
}
