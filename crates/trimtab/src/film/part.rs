//! What a film has gained since somebody saw it.

use serde::Serialize;

use super::{Film, FilmBand, FilmColumn, FilmSwitch};

/// How much of a film somebody has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilmMark {
    /// The number of columns.
    pub columns: usize,
    /// The number of switches.
    pub switches: usize,
    /// The number of scenes.
    pub scenes: usize,
    /// The number of bands of the last scene.
    pub bands: usize,
    /// How often bands of the last scene were joined.
    pub joins: usize,
}

/// What a film has beyond a mark.
#[derive(Debug, Serialize)]
pub struct FilmPart<'a> {
    /// The number of columns that stay, and the columns after them.
    pub columns_from: usize,
    /// See `columns_from`.
    pub columns: &'a [FilmColumn],
    /// The number of switches that stay, and the switches after them.
    pub switches_from: usize,
    /// See `switches_from`.
    pub switches: &'a [FilmSwitch],
    /// The number of scenes that stay, and the scenes after them.
    pub scenes_from: usize,
    /// The number of bands of the first of these scenes that stay.
    pub bands_from: usize,
    /// See `scenes_from`. The first one is without the bands that stay.
    pub scenes: Vec<ScenePart<'a>>,
}

/// The bands of a scene from some number on.
#[derive(Debug, Serialize)]
pub struct ScenePart<'a> {
    /// The bands, front first.
    pub bands: &'a [FilmBand],
}

impl Film {
    /// The mark of somebody who has all of it.
    pub fn mark(&self) -> FilmMark {
        let last = self.scenes.last();
        FilmMark {
            columns: self.columns.len(),
            switches: self.switches.len(),
            scenes: self.scenes.len(),
            bands: last.map_or(0, |scene| scene.bands.len()),
            joins: last.map_or(0, |scene| scene.joins),
        }
    }

    /// What somebody lacks who has the film up to a mark of it.
    pub fn since(&self, mark: &FilmMark) -> FilmPart<'_> {
        // The last scene that is known can have grown.
        let scenes_from = mark.scenes.saturating_sub(1);
        let known = self.scenes.get(scenes_from);
        let bands_from = known
            .filter(|scene| mark.scenes > 0 && scene.joins == mark.joins)
            .map_or(0, |_| mark.bands);
        let scenes = self.scenes.iter().skip(scenes_from).enumerate();
        let scenes = scenes.map(|(number, scene)| {
            let from = if number == 0 { bands_from } else { 0 };
            let bands = scene.bands.get(from..).unwrap_or_default();
            ScenePart { bands }
        });
        FilmPart {
            columns_from: mark.columns,
            columns: self.columns.get(mark.columns..).unwrap_or_default(),
            switches_from: mark.switches,
            switches: self.switches.get(mark.switches..).unwrap_or_default(),
            scenes_from,
            bands_from,
            scenes: scenes.collect(),
        }
    }
}
