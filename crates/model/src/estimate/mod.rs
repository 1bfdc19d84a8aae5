//! Estimates tokens before the provider reports them.
//!
//! - [`Heuristic`]: the estimate of each of the five designs.
//! - [`Anchor`]: the newest usage that still describes a window.
//! - [`Measure`]: the sizes of a message, computed once. Measures add up, and every estimator reads
//!   them in constant time.
//! - [`Calibration`]: how a model's count differs from our estimate, learned from usage.
//!
//! ```
//! use trimtab_model::{Message, estimate::{Calibration, Heuristic, Measure}};
//!
//! let message = Message::user("error: 17 of 240 tests failed");
//! let measure = Measure::of(&message);
//! assert_eq!(Heuristic::Refs.sizes(measure.sizes()), 8);
//! assert_eq!(Calibration::default().tokens(&measure), measure.tokens());
//! ```

mod anchor;
mod calibration;
mod features;
mod heuristic;
mod linear;
mod measure;
mod media;
mod script;
mod size;

pub use anchor::Anchor;
pub use calibration::{Calibration, CalibrationOutcome};
pub use features::{FEATURES, count_features};
pub use heuristic::Heuristic;
pub use linear::{TokenClass, coefficients};
pub use measure::Measure;
pub use size::{Length, MessageSizes};
