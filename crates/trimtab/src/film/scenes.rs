//! Builds a film, window by window.

use trimtab_wire::catalogue::Prices;

use super::band::FilmBand;
use super::{Film, FilmColumn, FilmScene, FilmSwitch};
use crate::replay::bill::with_cache;

/// A scene with more bands joins small ones, because a screen has no more lines to show them.
const MOST_BANDS: usize = 1_200;
/// The same for a scene that has ended: a film can have a scene for every call.
const MOST_ENDED_BANDS: usize = 600;
/// Bands below this fraction of a scene are joined.
const SMALL_SHARE: u64 = 600;

/// Builds a film, window by window.
#[derive(Debug, Default)]
pub(super) struct FilmBuilder {
    /// The film so far. Small bands of its last scene are joined when the scene ends.
    film: Film,
    /// The tokens of the last window.
    tokens: u64,
    prices: Option<Prices>,
}

impl FilmBuilder {
    /// An empty film; the prices are for the arithmetic of its switches.
    pub(super) fn new(prices: Option<Prices>) -> Self {
        Self {
            prices,
            ..Self::default()
        }
    }

    /// The bands of the last window.
    pub(super) fn bands(&self) -> &[FilmBand] {
        self.film.scenes.last().map_or(&[], |scene| &scene.bands)
    }

    /// Adds a call whose window is the last one plus `new`.
    pub(super) fn extend(
        &mut self,
        messages: usize,
        whole: u64,
        new: impl Iterator<Item = FilmBand>,
    ) {
        if self.film.scenes.is_empty() {
            self.film.scenes.push(FilmScene::default());
        }
        for band in new {
            self.push(band);
        }
        self.add_column(messages, whole);
    }

    /// Adds a call whose window differs from the last one for these reasons.
    pub(super) fn switch(
        &mut self,
        messages: usize,
        whole: u64,
        bands: Vec<FilmBand>,
        reasons: Vec<String>,
    ) {
        let pairs = self.bands().iter().zip(&bands);
        let common = pairs.take_while(|(a, b)| a == b).count();
        // The plan changed nothing that was sent before.
        if common == self.bands().len() {
            return self.extend(messages, whole, bands.into_iter().skip(common));
        }
        let sum = |bands: &[FilmBand]| bands.iter().map(|band| band.tokens).sum::<u64>();
        let kept = sum(bands.get(..common).unwrap_or_default());
        // Messages since the last call are new in any case.
        let messages_before = self.film.columns.last().map_or(0, |column| column.messages);
        let is_new = |band: &FilmBand| band.message.is_some_and(|at| at >= messages_before);
        let new = bands.iter().filter(|band| is_new(band));
        let new: u64 = new.map(|band| band.tokens).sum();
        let after = sum(&bands).saturating_sub(new);
        let rewritten = after.saturating_sub(kept);
        let dollars = |read, written| {
            let prices = self.prices.as_ref()?;
            Some(with_cache(prices, read, written).dollars())
        };
        // Without the change, the same tokens would have been read from the cache.
        let read = dollars(rewritten, 0);
        self.film.switches.push(FilmSwitch {
            column: self.film.columns.len(),
            kept,
            before: self.tokens,
            after,
            rewritten,
            reasons,
            cost: dollars(0, rewritten)
                .zip(read)
                .map(|(cost, read)| cost - read),
            saves: dollars(self.tokens.saturating_sub(after), 0),
        });
        self.end_scene(MOST_ENDED_BANDS);
        self.film.scenes.push(FilmScene::default());
        self.tokens = 0;
        for band in bands {
            self.push(band);
        }
        self.add_column(messages, whole);
    }

    fn add_column(&mut self, messages: usize, whole: u64) {
        self.film.columns.push(FilmColumn {
            messages,
            scene: self.film.scenes.len().saturating_sub(1),
            tokens: self.tokens,
            whole,
        });
    }

    /// Adds a band to the window and to the last scene.
    fn push(&mut self, band: FilmBand) {
        self.tokens += band.tokens;
        if let Some(scene) = self.film.scenes.last_mut() {
            scene.bands.push(band);
        }
    }

    /// Joins small adjacent bands of the last scene if there are more than `most`, down to half as
    /// many.
    fn end_scene(&mut self, most: usize) {
        let ended = self.film.scenes.last_mut();
        let Some(scene) = ended.filter(|scene| scene.bands.len() > most) else {
            return;
        };
        let mut small = (self.tokens / SMALL_SHARE).max(1);
        while scene.bands.len() > most / 2 {
            scene.bands = joined(std::mem::take(&mut scene.bands), small);
            small = small.saturating_mul(2);
        }
    }

    /// Returns the film.
    pub(super) fn finish(mut self) -> Film {
        self.end_scene(MOST_BANDS);
        self.film
    }
}

/// Joins adjacent bands of at most `small` tokens.
fn joined(bands: Vec<FilmBand>, small: u64) -> Vec<FilmBand> {
    let mut fewer: Vec<FilmBand> = Vec::new();
    for band in bands {
        match fewer.last_mut() {
            Some(last) if band.tokens <= small && last.tokens <= small => {
                // A run shows the kind of its largest band.
                if band.tokens > last.tokens {
                    (last.region, last.state) = (band.region, band.state);
                }
                last.message = last.message.or(band.message);
                last.count += band.count;
                last.tokens += band.tokens;
            }
            _ => fewer.push(band),
        }
    }
    fewer
}
