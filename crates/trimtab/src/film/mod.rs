//! A conversation as a film strip: what each call to the model was sent, message by message.
//!
//! A window only grows at its end until a plan changes it. So a film has scenes: in a scene, every
//! column shows a prefix of the same bands, and a band is paid for by all calls from the first one
//! that sent it to the end of the scene. This keeps a film small, however many calls it has.

mod band;
mod log_film;
mod replayed;
mod scenes;

use serde::Serialize;

pub use band::{FilmBand, FilmRegion, MessageState, band_of, message_state};
pub use log_film::film_of;
pub use replayed::replayed_film;
use scenes::FilmBuilder;

/// What each call of a conversation was sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Film {
    /// The scenes, in order.
    pub scenes: Vec<FilmScene>,
    /// The calls, in order.
    pub columns: Vec<FilmColumn>,
    /// The changes between two scenes, in order.
    pub switches: Vec<FilmSwitch>,
}

/// Consecutive calls whose windows only grow at their end.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FilmScene {
    /// The bands of the last window, front first.
    pub bands: Vec<FilmBand>,
}

/// One call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FilmColumn {
    /// The number of messages that the conversation had.
    pub messages: usize,
    /// The scene that it belongs to.
    pub scene: usize,
    /// Tokens of its messages. It shows the bands of the scene up to this many tokens.
    pub tokens: u64,
    /// Tokens of all original messages.
    pub whole: u64,
}

/// A change of what was sent before.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FilmSwitch {
    /// The first column after it.
    pub column: usize,
    /// Tokens in front of the first change: they stay in the provider's cache.
    pub kept: u64,
    /// Tokens of the window before it.
    pub before: u64,
    /// Tokens of the window after it, without new messages.
    pub after: u64,
    /// Tokens after the first change that are written to the cache again.
    pub rewritten: u64,
    /// The reasons, one for each plan.
    pub reasons: Vec<String>,
    /// The one-time cost in dollars, if prices are known.
    pub cost: Option<f64>,
    /// The saving of every later call in dollars, if prices are known.
    pub saves: Option<f64>,
}

#[cfg(test)]
mod tests;
