//! How many tokens something will cost, before the provider says so.
//!
//! - [`Heuristic`]: what each of the five designs does, as data.
//! - [`anchored`]: the newest usage that still holds, and an estimate of what came after it.
//! - [`Measure`]: what is remembered of a message, so that it is looked at only once; measures
//!   add up, and every estimator reads them in constant time.
//! - [`Calibration`]: how a model's count differs from our estimate, learned from usage.
//! - `Vocabulary`: exact counts where the vocabulary is public (feature `exact`).
//!
//! ```
//! use trimtab_model::{Message, estimate::{Calibration, Heuristic, Measure}};
//!
//! let message = Message::user("error: 17 of 240 tests failed");
//! let measure = Measure::of(&message);
//! assert_eq!(Heuristic::REFS.sizes(measure.sizes()), 8);
//! assert!(Calibration::default().upper_bound(&measure) >= measure.tokens());
//! ```

mod anchor;
mod calibration;
#[cfg(feature = "exact")]
mod exact;
mod features;
#[cfg(test)]
mod fit;
mod heuristic;
mod linear;
mod measure;
mod script;
mod size;

pub use anchor::{Anchor, anchored};
pub use calibration::{Calibration, Observed};
#[cfg(feature = "exact")]
pub use exact::{Appending, ExactCounter, Vocabulary, VocabularyError};
pub use heuristic::{Counted, Heuristic, PerMedia, Rounding, Unit};
pub use linear::Class;
pub use measure::Measure;
pub use size::{Length, Sizes};

/// Counts the tokens of a text.
pub trait TokenCounter {
    /// The tokens of `text`.
    fn count(&self, text: &str) -> u64;
}
